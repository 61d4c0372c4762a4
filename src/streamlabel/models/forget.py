"""A model without one of its labels, so that this one can be learned again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from streamlabel.models.gather import Decisions
from streamlabel.models.snapshot import export_facts, export_labels, export_rows, import_model
from streamlabel.models.state import ClassifierBlocks
from streamlabel.models.streaming import StreamingLabelClassifier

__all__ = ["without_label"]


def without_label(model: StreamingLabelClassifier, number: int) -> StreamingLabelClassifier:
    """The same model without label ``number``, which must not be one of `fit`. The others keep their classifiers.

    Codes of other labels lose their entry for it, as the relation has no other end any more.
    """
    kept = np.delete(np.arange(len(model._names)), number)
    states, rows = export_labels(model, 0), export_rows(model)
    later = [
        (int(place), states.positives[old])
        for place, old in enumerate(kept.tolist())
        if old >= model._n_fitted and states.positives[old] is not None
    ]
    taken = ClassifierBlocks(model._classifiers.n_features).appended(
        states.weights[:, kept], np.asarray(states.intercept)[kept]
    )
    decisions = states.decisions
    smaller = import_model(
        export_facts(model),
        [states.names[old] for old in kept.tolist()],
        taken,
        Decisions(decisions.thresholds[kept], decisions.slope[kept], decisions.offset[kept]),
        [states.reports[old] for old in kept.tolist()],
        sparse.csc_array(model.structure_[kept][:, kept]),
        None if rows is None else replace(rows, trials=dict(rows.trials)),
        later,  # type: ignore[arg-type]
    )
    smaller._ridge, smaller._memory = model._ridge, model._memory
    if rows is None:
        smaller._n_fitted = model._n_fitted - (number < model._n_fitted)
    return smaller
