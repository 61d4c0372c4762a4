"""The state of a fitted model, as one frozen value.

The estimator holds a `ModelState` and replaces it in one step; a store writes it down and puts it together again;
taggers, explanations and exports read it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.streaming.blocks import ClassifierBlocks, LabelNames, SharedList
from streamlabel.streaming.calibration import Decisions
from streamlabel.streaming.kept_rows import FitMemory, LabelAnswers
from streamlabel.streaming.pruned import pruned
from streamlabel.streaming.trials import LabelReport, sketch
from streamlabel.types import CSC, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LabelBatch:
    """A batch of k labels as they enter or leave a model.

    weights : (d, k), or a csc_array;   intercept : (k,);   codes : csc_array (labels, k)
    positives : the positive rows of labels that were answered on every row of `fit` and may enter codes by these
        answers; None for the others
    """

    names: tuple[str, ...]
    weights: Any
    intercept: FloatArray
    decisions: Decisions
    reports: tuple[LabelReport, ...]
    codes: CSC
    positives: Sequence[IntArray | None] = ()

    def code(self, label: int) -> tuple[IntArray, FloatArray]:
        """The labels in the code of one of these labels, and their weights."""
        return column(self.codes, label)


@dataclass(frozen=True, eq=False)
class ModelState:
    """Everything that a fitted model knows. An arrival makes a new one, which shares what did not change.

    names, classifiers, decisions, reports : label by label, in order of arrival
    codes : (first label, block of columns (labels known then, k)), by the first label
    loss, beta, strength : of `fit`; beta is None, and strength (beta for rows of unit length) NaN, for adopted models
    settings : the parameters that what `fit` learned depends on
    n_fitted : the labels of `fit`, which come first
    memory, answers : the rows of `fit`, and the answers on them; None for a model without rows
    scored : the labels that may enter a code by their scores only
    basis : the directions of the labels of `fit`, for the metric; None before it is first used
    classes : what `fit` was given instead of labels, if that was a vector of classes
    least : the weights that are smaller than this are not kept (`streaming.pruned`); None: all are
    """

    names: LabelNames
    classifiers: ClassifierBlocks
    decisions: Decisions
    reports: SharedList[LabelReport]
    codes: SharedList[tuple[int, CSC]]
    loss: str
    settings: Mapping[str, Any]
    n_fitted: int
    beta: float | None = None
    strength: float = np.nan
    memory: FitMemory | None = None
    answers: LabelAnswers | None = None
    scored: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    basis: FloatArray | None = None
    classes: NDArray[Any] | None = None
    least: float | None = None

    @classmethod
    def begin(
        cls,
        names: Iterable[str] | SharedList[str],
        classifiers: ClassifierBlocks,
        decisions: Decisions,
        reports: Iterable[LabelReport],
        codes: CSC | None = None,
        **facts: Any,
    ) -> ModelState:
        """Make a model of its first labels; ``facts`` are the other fields."""
        known = LabelNames.of(names)
        codes = sparse.csc_array((len(known), len(known))) if codes is None else codes
        facts.setdefault("n_fitted", len(known))
        return cls(known, classifiers, decisions, SharedList.of(reports), SharedList.of([(0, codes)]), **facts)

    def with_rows(
        self, memory: FitMemory, atoms: IntArray, dictionary: int | str, later: Sequence[tuple[int, IntArray]] = ()
    ) -> ModelState:
        """The same model with the rows of `fit`, so that it can go on learning.

        atoms : the labels of `fit` that may enter a code
        later : (label number, positive rows) of labels that arrived later, with answers on all rows
        """
        n_fitted = int(memory.labels.shape[1])
        answers = LabelAnswers(atoms, memory.labels if len(atoms) == n_fitted else memory.labels[:, atoms])
        for number, positives in later:
            answers = answers.appended(number, [positives])
        scored = np.empty(0, dtype=np.intp)
        if dictionary == "all":
            scored = np.setdiff1d(np.arange(n_fitted, len(self.names)), answers.labels).astype(np.intp)
        return replace(self, n_fitted=n_fitted, memory=memory, answers=answers, scored=scored)

    @property
    def atoms(self) -> IntArray:
        """The labels of `fit` that may enter a code by their answers."""
        return (
            np.empty(0, np.intp) if self.answers is None else self.answers.labels[self.answers.labels < self.n_fitted]
        )

    def fitted_classifiers(self, labels: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Weights (d, f) and intercepts (f,) of the labels of `fit`, or of those that trials use; or some of these."""
        few = None if self.memory is None else self.memory.few
        numbers = np.arange(self.n_fitted) if few is None else few
        numbers = numbers if labels is None else numbers[labels]
        return self.classifiers.weights(numbers), self.classifiers.intercept[numbers]

    def directions(self) -> FloatArray:
        """The directions (d, r) of the metric: the basis, or what trials have made, or made now."""
        if self.basis is not None:
            return self.basis
        made = None if self.memory is None else self.memory.directions
        return sketch(self.fitted_classifiers()[0]) if made is None else made[0]

    def neighbours(self, label: str, k: int) -> list[tuple[str, float]]:
        """The k labels with the largest weights (by size) in the code of a label, with sign; [] if it has none."""
        number = self.names.number(label)
        labels, values = column(*self._block_of(number))
        order = np.argsort(-np.abs(values), kind="stable")[:k]
        return [(self.names[int(labels[i])], float(values[i])) for i in order]

    def grown(self, new: LabelBatch, **changed: Any) -> ModelState:
        """The same labels, then new ones; ``changed`` are further fields that are other ones now."""
        weights = new.weights if self.least is None else pruned(new.weights, self.least)
        return replace(
            self,
            names=self.names.appended(new.names),
            classifiers=self.classifiers.appended(weights, new.intercept),
            decisions=self.decisions.appended(new.decisions),
            reports=self.reports.appended(new.reports),
            codes=self.codes.appended([(len(self.names), new.codes)]),
            **changed,
        )

    def labels(self, first: int = 0, stop: int | None = None, *, answers: bool = True) -> LabelBatch:
        """The labels from number ``first`` to before ``stop``; ``answers`` False leaves their positive rows out."""
        stop = len(self.names) if stop is None else stop
        numbers, chosen = np.arange(first, stop), slice(first, stop)
        return LabelBatch(
            tuple(self.names[number] for number in numbers.tolist()),
            self.classifiers.columns(numbers),
            self.classifiers.intercept[chosen],
            self.decisions.take(chosen),
            tuple(self.reports[number] for number in numbers.tolist()),
            self._codes(first, stop),
            [None] * len(numbers) if self.answers is None or not answers else self.answers.positives(numbers),
        )

    def without(self, number: int) -> ModelState:
        """The same model without one label, which is not one of `fit` unless its rows are not kept.

        Codes of other labels lose their entry for it, as the relation has no other end any more.
        """
        return self._taken(np.delete(np.arange(len(self.names)), number), self.n_fitted - (number < self.n_fitted))

    def moved(self, number: int, n_fitted: int) -> ModelState:
        """The same model with its last label at this place; ``n_fitted`` is then the number of labels of `fit`."""
        return self._taken(np.insert(np.arange(len(self.names) - 1), number, len(self.names) - 1), n_fitted)

    def _taken(self, kept: IntArray, n_fitted: int) -> ModelState:
        """The same model with these labels only, in this order."""
        everything = self.labels()
        codes = sparse.csc_array(everything.codes[kept][:, kept])
        smaller = ModelState.begin(
            [everything.names[old] for old in kept.tolist()],
            self.classifiers.empty().appended(everything.weights[:, kept], everything.intercept[kept]),
            everything.decisions.take(kept),
            [everything.reports[old] for old in kept.tolist()],
            codes,
            loss=self.loss, settings=self.settings, beta=self.beta, strength=self.strength, basis=self.basis,
            n_fitted=n_fitted, least=self.least,
        )  # fmt: skip
        if self.memory is None:
            return smaller
        later = [
            (place, rows)
            for place, old in enumerate(kept.tolist())
            if old >= self.n_fitted and (rows := everything.positives[old]) is not None
        ]
        return smaller.with_rows(self.memory, self.atoms, self.settings["dictionary"], later)

    def _place(self, number: int) -> int:
        """The place of the block with the code of a label."""
        return bisect_right(self.codes, number, key=lambda block: block[0]) - 1

    def _block_of(self, number: int) -> tuple[CSC, int]:
        """The block with the code of a label, and its place there."""
        start, block = self.codes[self._place(number)]
        return block, number - start

    def _codes(self, first: int, stop: int) -> CSC:
        """The codes of some labels, (labels, stop - first)."""
        found = []
        for place in range(self._place(first), len(self.codes)):
            start, block = self.codes[place]
            if start >= stop:
                break
            inside = slice(max(first - start, 0), max(min(stop - start, block.shape[1]), 0))
            if inside.start < inside.stop:
                indptr = block.indptr[inside.start : inside.stop + 1]
                span = slice(indptr[0], indptr[-1])
                parts = (block.data[span], block.indices[span], indptr - indptr[0])
                found.append(sparse.csc_array(parts, shape=(len(self.names), inside.stop - inside.start)))
        if not found:
            return sparse.csc_array((len(self.names), 0))
        return found[0] if len(found) == 1 else sparse.csc_array(sparse.hstack(found, format="csc"))


def column(matrix: CSC, number: int) -> tuple[IntArray, FloatArray]:
    """The rows of one column that are not zero, and their values."""
    span = slice(matrix.indptr[number], matrix.indptr[number + 1])
    return matrix.indices[span], matrix.data[span]
