"""import and export: annotations become labels, unknown does not become no, exports are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import Result

from streamlabel import ModelStore, Tagger
from tagged_texts import tagged_texts

Call = Callable[..., Result]
Ask = Callable[..., Any]
DATA = tagged_texts(300, 100)


def prodigy(path: Path, n_texts: int, *, late: str, born: int) -> Path:
    """Choices of Prodigy; the late label was offered from text ``born`` on."""
    lines = []
    for i in range(n_texts):
        offered = ["health", "sport", late] if i >= born else ["health", "sport"]
        accept = [name for name in offered if name in DATA.tags[i] or (name == late and i in DATA.rows["football"])]
        options = [{"id": name, "text": name} for name in offered]
        record = {"text": DATA.texts[i], "options": options, "accept": accept, "answer": "accept", "_input_hash": i}
        lines.append(json.dumps(record))
    lines.append(json.dumps({**record, "text": "skipped", "accept": [], "answer": "ignore", "_input_hash": -1}))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_new_model_is_fitted_on_what_all_were_asked(tmp_path: Path, call: Call, ask: Ask) -> None:
    path, model = prodigy(tmp_path / "export.jsonl", 200, late="football", born=100), tmp_path / "model"
    would = ask("import", model, path, "--dry-run")
    assert not model.exists()
    assert {one["label"]: one["what"] for one in would["labels"]} == {
        "health": "fitted", "sport": "fitted", "football": "learned",
    }  # fmt: skip
    did = ask("import", model, path)
    assert (did["revision"], did["n_unanswered"]) == (2, 1)
    record = ModelStore.open(model).labels()[-1]
    n_yes = sum(100 <= i < 200 for i in DATA.rows["football"])
    assert (record.name, record.n_yes) == ("football", n_yes)
    assert Tagger.open(model).estimate("football").n_pool == 50  # of 100 texts that were not asked half stand for no
    assert "learned" in call("import", tmp_path / "again", path).stdout


def test_a_model_learns_what_it_does_not_know(model: Path, tmp_path: Path, ask: Ask) -> None:
    path = prodigy(tmp_path / "export.jsonl", 200, late="ball games", born=50)
    before = Tagger.open(model).classifier_.decision_function(Tagger.open(model).vectorizer_.transform(DATA.unseen))
    found = ask("import", model, path)
    what = {one["label"]: one["what"] for one in found["labels"]}
    assert what["ball games"] == "learned"
    assert what["health"] == "left: it is known already"
    after = Tagger.open(model)
    assert after.label_names_[-1] == "ball games"
    scores = after.classifier_.decision_function(after.vectorizer_.transform(DATA.unseen))
    assert np.array_equal(scores[:, : before.shape[1]], before)


def test_answers_of_people_are_kept_beside_the_label(model: Path, tmp_path: Path, ask: Ask) -> None:
    rows = []
    for name, n_yes, n_no in (("plenty", 8, 60), ("few", 8, 3)):
        for i in range(n_yes + n_no):
            answer = "accept" if i < n_yes else "reject"
            rows.append({"text": DATA.texts[i], "label": name, "answer": answer, "_input_hash": i})
    path = tmp_path / "binary.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ask("import", model, path)
    with Tagger.open(model, "a") as tagger:
        for name, n_no in (("plenty", 60), ("few", 3)):
            report = tagger.learn_more(name, no=[DATA.texts[100]])
            assert (report.n_yes, report.n_no) == (8, n_no + 1)


def test_an_export_without_a_beginning_is_explained(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "binary.jsonl"
    rows = [{"text": f"text {i}", "label": "ab"[i % 2], "answer": "accept", "_input_hash": i} for i in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "nothing to begin with" in call("import", tmp_path / "model", path, code=1).stderr
    assert not (tmp_path / "model").exists()
    call("import", tmp_path / "model", path, "--label", "nobody", code=3)
    call("import", tmp_path / "model", tmp_path / "none.jsonl", code=3)


def test_exports(model: Path, tmp_path: Path, call: Call, ask: Ask) -> None:
    store = ModelStore.open(model)
    assert ask("export", model, tmp_path / "labels.csv")["n_labels"] == len(store.label_names)
    call("export", model, tmp_path / "arrays.npz")
    with np.load(tmp_path / "arrays.npz", allow_pickle=False) as arrays:
        assert tuple(arrays["label_names"]) == store.label_names
    call("export", model, tmp_path / "labels.csv", code=4)
    call("export", model, tmp_path / "labels.csv", "--force")
    assert "would write" in call("export", model, tmp_path / "other.csv", "--dry-run").stdout
    assert not (tmp_path / "other.csv").exists()
    call("export", model, tmp_path / "labels.what", code=2)
    call("export", model, tmp_path / "more.npz", "-k", 3, code=2)
    call("export", model, tmp_path / "labels.what", "--to", "jsonl")
    assert len((tmp_path / "labels.what").read_text().splitlines()) == len(store.label_names)
