"""A data set of eight rows with its catalogue entry, and its files in every form, written by hand."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
from scipy import sparse

from streamlabel.data.catalogue import Entry

# Rows of (labels, features); five for training, three for testing. 3 labels, 4 features, 10 assignments.
ROWS = [
    ((0, 1), {0: 1.0, 2: 0.5}),
    ((2,), {1: 2.0}),
    ((), {3: 1.5}),
    ((0,), {0: 0.25, 3: 4.0}),
    ((1, 2), {1: 1.0, 2: 1.0}),
    ((0, 2), {2: 3.0}),
    ((1,), {0: 1.0, 1: 1.0}),
    ((1,), {3: 0.125}),
]
N_TRAIN = 5

TINY = Entry(
    name="tiny-3",
    aliases=("tiny",),
    description="eight rows",
    n_rows=MappingProxyType({"train": 5, "test": 3}),
    n_features=4,
    n_labels=3,
    labels_per_example="1.25",
    examples_per_label="3.33",
    averages_over=("train", "test"),
    statistics_from="this file",
    form="XC text",
    source="this file",
    licence="none needed",
    by_hand="write them yourself",
)


def expected(split: str) -> tuple[np.ndarray, np.ndarray]:
    """X and Y of the split as dense arrays, built from ROWS alone."""
    rows = ROWS[:N_TRAIN] if split == "train" else ROWS[N_TRAIN:]
    X, Y = np.zeros((len(rows), 4)), np.zeros((len(rows), 3), dtype=np.int8)
    for i, (labels, features) in enumerate(rows):
        Y[i, list(labels)] = 1
        for j, value in features.items():
            X[i, j] = value
    return X, Y


def xc_text(rows: list[tuple[tuple[int, ...], dict[int, float]]]) -> str:
    return f"{len(rows)} 4 3\n" + svmlight(rows, first_feature=0)


def svmlight(rows: list[tuple[tuple[int, ...], dict[int, float]]], first_feature: int = 1) -> str:
    lines = []
    for labels, features in rows:
        values = " ".join(f"{j + first_feature}:{value}" for j, value in features.items())
        lines.append(",".join(map(str, labels)) + " " + values + "\n")
    return "".join(lines)


def arff(rows: list[tuple[tuple[int, ...], dict[int, float]]]) -> str:
    head = "@relation tiny\n" + "".join(f"@attribute f{j} numeric\n" for j in range(4))
    head += "".join(f"@attribute l{j} {{0,1}}\n" for j in range(3)) + "@data\n"
    lines = []
    for labels, features in rows:
        cells = [f"{j} {value}" for j, value in features.items()] + [f"{4 + j} 1" for j in labels]
        lines.append("{" + ",".join(cells) + "}\n")
    return head + "".join(lines)


def write_form(form: str, folder: Path) -> Path:
    """Write the set into the folder in the form named so."""
    folder.mkdir(parents=True, exist_ok=True)
    splits = {"train": ROWS[:N_TRAIN], "test": ROWS[N_TRAIN:]}
    for split, rows in splits.items():
        if form == "xc":
            (folder / f"{split}.txt").write_text(xc_text(rows))
        elif form == "xc named":
            (folder / f"Tiny_{split}.txt").write_text(xc_text(rows))
        elif form == "svmlight":
            (folder / f"{split}-exp1.svm").write_text(svmlight(rows))
        elif form == "mulan":
            (folder / f"tiny-{split}.arff").write_text(arff(rows))
        elif form == "npz":
            X, Y = expected(split)
            sparse.save_npz(folder / f"X_{split}.npz", sparse.csr_matrix(X))
            sparse.save_npz(folder / f"Y_{split}.npz", sparse.csr_matrix(Y))
    if form == "mulan":
        labels = "".join(f'<label name="l{j}"></label>\n' for j in range(3))
        (folder / "tiny.xml").write_text(f'<labels xmlns="http://mulan.sourceforge.net/labels">\n{labels}</labels>\n')
    elif form == "npz":
        (folder / "labels.txt").write_text("a\nb\nc\n")
    elif form == "xc single":
        write_single(folder)
    return folder


def write_single(folder: Path) -> None:
    """One file in another order than the splits: column 1 of the split files puts it right, column 0 swaps two rows."""
    shuffled = [ROWS[i] for i in (7, 0, 1, 2, 3, 4, 5, 6)]
    (folder / "Tiny_data.txt").write_text(xc_text(shuffled))
    (folder / "tiny_trSplit.txt").write_text("3 2\n2 3\n4 4\n5 5\n6 6\n")
    (folder / "tiny_tstSplit.txt").write_text("7 7\n8 8\n1 1\n")


FORMS = {
    "xc": "XC text",
    "xc named": "XC text",
    "xc single": "XC text, single file",
    "svmlight": "svmlight",
    "mulan": "Mulan ARFF + XML",
    "npz": "npz",
}
