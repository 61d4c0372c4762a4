"""One door for every format that a model is written in."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamlabel.exceptions import DataError
from streamlabel.exchange.csv_export import export_csv
from streamlabel.exchange.jsonl_export import export_jsonl
from streamlabel.exchange.mlflow_export import export_mlflow
from streamlabel.exchange.npz_export import export_npz
from streamlabel.exchange.onnx_export import export_onnx
from streamlabel.exchange.safetensors_export import export_safetensors
from streamlabel.exchange.sklearn_export import export_sklearn

__all__ = ["FORMATS", "export", "format_of_ending"]

FORMATS: dict[str, Callable[..., None]] = {
    "csv": export_csv,
    "jsonl": export_jsonl,
    "mlflow": export_mlflow,
    "npz": export_npz,
    "onnx": export_onnx,
    "safetensors": export_safetensors,
    "sklearn": export_sklearn,
}
_FORMAT_OF_SUFFIX = {f".{name}": name for name in FORMATS} | {".skops": "sklearn"}


def export(model: Any, path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Path:
    """Write a fitted classifier, a tagger or a stored model for another tool; the path that was written.

    Parameters
    ----------
    path : a file; for MLflow a directory that is not there yet
    format : one of `FORMATS`; None: by the ending (``.skops`` is "sklearn")
    options : those of the format (``k`` for ONNX, ``keep`` for scikit-learn, ``dtype`` for the arrays)

    Raises
    ------
    DataError
        The format is not known, or the model is not fitted.
    MissingExtraError
        The package of the format is not installed; the message has the line that installs it.
    """
    name = format or format_of_ending(path)
    if name not in FORMATS:
        given = f"format {name!r}" if name else f"the ending {Path(path).suffix!r}"
        raise DataError(f"{given} is not known; pass format=, one of {', '.join(FORMATS)}", source=path)
    FORMATS[name](model, path, **options)
    return Path(path)


def format_of_ending(path: str | os.PathLike[str]) -> str | None:
    """The format that the ending of a path stands for."""
    return _FORMAT_OF_SUFFIX.get(Path(path).suffix.lower())
