"""The routes of the service: what a body may hold, and what each route answers. Every answer comes from one view."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NoReturn, TypeAlias

from scipy.special import expit

from streamlabel.serve.access import Refusal
from streamlabel.serve.live_tagger import LivingTagger, View, check_known
from streamlabel.streaming.calibration import estimate_data
from streamlabel.tagging.explain import N_WORDS, explanation_data
from streamlabel.tagging.learn_report import report_data

MOST_BYTES = 4 << 20
MOST_TEXTS = 1000
MOST_K = 100
MOST_SUGGESTIONS = 20_000  # texts times k: about 2 MB of answer


def parse_body(content: bytes, path: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the JSON object of a body, and add the fields of the path; NaN and infinity are not JSON."""
    try:
        body = json.loads(content.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refusal(400, f"the body is of type {type(body).__name__}; send a JSON object, {{...}}")
    for field in sorted(body.keys() & path.keys()):
        raise Refusal(400, f"the field {field!r} is in the path already; leave it out of the body")
    return {**body, **path}


@dataclass(frozen=True)
class SuggestRequest:
    """A request for the k best labels of texts."""

    texts: list[str]
    k: int = 5

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> SuggestRequest:
        _check_fields(body, {"texts"}, {"k"})
        texts, k = _texts(body, "texts"), _whole(body.get("k", cls.k), "k", MOST_K)
        if len(texts) * k > MOST_SUGGESTIONS:
            most = f"at most {MOST_SUGGESTIONS:,} suggestions are made at once"
            raise Refusal(400, f"{len(texts):,} texts with k {k} are too many; {most}")
        return cls(texts, k)


@dataclass(frozen=True)
class ExplainRequest:
    """A request to explain the score of a text for a label; ``words``: at most so many on each side."""

    text: str
    label: str
    words: int = N_WORDS

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> ExplainRequest:
        _check_fields(body, {"text", "label"}, {"words"})
        words = _whole(body.get("words", cls.words), "words", MOST_K)
        return cls(_text(body["text"], "text"), _name(body["label"], "label"), words)


@dataclass(frozen=True)
class LearnRequest:
    """A request to learn a new label from texts, or from its name alone; ``pool``: texts as they come."""

    name: str
    yes: list[str]
    no: list[str]
    about: str
    pool: list[str] | None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> LearnRequest:
        _check_fields(body, {"name"}, {"yes", "no", "about", "pool"})
        yes, no = (_texts(body, side) if side in body else [] for side in ("yes", "no"))
        return cls(_name(body["name"], "name").strip(), yes, no, _text(body.get("about", ""), "about"), _pool(body))


@dataclass(frozen=True)
class AnswersRequest:
    """A request to learn a label further: ``{text, yes}``, or several such ``answers``.

    asked : these texts were put as questions, and not chosen because of their answer
    """

    label: str
    yes: list[str]
    no: list[str]
    asked: bool
    pool: list[str] | None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> AnswersRequest:
        several = "answers" in body
        _check_fields(body, {"label", "answers"} if several else {"label", "text", "yes"}, {"asked", "pool"})
        answers = body["answers"] if several else [{"text": body["text"], "yes": body["yes"]}]
        if not isinstance(answers, list) or not all(isinstance(one, dict) for one in answers):
            raise Refusal(400, 'answers must be a list of objects, {"text": ..., "yes": true or false}')
        if not 1 <= len(answers) <= MOST_TEXTS:
            raise Refusal(400, f"answers has {len(answers):,} of them; from 1 to {MOST_TEXTS:,} are taken at once")
        sides: dict[bool, list[str]] = {True: [], False: []}
        for place, one in enumerate(answers):
            _check_fields(one, {"text", "yes"}, set())
            where = f"answers[{place}]." if several else ""
            sides[_flag(one["yes"], f"{where}yes")].append(_text(one["text"], f"{where}text"))
        asked = _flag(body.get("asked", True), "asked")
        return cls(_name(body["label"], "label"), sides[True], sides[False], asked, _pool(body))


@dataclass(frozen=True)
class NextRequest:
    """A request for the texts whose answers would help a label most."""

    label: str
    n: int = 10
    pool: list[str] | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> NextRequest:
        _check_fields(body, {"label"}, {"n", "pool"})
        return cls(_name(body["label"], "label"), _whole(body.get("n", cls.n), "n", MOST_K), _pool(body))


@dataclass(frozen=True)
class RollbackRequest:
    """A request to go back to a revision."""

    revision: int

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> RollbackRequest:
        _check_fields(body, {"revision"}, set())
        return cls(_whole(body["revision"], "revision", 2**53))


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _check_fields(body: Mapping[str, Any], needed: set[str], more: set[str]) -> None:
    for field in sorted(needed - body.keys()):
        raise Refusal(400, f"the field {field!r} is missing")
    for field in sorted(body.keys() - needed - more):
        raise Refusal(400, f"the field {field!r} is not known; there are {', '.join(sorted(needed | more))}")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise Refusal(400, f"{where} is of type {type(value).__name__}; it must be a string")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(400, f"{where} holds half of a surrogate pair, which is no character") from None
    return value


def _name(value: Any, where: str) -> str:
    """The name of a label, composed as it is in the model."""
    return unicodedata.normalize("NFC", _text(value, where))


def _texts(body: Mapping[str, Any], field: str) -> list[str]:
    values = body[field]
    if not isinstance(values, list):
        raise Refusal(400, f"{field} is of type {type(values).__name__}; it must be a list of texts")
    if len(values) > MOST_TEXTS:
        raise Refusal(400, f"{field} has {len(values):,} texts; at most {MOST_TEXTS:,} are taken at once")
    return [_text(value, f"{field}[{place}]") for place, value in enumerate(values)]


def _pool(body: Mapping[str, Any]) -> list[str] | None:
    return _texts(body, "pool") if "pool" in body else None


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise Refusal(400, f"{where} must be true or false")
    return value


def _whole(value: Any, where: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise Refusal(400, f"{where} must be a whole number from 1 to {most}")
    return value


AT_ONCE = 128  # texts whose scores for all labels are in memory together; a fixed number keeps their bits
UNREADABLE = "the newest revision cannot be read, the last one goes on; the log of the service says why"
LONG = 19  # digits: no id has so many
OF_A_LABEL = ("id", "name", "n_yes", "n_no", "n_unasked", "threshold", "origin", "born", "born_at")


@dataclass(frozen=True)
class Reply:
    """The answer to a request: JSON data and a status."""

    data: dict[str, Any]
    status: int = 200


Answer: TypeAlias = Callable[[LivingTagger, Mapping[str, Any]], Reply]


@dataclass(frozen=True)
class Route:
    """One route of the service: method, path, and the function that answers.

    answer : from the tagger and the fields of the body and the path;   about : what it does, for those who ask
    writes : whether it changes the model;   apart : it waits for no other request
    """

    method: str
    path: str
    answer: Answer
    about: str
    writes: bool = False
    apart: bool = False


def index(living: LivingTagger, _: Mapping[str, Any]) -> Reply:
    """Answer with the list of all routes."""
    routes = [{"method": one.method, "path": one.path, "about": one.about} for one in ROUTES]
    pool = {"n_texts": len(living.recent), "remembers": living.recent.most}
    return Reply({"service": "streamlabel", "revision": living.view().revision, "pool": pool, "routes": routes})


def health(living: LivingTagger, _: Mapping[str, Any]) -> Reply:
    """Answer whether the newest revision can be read; 503 if not."""
    view = living.view()
    data = {
        "ok": not living.problem,
        "revision": view.revision,
        "n_labels": len(view.labels),
        "read_only": living.read_only,
    }
    return Reply(data | {"problem": UNREADABLE}, 503) if living.problem else Reply(data)


def labels(living: LivingTagger, _: Mapping[str, Any]) -> Reply:
    """Answer with all labels."""
    view = living.view()
    found = [_strict({field: getattr(record, field) for field in OF_A_LABEL}) for record in view.labels.values()]
    return Reply({"revision": view.revision, "labels": found})


def label_card(living: LivingTagger, path: Mapping[str, Any]) -> Reply:
    """Answer with one label, and how good it is thought to be."""
    name = _name(path["label"], "label")
    view, estimate = living.estimate(name)
    found = _strict({field: getattr(view.labels[name], field) for field in OF_A_LABEL})
    return Reply({"revision": view.revision} | found | {"estimate": estimate_data(estimate)})


def next_texts(living: LivingTagger, body: Mapping[str, Any]) -> Reply:
    """Answer with the texts whose answers would help a label most."""
    asked = NextRequest.of(body)
    living.view()  # looks for what others have written
    if asked.pool is None and not len(living.recent):
        raise Refusal(400, "there are no texts to ask about: this service remembers none; send some as pool")
    questions, n_pool, revision = living.next(asked.label, asked.pool, asked.n)
    found = [asdict(question) for question in questions]
    return Reply({"revision": revision, "label": asked.label, "n_pool": n_pool, "questions": found})


def suggest(living: LivingTagger, body: Mapping[str, Any]) -> Reply:
    """Answer with the best labels of each text."""
    asked, view = SuggestRequest.of(body), living.view()
    found: list[list[dict[str, Any]]] = []
    for start in range(0, len(asked.texts), AT_ONCE):
        best = view.tagger.suggest_known(asked.texts[start : start + AT_ONCE], asked.k)
        found += [[_suggestion(view, name, score, known) for name, score in row] for row, known in best]
    living.recent.add(asked.texts)
    return Reply({"revision": view.revision, "results": found})


def explain(living: LivingTagger, body: Mapping[str, Any]) -> Reply:
    """Answer why a text got its score for a label."""
    asked, view = ExplainRequest.of(body), living.view()
    check_known(asked.label, view.labels)
    found = view.tagger.explain(asked.text, asked.label, asked.words)
    return Reply({"revision": view.revision} | _strict(explanation_data(found)))


def learn(living: LivingTagger, body: Mapping[str, Any]) -> Reply:
    """Learn a label, and answer with its report."""
    asked = LearnRequest.of(body)
    report, revision = living.learn(asked.name, asked.yes, asked.no, about=asked.about, pool=asked.pool)
    return Reply({"revision": revision} | _strict(report_data(report)), 201)


def answers(living: LivingTagger, body: Mapping[str, Any]) -> Reply:
    """Learn a label further, and answer with its report."""
    asked = AnswersRequest.of(body)
    report, revision = living.learn(asked.label, asked.yes, asked.no, pool=asked.pool, more=True, asked=asked.asked)
    return Reply({"revision": revision} | _strict(report_data(report)))


def retire(living: LivingTagger, path: Mapping[str, Any]) -> Reply:
    """Take a label out, and answer with the new revision."""
    number = path["id"]
    if not (number.isascii() and number.isdecimal() and len(number) < LONG):
        raise Refusal(404, "labels are retired by their id, a number; GET /labels lists all")
    return Reply({"revision": living.retire(int(number))})


def rollback(living: LivingTagger, body: Mapping[str, Any]) -> Reply:
    """Go back to a revision, and answer with the new one."""
    return Reply({"revision": living.rollback(RollbackRequest.of(body).revision)})


ROUTES = (
    Route("GET", "/", index, "these routes"),
    Route("GET", "/health", health, "whether all is well, the revision, how many labels", apart=True),
    Route("GET", "/labels", labels, "every label: id, name, answers, threshold"),
    Route("POST", "/suggest", suggest, "labels for texts: texts, k"),
    Route("POST", "/explain", explain, "why a text got its score: text, label, words"),
    Route("POST", "/labels", learn, "learn a label: name, about, yes, no, pool", writes=True),
    Route("POST", "/labels/{label}/answers", answers, "learn it further: text, yes (or answers), asked", writes=True),
    Route("GET", "/labels/{label}/next", next_texts, "the texts to ask about next"),
    Route("POST", "/labels/{label}/next", next_texts, "the same: n, pool"),
    Route("GET", "/labels/{label}", label_card, "one label, and how good it is thought to be"),
    Route("DELETE", "/labels/{id}", retire, "take a label out", writes=True),
    Route("POST", "/rollback", rollback, "go back: revision", writes=True),
)


def _suggestion(view: View, name: str, score: float, known: bool) -> dict[str, Any]:
    label = view.labels[name]
    probability = float(expit(label.slope * score + label.shift))
    return {"label": name, "score": score, "probability": probability, "yes": known and score > label.threshold}


def _strict(data: dict[str, Any]) -> dict[str, Any]:
    """The data with null for infinity, which JSON does not have: a threshold that nothing exceeds."""
    return {key: None if isinstance(value, float) and math.isinf(value) else value for key, value in data.items()}
