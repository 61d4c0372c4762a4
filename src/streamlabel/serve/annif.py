"""Suggestions in the shape of Annif, for its back end ``http``: subjects of its vocabulary, by their URIs.

Annif fails on a subject that its vocabulary does not have, so only those are answered. It sends forms, as web pages of
other sites can, too: nothing that comes here is kept, and no answer lets such a page read it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np

from streamlabel.data.csv_table import csv_records
from streamlabel.data.files import MAX_LINE_BYTES, numbered_lines
from streamlabel.errors import DataError
from streamlabel.serve.access import Refusal
from streamlabel.serve.live_tagger import LivingTagger
from streamlabel.serve.requests import MOST_K, Asked, Reply, Route

FORM = "application/x-www-form-urlencoded"
USUAL = 10


def read_vocabulary(path: Path) -> dict[str, tuple[str, str]]:
    """Read a vocabulary of Annif, TSV (URI, tab, label) or CSV (uri, label_en, ...): name -> (URI, label).

    A label of ours is a subject if its name is the subject's URI or one of its labels.
    """
    found: dict[str, tuple[str, str]] = {}
    for uri, labels in _subjects(path):
        for name in (uri, *labels):
            found.setdefault(unicodedata.normalize("NFC", name), (uri, labels[0] if labels else uri))
    if not found:
        raise DataError(
            "has no subjects; give a vocabulary as TSV (URI, tab, label) or CSV (uri, label_en)", source=path
        )
    return found


def annif_routes(vocabulary: Mapping[str, tuple[str, str]]) -> tuple[Route, ...]:
    """The routes that Annif asks: the project, and suggestions."""

    def project(living: LivingTagger, _: Asked) -> Reply:
        view = living.view()
        newest = max((record.born_at for record in view.labels.values()), default=None)
        return Reply({"project_id": "streamlabel", "is_trained": True, "modification_time": newest})

    def suggest(living: LivingTagger, asked: Asked) -> Reply:
        try:
            form = dict(parse_qsl(asked.body.decode(), keep_blank_values=True, max_num_fields=100))
        except ValueError as error:
            raise Refusal(400, f"the body is no form: {error}") from None
        if "text" not in form:
            raise Refusal(422, "the field 'text' is missing")
        limit, view = form.get("limit", str(USUAL)), living.view()
        if not limit.isdecimal() or not 1 <= int(limit[:9]) <= MOST_K:
            raise Refusal(422, f"limit must be a whole number from 1 to {MOST_K}")
        names = [name for name in view.labels if name in vocabulary]
        chances = view.chances([form["text"]], names)[0][0] if names else np.empty(0)
        best = np.argsort(-chances, kind="stable")[: int(limit)].tolist()
        subjects = [(*vocabulary[names[at]], float(chances[at])) for at in best]
        return Reply({"results": [{"uri": uri, "label": label, "score": score} for uri, label, score in subjects]})

    return (
        Route("GET", "/annif", project, "for Annif: the project"),
        Route("POST", "/annif/suggest", suggest, "for Annif: subjects of its vocabulary", takes=FORM),
    )


def _subjects(path: Path) -> list[tuple[str, list[str]]]:
    if path.suffix.lower() == ".csv":
        header, rows = csv_records(path, ",", formula_guard=False)
        columns = [name for name in header if name.startswith("label")]
        if "uri" not in header or not columns:
            raise DataError("needs the columns uri and label_en (or another language)", source=path, line=1)
        return [(row["uri"], [row[name] for name in columns if row[name]]) for _, row in rows]
    lines = [line.rstrip("\r\n").split("\t") for _, line in numbered_lines(path, MAX_LINE_BYTES)]
    return [(parts[0].strip().removeprefix("<").removesuffix(">"), [p for p in parts[1:2] if p]) for parts in lines]
