"""What the code says today, written down before the house is rebuilt: ``python tests/nets/make_nets.py`` writes anew.

* scores.json: decision values of models of every kind, on three seeds;
* commands.json: what every command answers with --json on the news example, without times, paths and sizes;
* standings.csv: wins, ties and losses of the committed experiment records.

`test_nets` makes them again and compares, with a tolerance for other processors.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from streamlabel import BinaryRelevance, StreamingLabelClassifier
from streamlabel.cli import main
from streamlabel.data.synthetic import make_planted_labels
from streamlabel.experiments import compare
from streamlabel.experiments.experiment import EXPERIMENTS
from streamlabel.experiments.runner import record_file

HERE = Path(__file__).parent
RECORDS = HERE.parents[1] / "docs" / "_static" / "results" / "records.tar.gz"
VOLATILE = {"actor", "at", "bytes", "checksum", "file", "made", "model", "out", "path", "seconds", "sizes", "when"}


def scores() -> dict[str, list[Any]]:
    found = {}
    for seed in range(3):
        planted = make_planted_labels(160, 30, 15, 6, noise=0.1, feature_noise=0.3, random_state=seed)
        X, Y, new = np.asarray(planted.X), planted.Y_past.toarray(), planted.Y_new.toarray()
        for kind, model, options in (
            ("default", StreamingLabelClassifier(), {}),
            ("few answers", StreamingLabelClassifier(), {"annotated": np.arange(60)}),
            ("anchor", StreamingLabelClassifier(lam=0.003, metric=None), {"annotated": np.arange(60)}),
            ("metric", StreamingLabelClassifier(metric=0.3), {"annotated": np.arange(60)}),
            ("coupled", StreamingLabelClassifier(), {"coupled": True}),
            ("paper", StreamingLabelClassifier(start="alternating", fit_intercept=False), {"coupled": True}),
            ("dictionary", StreamingLabelClassifier(dictionary=5), {}),
            ("logistic", StreamingLabelClassifier(loss="logistic"), {"annotated": np.arange(60)}),
            ("squared hinge", StreamingLabelClassifier(loss="squared_hinge"), {}),
            ("alone", BinaryRelevance(), {}),
        ):
            model.fit(X, Y)
            model.add_labels(X, new, [f"new {j}" for j in range(new.shape[1])], **options)
            sums = model.decision_function(X[:4]).round(8).tolist()
            found[f"{kind}, seed {seed}"] = [sums, model.thresholds_.round(8).tolist()]
    return found


def commands(folder: Path) -> dict[str, Any]:
    """A life of the news example."""
    answers = {}
    for line in (HERE / "commands.txt").read_text(encoding="utf-8").splitlines():
        words = [word.replace("_", " ").replace("FOLDER", str(folder)) for word in line.split()]
        said = CliRunner().invoke(main, words)
        try:
            answer = [json.loads(part) for part in _documents(said.stdout)]
        except ValueError:
            answer = ["not JSON"]
        answers[line] = [said.exit_code, _plain(answer, str(folder))]
    return answers


def _documents(text: str) -> Iterator[str]:
    """One document, or one a line."""
    try:
        json.loads(text)
        yield text
    except ValueError:
        yield from text.splitlines()


def _plain(value: Any, folder: str) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part, folder) for key, part in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [_plain(part, folder) for part in value]
    if isinstance(value, str):
        return re.sub(r"\d{4}-\d\d-\d\dT[\d:.+Z]*", "a time", value.replace(folder, "FOLDER"))
    return round(value, 6) if isinstance(value, float) else value


def standings_table(names: Iterable[str] = EXPERIMENTS) -> str:
    """The standings in the records of these experiments, as CSV."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(RECORDS) as archive:
        archive.extractall(folder, filter="data")
        records = {name: record_file(EXPERIMENTS[name].load(), Path(folder)).sorted_records for name in names}
    lines = []
    for name, found in records.items():
        spec = EXPERIMENTS[name].load().page
        stored = {shown: kept for kept, shown in spec.names.items()}  # the file has the names of records
        compared = compare.comparisons(compare.frame_of(found, spec), spec.versus)
        for one in compare.standings(compared, ["dataset", "competitor"]).itertuples():
            key = name, one.dataset, stored.get(one.competitor, one.competitor)
            lines.append([*key, one.wins, one.ties, one.loses, one.undecided, f"{one.gain:.4f}"])
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["experiment", "dataset", "competitor", "wins", "ties", "loses", "undecided", "gain"])
    table.writerows(sorted(lines))
    return out.getvalue()


def write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, value in (("scores", scores()), ("commands", commands(Path(folder)))):
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            (HERE / f"{name}.json").write_text(text.replace('],"', '],\n"') + "\n", encoding="utf-8")
    (HERE / "standings.csv").write_text(standings_table(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(write())
