"""Export as an MLflow pyfunc directory: arrays and the code that reads them, no pickle. Extra ``mlflow``.

MLflow runs the code file of a directory when it loads it, as it does with every model: load only what you trust.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from streamlabel._version import __version__
from streamlabel.errors import ConflictError, DataError, MissingExtraError
from streamlabel.exchange.linear import export_npz, linear_model
from streamlabel.tagging.tagger import Tagger
from streamlabel.tagging.vectorizers import OWN

CODE = "mlflow_model.py.txt"
PROGRESS_BAR = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"


def export_mlflow(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a directory for ``mlflow.pyfunc.load_model``.

    Its `predict` takes rows of features (a classifier) or texts (a tagger), and the parameter ``k``: the k best labels
    of each as ``[{"label", "score"}, ...]``; with 0, the scores of all labels as an array. It carries its code:
    a classifier needs only numpy there, a tagger, which must have one of our vectorisers, scikit-learn.
    """
    target = Path(path)
    if target.exists():
        raise ConflictError(f"{target} is there already; choose another name, or remove it")
    parts = linear_model(model)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as aside, _quietly():
            artifacts = _artifacts(model, Path(aside))
            _save(Path(aside), artifacts, len(parts.label_names), int(parts.coef.shape[1]))
            shutil.move(Path(aside) / "model", target)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", source=target) from error


def _save(aside: Path, artifacts: dict[str, str], n_labels: int, n_features: int) -> None:
    """Write the directory ``aside / "model"``."""
    try:
        import mlflow.pyfunc
        from mlflow.models import ModelSignature
        from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema, TensorSpec
    except ImportError:
        raise MissingExtraError("mlflow-skinny", "mlflow", "an MLflow directory") from None
    takes_texts = "vectorizer" in artifacts
    row = ColSpec("string") if takes_texts else TensorSpec(np.dtype(np.float64), (-1, n_features))
    code = aside / "streamlabel_model.py"
    code.write_bytes(files("streamlabel.exchange").joinpath(CODE).read_bytes())
    mlflow.pyfunc.save_model(
        str(aside / "model"),
        python_model=str(code),
        artifacts=artifacts,
        signature=ModelSignature(inputs=Schema([row]), params=ParamSchema([ParamSpec("k", "long", 5)])),
        pip_requirements=[
            f"numpy=={np.__version__}",
            *([f"scikit-learn=={sklearn.__version__}"] if takes_texts else []),
        ],
        metadata={"producer": f"streamlabel {__version__}", "n_labels": n_labels},
    )


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence MLflow's progress bar and its advice on type hints and examples, which the signature makes needless."""
    before = os.environ.get(PROGRESS_BAR)
    os.environ[PROGRESS_BAR] = "false"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        os.environ.pop(PROGRESS_BAR)
        if before is not None:
            os.environ[PROGRESS_BAR] = before


def _artifacts(model: Any, aside: Path) -> dict[str, str]:
    export_npz(model, aside / "labels.npz")
    artifacts = {"labels": str(aside / "labels.npz")}
    if isinstance(model, Tagger):
        if not isinstance(model.vectorizer_, OWN):
            kind = type(model.vectorizer_).__name__
            raise DataError(
                f"the tagger's vectoriser ({kind}) cannot be written without pickle; export model.classifier_ and make "
                "the features where the model runs"
            )
        document = json.dumps(model.vectorizer_.to_document(), ensure_ascii=False, allow_nan=False)
        (aside / "vectorizer.json").write_text(document, encoding="utf-8")
        artifacts["vectorizer"] = str(aside / "vectorizer.json")
    return artifacts
