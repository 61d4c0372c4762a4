"""The arrays of a model as safetensors: they can be mapped, and reading them runs no code. Extra ``safetensors``."""

from __future__ import annotations

import json
import os
from typing import Any

from streamlabel._version import __version__
from streamlabel.data._bytes import replacing
from streamlabel.exceptions import MissingExtraError
from streamlabel.exchange.linear import linear_model
from streamlabel.exchange.npz_export import arrays_of

__all__ = ["export_safetensors"]


def export_safetensors(model: Any, path: str | os.PathLike[str], *, dtype: str = "float64") -> None:
    """Write the arrays of `export_npz`; the metadata has ``label_names`` as a JSON list, in the order of the rows."""
    parts = linear_model(model)
    try:
        from safetensors.numpy import save
    except ImportError:
        raise MissingExtraError("safetensors", "safetensors", "a safetensors file") from None
    metadata = {
        "format": "np",
        "producer": f"streamlabel {__version__}",
        "label_names": json.dumps(parts.label_names, ensure_ascii=False),
    }
    content = save(arrays_of(parts, dtype), metadata=metadata)
    with replacing(path) as handle:
        handle.write(content)
