"""The routes: what each of them says. Every answer comes from one view."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from scipy.special import expit

from streamlabel.models.explain import explanation_data
from streamlabel.models.learn_report import report_data
from streamlabel.serve.living import LivingTagger, View
from streamlabel.serve.refusals import Refusal
from streamlabel.serve.requests import ExplainRequest, LearnRequest, RollbackRequest, SuggestRequest

__all__ = ["ROUTES", "Reply", "Route"]

AT_ONCE = 128  # texts whose scores for all labels are in memory together; a fixed number keeps their bits
UNREADABLE = "the newest revision cannot be read, the last one goes on; the log of the service says why"
LONG = 19  # digits: no id has so many
OF_A_LABEL = ("id", "name", "n_yes", "n_no", "n_unasked", "threshold", "origin", "born", "born_at")


@dataclass(frozen=True)
class Reply:
    data: dict[str, Any]
    status: int = 200


Answer: TypeAlias = Callable[[LivingTagger, Mapping[str, Any]], Reply]


@dataclass(frozen=True)
class Route:
    """answer : from the tagger and the fields of the body and the path;   about : what it does, for those who ask

    writes : whether it changes the model;   apart : it waits for no other request
    """

    method: str
    path: str
    answer: Answer
    about: str
    writes: bool = False
    apart: bool = False


def index(living: LivingTagger, _: Mapping[str, Any]) -> Reply:
    routes = [{"method": one.method, "path": one.path, "about": one.about} for one in ROUTES]
    return Reply({"service": "streamlabel", "revision": living.view().revision, "routes": routes})


def health(living: LivingTagger, _: Mapping[str, Any]) -> Reply:
    view = living.view()
    data = {
        "ok": not living.problem,
        "revision": view.revision,
        "n_labels": len(view.labels),
        "read_only": living.read_only,
    }
    return Reply(data | {"problem": UNREADABLE}, 503) if living.problem else Reply(data)


def labels(living: LivingTagger, _: Mapping[str, Any]) -> Reply:
    view = living.view()
    found = [_strict({field: getattr(record, field) for field in OF_A_LABEL}) for record in view.labels.values()]
    return Reply({"revision": view.revision, "labels": found})


def suggest(living: LivingTagger, body: Mapping[str, Any]) -> Reply:
    asked, view = SuggestRequest.of(body), living.view()
    found: list[list[dict[str, Any]]] = []
    for start in range(0, len(asked.texts), AT_ONCE):
        best = view.tagger.suggest(asked.texts[start : start + AT_ONCE], asked.k)
        found += [[_suggestion(view, name, score) for name, score in row] for row in best]
    return Reply({"revision": view.revision, "results": found})


def explain(living: LivingTagger, body: Mapping[str, Any]) -> Reply:
    asked, view = ExplainRequest.of(body), living.view()
    if asked.label not in view.labels:
        raise Refusal(404, f"no label is called {asked.label!r}; GET /labels lists all")
    found = view.tagger.explain(asked.text, asked.label, asked.words)
    return Reply({"revision": view.revision} | _strict(explanation_data(found)))


def learn(living: LivingTagger, body: Mapping[str, Any]) -> Reply:
    asked = LearnRequest.of(body)
    report, revision = living.learn(asked.name, asked.yes, asked.no)
    return Reply({"revision": revision} | _strict(report_data(report)), 201)


def retire(living: LivingTagger, path: Mapping[str, Any]) -> Reply:
    number = path["id"]
    if not (number.isascii() and number.isdecimal() and len(number) < LONG):
        raise Refusal(404, "labels are retired by their id, a number; GET /labels lists all")
    return Reply({"revision": living.retire(int(number))})


def rollback(living: LivingTagger, body: Mapping[str, Any]) -> Reply:
    return Reply({"revision": living.rollback(RollbackRequest.of(body).revision)})


ROUTES = (
    Route("GET", "/", index, "these routes"),
    Route("GET", "/health", health, "whether all is well, the revision, how many labels", apart=True),
    Route("GET", "/labels", labels, "every label: id, name, answers, threshold"),
    Route("POST", "/suggest", suggest, "labels for texts: texts, k"),
    Route("POST", "/explain", explain, "why a text got its score: text, label, words"),
    Route("POST", "/labels", learn, "learn a label: name, yes, no", writes=True),
    Route("DELETE", "/labels/{id}", retire, "take a label out", writes=True),
    Route("POST", "/rollback", rollback, "go back: revision", writes=True),
)


def _suggestion(view: View, name: str, score: float) -> dict[str, Any]:
    label = view.labels[name]
    probability = float(expit(label.slope * score + label.shift))
    return {"label": name, "score": score, "probability": probability, "yes": score > label.threshold}


def _strict(data: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: a threshold that nothing exceeds is null."""
    return {key: None if isinstance(value, float) and math.isinf(value) else value for key, value in data.items()}
