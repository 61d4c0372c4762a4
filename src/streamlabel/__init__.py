"""A multi-label classifier whose label set grows while it is in use."""

from streamlabel._version import __version__
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.results import Dataset, TextDataset

__all__ = ["Dataset", "StreamingLabelClassifier", "TextDataset", "__version__"]
