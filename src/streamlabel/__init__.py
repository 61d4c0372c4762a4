"""A multi-label classifier whose label set grows while it is in use."""

from importlib import import_module
from typing import TYPE_CHECKING

from streamlabel._version import __version__

if TYPE_CHECKING:
    from streamlabel.baselines.binary_relevance import BinaryRelevance
    from streamlabel.baselines.leml import LEML
    from streamlabel.baselines.sleec import SLEEC
    from streamlabel.store.model_store import ModelStore
    from streamlabel.streaming.classifier import StreamingLabelClassifier
    from streamlabel.tagging.tagger import Tagger
    from streamlabel.types import Dataset, TextDataset

__all__ = [
    "BinaryRelevance",
    "Dataset",
    "LEML",
    "ModelStore",
    "SLEEC",
    "StreamingLabelClassifier",
    "Tagger",
    "TextDataset",
    "__version__",
]

# Public names are imported when first used: scikit-learn takes a second that `streamlabel --help` need not wait.
_HOMES = {
    "BinaryRelevance": "streamlabel.baselines.binary_relevance",
    "Dataset": "streamlabel.types",
    "LEML": "streamlabel.baselines.leml",
    "ModelStore": "streamlabel.store.model_store",
    "SLEEC": "streamlabel.baselines.sleec",
    "StreamingLabelClassifier": "streamlabel.streaming.classifier",
    "Tagger": "streamlabel.tagging.tagger",
    "TextDataset": "streamlabel.types",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
