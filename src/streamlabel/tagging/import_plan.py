"""Import of an annotation tool's answers: the plan of what to do, label by label, and its execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from streamlabel.data.annotations import Annotations
from streamlabel.errors import DataError, NotFoundError
from streamlabel.tagging.learn_report import LearnReport
from streamlabel.tagging.tagger import Tagger


@dataclass(frozen=True)
class Plan:
    """A plan of an import: what becomes of each label.

    fitted : labels of a new tagger;   learned : labels that arrive in it, or in one that is there
    left : label -> why nothing is done;   n_yes, n_no : answers of each label
    rows : the texts that a new tagger is fitted on
    """

    fitted: tuple[str, ...]
    learned: tuple[str, ...]
    left: dict[str, str]
    n_yes: dict[str, int]
    n_no: dict[str, int]
    rows: tuple[int, ...] = field(default=(), repr=False)

    def what(self, name: str) -> str:
        """The fate of a label in a word, for a person."""
        return self.left.get(name) or ("fitted" if name in self.fitted else "learned")


def plan_import(read: Annotations, known: Sequence[str] | None, only: Sequence[str] = ()) -> Plan:
    """Plan an import; ``known`` are the labels of the model, None if there is none yet.

    only : these labels; all by default
    """
    data = read.dataset
    for name in only:
        if name not in data.label_names:
            raise NotFoundError(f"{data.source}: no label is called {name!r}; it has {data.n_labels} others")
    names = [name for name in data.label_names if not only or name in only]
    asked = read.annotated(names)
    yes = data.Y[:, [data.label_names.index(name) for name in names]].toarray().astype(bool) & asked
    n_yes = dict(zip(names, yes.sum(axis=0).tolist(), strict=True))
    n_no = dict(zip(names, (asked & ~yes).sum(axis=0).tolist(), strict=True))
    left = {name: "left: it is known already" for name in names if known is not None and name in known}
    left |= {name: "left: nobody said yes" for name in names if not n_yes[name]}
    rows = np.flatnonzero(asked.any(axis=1))
    if known is not None:
        return Plan((), tuple(name for name in names if name not in left), left, n_yes, n_no)
    everywhere = np.asarray(asked[rows].all(axis=0)).tolist()
    fitted = tuple(name for name, all_ in zip(names, everywhere, strict=True) if all_ and name not in left)
    learned = tuple(name for name in names if name not in fitted and name not in left)
    if not fitted:
        raise DataError(
            "no label was asked of every answered text, so there is nothing to begin with; fit a model on a file of "
            "tagged texts, then import into it",
            source=data.source,
        )
    return Plan(fitted, learned, left, n_yes, n_no, tuple(rows.tolist()))


def begin_tagger(plan: Plan, read: Annotations, path: Path, *, actor: str = "") -> Tagger:
    """Fit a new tagger on the labels of the plan that were asked of every text; it is stored, and open to learn."""
    data = read.dataset
    rows, columns = list(plan.rows), [data.label_names.index(name) for name in plan.fitted]
    tagger = Tagger().fit([data.texts[i] for i in rows], data.Y[rows][:, columns], plan.fitted)
    tagger.save(path, actor=actor)
    return Tagger.open(path, "a", actor=actor)


def carry_out(plan: Plan, read: Annotations, living: Tagger) -> list[LearnReport]:
    """Learn the labels of a plan that arrive in a tagger, as `Tagger.learn` does. Returns their reports."""
    return living.learn_many({name: read.answers(name) for name in plan.learned})
