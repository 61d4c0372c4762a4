"""Files to try a tagger on: tagged texts without one of their tags, and answers for that tag."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from streamlabel.data._bytes import replacing
from streamlabel.data.corpus import make_news_corpus
from streamlabel.data.records import rows_of_names
from streamlabel.exceptions import ConflictError, DataError

__all__ = ["HELD_BACK", "example_files", "starter_files", "write_files"]

HELD_BACK = "avian influenza"
ANSWERS = 6
STARTER = (
    ("Hens were culled on two farms after birds fell ill.", ["farming", "health"]),
    ("The hospital opened a new ward for children.", ["health"]),
    ("Milk prices fell for the third month.", ["farming", "economy"]),
    ("The central bank left interest rates unchanged.", ["economy"]),
    ("Vaccines against flu reached the clinics.", ["health"]),
    ("A late frost damaged the apple harvest.", ["farming"]),
)


def example_files(n_texts: int = 600, seed: int = 0) -> dict[str, str]:
    """``texts.jsonl``, ``yes.txt`` and ``no.txt``, of the embedded news corpus: name -> content.

    No tag of ``texts.jsonl`` is called `HELD_BACK`; the answers are about texts that are not in it.
    """
    corpus = make_news_corpus(n_texts + n_texts // 3, random_state=seed)
    tags = list(rows_of_names(corpus.Y, corpus.label_names))
    kept = [i for i in range(corpus.n_rows) if i % 4][:n_texts]
    asked = sorted(set(range(corpus.n_rows)) - set(kept))
    yes = [i for i in asked if HELD_BACK in tags[i]][:ANSWERS]
    if not yes:
        raise DataError(f"so few texts have nothing on {HELD_BACK}; take more than {n_texts}")
    no = [i for i in asked if HELD_BACK not in tags[i]][: 2 * ANSWERS]
    records = [{"text": corpus.texts[i], "labels": [tag for tag in tags[i] if tag != HELD_BACK]} for i in kept]
    return {
        "texts.jsonl": "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records),
        "yes.txt": "".join(f"{corpus.texts[i]}\n" for i in yes),
        "no.txt": "".join(f"{corpus.texts[i]}\n" for i in no),
    }


def starter_files() -> dict[str, str]:
    """The same files with a few lines each, to be replaced by one's own."""
    lines = [json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in STARTER]
    return {
        "texts.jsonl": "".join(lines),
        "yes.txt": "Bird flu was found in a flock of ducks.\nA second farm reported bird flu.\n",
        "no.txt": "Wheat exports rose.\nA clinic closed for repairs.\n",
    }


def write_files(folder: str | os.PathLike[str], files: Mapping[str, str]) -> list[Path]:
    """Write them into a folder, which is made where it is missing; nothing is overwritten."""
    place = Path(folder)
    paths = [place / name for name in files]
    taken = [path for path in paths if path.exists()]
    if taken:
        raise ConflictError(f"{taken[0]} is there already; choose another folder, or move it away")
    place.mkdir(parents=True, exist_ok=True)
    for path, content in zip(paths, files.values(), strict=True):
        with replacing(path) as handle:
            handle.write(content.encode())
    return paths
