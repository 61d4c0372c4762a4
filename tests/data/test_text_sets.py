"""The script that makes sets of texts, on news and packages written here."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from streamlabel.data.load import load_dataset

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "text_sets.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("text_sets", SCRIPT)
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
    script.write_set(script.read_news(tmp_path), tmp_path / "made", 2000)
    train, test = (load_dataset(tmp_path / "made", split=split) for split in ("train", "test"))
    assert train.label_names == ("place usa", "wheat")
    assert train.Y.toarray().tolist() == [[1, 1]] * 10
    assert test.Y.toarray().tolist() == [[0, 1]]
    assert (train.n_features, test.n_features) == (3, 3)  # the words of training news: wheat, prices, gold


def test_a_folder_without_news_is_one_message(script, tmp_path):
    with pytest.raises(SystemExit, match="has no JSON files"):
        script.read_news(tmp_path)


def package(name: str, md5: str, tags: str, source: str = "") -> str:
    lines = [f"Package: {name}", f"Description-md5: {md5}", f"Tag: {tags}"]
    return "\n".join(lines + ([f"Source: {source}"] if source else [])) + "\n\n"


def test_packages_of_one_source_are_one_text_and_their_tags_its_labels(script, tmp_path):
    packages = [package(f"game-{number:02}", "a", "use::gameplaying,\n role::program") for number in range(18)]
    packages += [package("game-00-data", "b", "role::app-data", "game-00 (1.0)"), package("none", "a", "special::meta")]
    packages += ["Package: untagged\nDescription-md5: a\n\n"]
    with gzip.open(tmp_path / "Packages.gz", "wt") as file:
        file.write("".join(packages))
    (tmp_path / "Translation-en").write_text(
        "Description-md5: a\nDescription-en: a game\n It is\n .\n fun.\n\nDescription-md5: b\nDescription-en: files\n"
    )
    texts = script.read_packages(tmp_path / "Packages.gz", tmp_path / "Translation-en")
    assert len(texts) == 18
    assert sum(one.training for one in texts) == 12
    assert {tuple(one.labels) for one in texts} == {("role::program", "use::gameplaying")}
    assert texts[3].text == "game 03\na game\nIt is\n.\nfun."
    script.write_set(texts, tmp_path / "made", 5000)
    assert load_dataset(tmp_path / "made", split="test").n_rows == 6
