"""Annotated texts with what was asked, in little memory whatever was asked of whom."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from streamlabel.data._limits import check_memory
from streamlabel.exceptions import NotFoundError
from streamlabel.results import CSR, BoolArray, IntArray, TextDataset

__all__ = ["Annotations"]


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """Texts, their labels, and which cells of Y are answers.

    A cell (text, label) was asked if its text is in ``whole_rows``, or is not and the cell is in ``exceptions``; if
    both, it was not. So a text that was shown with all labels and one that was asked about a single label both take
    next to nothing.

    Attributes
    ----------
    dataset : the texts; ``Y`` is 1 where the answer was yes, 0 where it was no or is unknown
    whole_rows : (n,) bool, texts of which every label was asked but for the exceptions
    exceptions : csr_array (n, m), 1 where a cell differs from its row
    n_ties : cells that are unknown because as many said yes as no
    """

    dataset: TextDataset
    whole_rows: BoolArray
    exceptions: CSR
    n_ties: int = 0

    def annotated(self, labels: Iterable[str] | None = None) -> BoolArray:
        """(n, k) bool for these labels (all by default): what was asked, as `add_labels` takes it."""
        columns = np.arange(self.dataset.n_labels) if labels is None else np.array([self.column(x) for x in labels])
        what = f"what was asked of {self.dataset.n_rows} texts and {len(columns)} labels"
        check_memory(3 * self.dataset.n_rows * len(columns), what, source=self.dataset.source)
        differs = self.exceptions[:, columns.astype(np.intp)].toarray().astype(bool)
        return np.asarray(self.whole_rows[:, None] ^ differs)

    def answers(self, label: str) -> tuple[list[str], list[str]]:
        """The texts that were answered yes and those that were answered no for one label."""
        asked = self.annotated([label])[:, 0]
        yes = self.dataset.Y[:, [self.column(label)]].toarray()[:, 0] > 0
        texts = self.dataset.texts
        return [texts[int(i)] for i in np.flatnonzero(asked & yes)], [
            texts[int(i)] for i in np.flatnonzero(asked & ~yes)
        ]

    @property
    def unanswered(self) -> IntArray:
        """The texts of which nothing is known: skipped, rejected, not yet seen by anybody, or tied on every label."""
        differ = np.diff(self.exceptions.indptr)
        return np.flatnonzero(np.where(self.whole_rows, self.dataset.n_labels - differ, differ) == 0)

    def column(self, label: str) -> int:
        """The number of a label."""
        name = unicodedata.normalize("NFC", label)
        if name not in self.dataset.label_names:
            raise NotFoundError(f"no label is called {label!r}; there are {self.dataset.n_labels} others")
        return self.dataset.label_names.index(name)

    def __repr__(self) -> str:
        data = self.dataset
        return (
            f"Annotations({data.n_rows} texts, {data.n_labels} labels, {len(self.unanswered)} without an answer, "
            f"source={data.source!r})"
        )
