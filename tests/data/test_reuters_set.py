"""The script that makes the set of Reuters news, on news written here."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from streamlabel.data.load import load_dataset

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "reuters_set.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("reuters_set", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def news(day: str, text: str, **labels: list[str]) -> dict:
    return {"date": f" {day} 15:01:01.79", "title": text, "id": "1", **labels}


def test_news_are_split_by_date_and_rare_labels_are_left_out(script, tmp_path):
    old = [news("7-APR-1987", "wheat prices", topics=["wheat"], places=["usa"]) for _ in range(10)]
    few = [news("26-FEB-1987", "gold", topics=["gold"], organisations=["opec"]) for _ in range(9)]
    late = [news("8-APR-1987", "wheat and gold", topics=["wheat", "gold"]), news("9-APR-1987", "gold", topics=["gold"])]
    unusable = [news("26-FEB-1987", "nothing"), news("26-FEB-1987", "", topics=["wheat"])]
    (tmp_path / "a.json").write_text(json.dumps([*old, *few, *late, *unusable]))
    script.write_set(script.read_news(tmp_path), tmp_path / "made")
    train, test = (load_dataset(tmp_path / "made", split=split) for split in ("train", "test"))
    assert train.label_names == ("place usa", "wheat")
    assert train.Y.toarray().tolist() == [[1, 1]] * 10
    assert test.Y.toarray().tolist() == [[0, 1]]
    assert (train.n_features, test.n_features) == (3, 3)  # the words of training news: wheat, prices, gold


def test_a_folder_without_news_is_one_message(script, tmp_path):
    with pytest.raises(SystemExit, match="has no JSON files"):
        script.read_news(tmp_path)
