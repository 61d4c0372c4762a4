"""New labels on sets that were looked at last, in Mulan's form: NAME-train.arff, NAME-test.arff, NAME.xml.

    python benchmarks/unseen.py FOLDER NAME ... [--methods SLL] [--seeds 5] [--keep FILE]

The protocol is that of ``streamlabel reproduce budget``: half of the labels are known, the others arrive together. A
set without a test part (NAME.arff) is cut in two, by a fixed draw. The tables have SLL minus the better of own ridge
and own logistic, and of scikit-learn's RidgeCV and tuned LogisticRegression, picked measure by measure by the mean on
test rows (which no user knows), with the standard error over seeds.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from streamlabel.data.arff import read_arff
from streamlabel.experiments.budget import BudgetTask, run_on
from streamlabel.experiments.budget_methods import DEFAULT, OWN_RIDGE, parse_methods
from streamlabel.stats.threads import one_thread
from streamlabel.types import Dataset

BUDGETS = (20, 50, 100, 200, 500, 1000, 2000, None)
ALL = "SLL,BR logistic,RidgeCV,scikit-learn logistic"
RIVALS = {"own ridge and own logistic": (OWN_RIDGE, "own logistic"), "scikit-learn": ("RidgeCV", "LogisticRegression")}
MEASURES = ("p1", "p3", "p5", "auc", "average_precision")


def read(folder: Path, name: str) -> tuple[Dataset, Dataset]:
    """The training and the test part of a set."""
    xml = folder / f"{name}.xml"
    if (folder / f"{name}-train.arff").exists():
        train, test = (read_arff(folder / f"{name}-{part}.arff", xml, sort=True) for part in ("train", "test"))
        return train, test
    whole = read_arff(folder / f"{name}.arff", xml, sort=True)
    order = np.random.default_rng(0).permutation(whole.n_rows)
    return whole.take_rows(np.sort(order[::2])), whole.take_rows(np.sort(order[1::2]))


def table(records: list[dict[str, Any]]) -> Iterator[str]:
    """Markdown: the means of SLL, and what it is ahead of each pair of rivals."""
    cells: dict[tuple[str, int], dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
    for record in records:
        cells[record["dataset"], record["n_rows"]][record["method"], record["seed"]] = record
    for title, rivals in RIVALS.items():
        total = []
        yield f"\nSLL minus the better of {title}\n\n| set | rows | P@1 | P@3 | P@5 | AUC | AP |"
        yield f"|---{'|--:' * 6}|"
        for (name, n_rows), found in cells.items():
            seeds = sorted({seed for _, seed in found})
            methods = [DEFAULT, *rivals]
            if any((method, seed) not in found for method in methods for seed in seeds):
                continue
            values = np.array([[[found[at, seed][key] for key in MEASURES] for seed in seeds] for at in methods], float)
            better = 1 + values[1:].mean(axis=1).argmax(axis=0)
            ahead = values[0] - np.stack([values[at, :, key] for key, at in enumerate(better)], axis=1)
            error = ahead.std(axis=0, ddof=1) / np.sqrt(len(seeds)) if len(seeds) > 1 else np.zeros(len(MEASURES))
            total.append(ahead.mean(axis=0))
            shown = [f"{gain:+.2f} ({spread:.2f})" for gain, spread in zip(total[-1], error, strict=True)]
            yield f"| {name} | {n_rows:,} | {' | '.join(shown)} |"
        if total:
            yield f"| mean of {len(total)} | | {' | '.join(f'{value:+.2f}' for value in np.mean(total, axis=0))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--methods", default=ALL)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a file of records to add to")
    options = parser.parse_args()
    records = []
    if options.keep and options.keep.exists():
        records = [json.loads(line) for line in options.keep.read_text().splitlines()]
    for name in options.names:
        train, test = read(options.folder, name)
        for seed in range(options.seeds):
            task = BudgetTask(name, seed, BUDGETS, parse_methods(options.methods))
            with one_thread():
                found = [asdict(record) for record in run_on(task, train, test)]
            records += found
            if options.keep:
                with options.keep.open("a") as file:
                    file.writelines(json.dumps(record) + "\n" for record in found)
    print("\n".join(table(records)))


if __name__ == "__main__":
    main()
