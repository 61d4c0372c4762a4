"""The labels as JSON Lines: the figures of the CSV, and every label that a label was learned to resemble."""

from __future__ import annotations

import json
import os
from typing import Any

from streamlabel.data._bytes import replacing
from streamlabel.exchange.csv_export import label_figures
from streamlabel.exchange.linear import linear_model

__all__ = ["export_jsonl"]


def export_jsonl(model: Any, path: str | os.PathLike[str]) -> None:
    """Write ``{"label", figures, "neighbours": [{"label", "weight"}, ...]}``, one label a line."""
    parts = linear_model(model)
    with replacing(path) as handle:
        for figures, neighbours in zip(label_figures(parts), parts.neighbours, strict=True):
            del figures["nearest_label"]
            figures["neighbours"] = [{"label": name, "weight": weight} for name, weight in neighbours]
            handle.write((json.dumps(figures, ensure_ascii=False, allow_nan=False) + "\n").encode())
