"""The arrays of a model as npz, which ``numpy.load(path, allow_pickle=False)`` reads."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from streamlabel.data._bytes import replacing
from streamlabel.exceptions import DataError
from streamlabel.exchange.linear import LinearModel, linear_model

__all__ = ["arrays_of", "export_npz"]


def export_npz(model: Any, path: str | os.PathLike[str], *, dtype: str = "float64") -> None:
    """Write ``label_names`` (unicode), ``coef`` (m, d), ``intercept``, ``thresholds``, ``slope``, ``offset`` (m,).

    ``scores = X @ coef.T + intercept``; the last two give probabilities, ``1 / (1 + exp(-(slope * scores + offset)))``.
    """
    parts = linear_model(model)
    with replacing(path) as handle:
        np.savez(handle, allow_pickle=False, label_names=np.array(parts.label_names), **arrays_of(parts, dtype))


def arrays_of(parts: LinearModel, dtype: str) -> dict[str, Any]:
    """The numbers, contiguous, as float64 or float32."""
    if dtype not in ("float64", "float32"):
        raise DataError(f"dtype is {dtype!r}; use 'float64' or 'float32'")
    names = ("coef", "intercept", "thresholds", "slope", "offset")
    return {name: np.ascontiguousarray(getattr(parts, name), dtype=dtype) for name in names}
