"""A multi-label classifier whose label set grows while it is in use."""

from importlib import import_module
from typing import TYPE_CHECKING

from streamlabel._version import __version__

if TYPE_CHECKING:
    from streamlabel.models.binary_relevance import BinaryRelevance
    from streamlabel.models.leml import LEML
    from streamlabel.models.sleec import SLEEC
    from streamlabel.models.streaming import StreamingLabelClassifier
    from streamlabel.results import Dataset, TextDataset
    from streamlabel.store.model_store import ModelStore
    from streamlabel.store.tagger_store import Tagger

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
    "BinaryRelevance": "streamlabel.models.binary_relevance",
    "Dataset": "streamlabel.results",
    "LEML": "streamlabel.models.leml",
    "ModelStore": "streamlabel.store.model_store",
    "SLEEC": "streamlabel.models.sleec",
    "StreamingLabelClassifier": "streamlabel.models.streaming",
    "Tagger": "streamlabel.store.tagger_store",
    "TextDataset": "streamlabel.results",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
