"""The routes of the service: what each takes, who may ask, and what it answers. Every answer comes from one view."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from scipy.special import expit

from streamlabel.errors import Hint
from streamlabel.serve import requests as types
from streamlabel.serve.access import Refusal
from streamlabel.serve.live_tagger import TAKES_ROWS, LivingTagger, View, check_known
from streamlabel.serve.pages import PREFIX, wants_page
from streamlabel.serve.requests import AnswerTo, Asked, Reply, Route, given, label_name
from streamlabel.store.history import LabelRecord
from streamlabel.streaming.calibration import estimate_data
from streamlabel.tagging.explain import explanation_data
from streamlabel.tagging.learn_report import LearnReport, report_data

AT_ONCE = 128  # texts whose scores for all labels are in memory together; a fixed number keeps their bits
UNREADABLE = "the newest revision cannot be read, the last one goes on; the log of the service says why"
NOTHING_TO_ASK = "there are no texts to ask about: this service remembers none; send some as pool"
LONG = 19  # digits: no id has so many
OF_A_LABEL = ("id", "name", "n_yes", "n_no", "n_unasked", "threshold", "origin", "born", "born_at")


def index(living: LivingTagger, asked: Asked) -> Reply:
    """Answer with the list of all routes."""
    view, recent = living.view(), living.recent
    if wants_page(asked):
        return Reply(b"", 303, headers={"Location": f"{asked.root}{PREFIX}/"})
    return Reply({
        "service": "streamlabel",
        "revision": view.revision,
        "takes": "rows" if view.takes_rows else "texts",
        "n_features": view.classifier.n_features_in_,
        "pool": {"n_texts": len(recent), "remembers": recent.most},
        "routes": [{"method": one.method, "path": one.path, "about": one.about} for one in asked.routes if one.about],
    })  # fmt: skip


def live(_: LivingTagger, __: Asked) -> Reply:
    """Answer that the process answers."""
    return Reply({"ok": True})


def ready(living: LivingTagger, _: Asked) -> Reply:
    """Answer whether the newest revision can be read; 503 if not."""
    view = living.view()
    data = {
        "ok": not living.problem,
        "revision": view.revision,
        "n_labels": len(view.labels),
        "read_only": living.read_only,
    }
    return Reply(data | {"problem": UNREADABLE}, 503) if living.problem else Reply(data)


def labels(living: LivingTagger, asked: Asked) -> Reply:
    """Answer with a part of the labels."""
    view, wanted = living.view(), asked.query.q.casefold()
    found = [record for record in view.labels.values() if wanted in record.name.casefold()]
    part = found[asked.query.offset : asked.query.offset + asked.query.limit]
    return Reply({"revision": view.revision, "n_labels": len(found), "labels": [_label(one) for one in part]})


def label_card(living: LivingTagger, asked: Asked) -> Reply:
    """Answer with one label, and how good it is thought to be."""
    view, estimate, moved = living.estimate(asked.label)
    data = {"revision": view.revision} | _label(view.labels[asked.label])
    return Reply(data | {"estimate": estimate_data(estimate), "threshold_moved": moved})


def next_texts(living: LivingTagger, asked: Asked) -> Reply:
    """Answer with the texts whose answers would help a label most."""
    wanted = asked.query if asked.body is None else asked.body
    pool = given(getattr(wanted, "pool", None))
    living.view()  # looks for what others have written
    if pool is None and not len(living.recent):
        raise Refusal(422, NOTHING_TO_ASK)
    questions, n_pool, revision = living.next(asked.label, pool, wanted.n)
    found = [asdict(question) for question in questions]
    return Reply({"revision": revision, "label": asked.label, "n_pool": n_pool, "questions": found})


def suggest(living: LivingTagger, asked: Asked) -> Reply:
    """Answer with the best labels of each text."""
    view, texts, found = living.view(), asked.body.all_texts, []
    for start in range(0, len(texts), AT_ONCE):
        best = view.tagger.suggest_known(texts[start : start + AT_ONCE], asked.body.k)
        found += [[_suggestion(view, name, score, known) for name, score in row] for row, known in best]
    living.recent.add(texts)
    return Reply({"revision": view.revision, "results": found})


def suggest_rows(living: LivingTagger, asked: Asked) -> Reply:
    """Answer with the best labels of each row of numbers."""
    view, rows, found = living.view(), asked.body.rows, []
    for start in range(0, len(rows), AT_ONCE):
        for row in view.suggest_rows(rows[start : start + AT_ONCE], asked.body.k):
            found.append([_suggestion(view, name, score, True) for name, score in row])
    return Reply({"revision": view.revision, "results": found})


def explain(living: LivingTagger, asked: Asked) -> Reply:
    """Answer why a text got its score for a label."""
    view, label = living.view(), label_name(asked.body.label)
    check_known(label, view.labels)
    found = view.tagger.explain(asked.body.text, label, asked.body.words)
    return Reply({"revision": view.revision} | explanation_data(found))


def learn(living: LivingTagger, asked: Asked) -> Reply:
    """Learn a label, and answer with its report."""
    new = asked.body
    report, revision = living.learn(_new_name(new), new.yes, new.no, about=new.about, pool=given(new.pool))
    return _learned(report, revision, 201)


def learn_rows(living: LivingTagger, asked: Asked) -> Reply:
    """Learn a label from rows of numbers, and answer with its report."""
    report, revision = living.learn_rows(_new_name(asked.body), asked.body.yes, asked.body.no)
    return _learned(report, revision, 201)


def learn_batch(living: LivingTagger, asked: Asked) -> Reply:
    """Learn several labels in one revision, and answer with their reports."""
    names = [_new_name(one) for one in asked.body.labels]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise Refusal(422, f"labels[{place}]: the name {name!r} is there twice; give each label once")
    every = dict(zip(names, asked.body.labels, strict=True))
    sides = {name: (one.yes, one.no) for name, one in every.items()}
    about = {name: one.about for name, one in every.items()}
    reports, revision = living.learn_many(sides, about=about, pool=given(asked.body.pool))
    data = {"revision": revision, "labels": [report_data(one) for one in reports]}
    return Reply(data, 201, learned=reports[0].seconds)


def answers(living: LivingTagger, asked: Asked) -> Reply:
    """Learn a label further, and answer with its report."""
    more = asked.body
    yes, no = more.sides()
    report, revision = living.learn(asked.label, yes, no, pool=given(more.pool), more=True, asked=more.asked)
    return _learned(report, revision, 200)


def change_label(living: LivingTagger, asked: Asked) -> Reply:
    """Rename a label or move its threshold, and answer with what it is then."""
    change, label = asked.body, asked.label
    if given(change.name) is not None:
        name = _new_name(change)
        revision = living.rename(label, name)
        label = name
    elif given(change.precision) is not None:
        if living.view().takes_rows:
            raise Refusal(409, TAKES_ROWS)
        revision = living.set_precision(label, change.precision, given(change.pool))
    else:
        revision = living.set_threshold(label, None if change.threshold == "auto" else change.threshold)
    view, estimate, moved = living.estimate(label)
    data = {"revision": revision, "name": label, "threshold": view.labels[label].threshold}
    return Reply(data | {"estimate": estimate_data(estimate), "threshold_moved": moved})


def retire(living: LivingTagger, asked: Asked) -> Reply:
    """Take a label out, and answer with the new revision."""
    number = asked.path["label"]
    if not (number.isascii() and number.isdecimal() and len(number) < LONG):
        raise Refusal(404, "labels are retired by their id, a number", hint=Hint.LABELS)
    return Reply({"revision": living.retire(int(number))})


def history(living: LivingTagger, asked: Asked) -> Reply:
    """Answer with a part of the revisions, newest first."""
    label = given(asked.query.label)
    found, revision = living.history(None if label is None else label_name(label))
    part = found[asked.query.offset : asked.query.offset + asked.query.limit]
    return Reply({"revision": revision, "n_revisions": len(found), "revisions": [asdict(one) for one in part]})


def rollback(living: LivingTagger, asked: Asked) -> Reply:
    """Go back to a revision, and answer with the new one."""
    return Reply({"revision": living.rollback(asked.body.revision)})


def undo(living: LivingTagger, _: Asked) -> Reply:
    """Undo the last change, and answer with it and the new revision."""
    undone, revision = living.undo()
    return Reply({"revision": revision, "undone": asdict(undone)})


def for_texts(_: LivingTagger, __: Asked) -> Reply:
    """Refuse what a model of rows cannot do."""
    raise Refusal(409, TAKES_ROWS)


ROUTES = (
    Route("GET", "/", index, "these routes", reply=types.IndexReply),
    Route("GET", "/livez", live, "whether the process answers", lane="loop", scope=None, reply=types.LiveReply),
    Route(
        "GET", "/readyz", ready, "whether the newest revision can be read, and how many labels it has", lane="apart",
        scope=None, reply=types.ReadyReply, refuses=(503,),
    ),
    Route(
        "GET", "/labels", labels, "labels: id, name, answers, threshold; q, limit, offset", query=types.LabelsQuery,
        reply=types.LabelsReply,
    ),
    Route(
        "POST", "/suggest", suggest, "labels for texts: texts (or text), k", body=types.SuggestRequest,
        reply=types.SuggestReply, quick=True,
    ),
    Route(
        "POST", "/explain", explain, "why a text got its score: text, label, words", body=types.ExplainRequest,
        reply=types.ExplainReply, refuses=(404,), quick=True,
    ),
    Route(
        "POST", "/labels", learn, "learn a label: name, about, yes, no, pool", writes=True, scope="annotate",
        body=types.LearnRequest, reply=types.LearnReply, status=201, refuses=(409,),
    ),
    Route(
        "POST", "/batch", learn_batch, "learn several in one revision: labels, pool", writes=True,
        scope="annotate", body=types.BatchRequest, reply=types.BatchReply, status=201, refuses=(409,),
    ),
    Route(
        "POST", "/labels/{label}/answers", answers, "learn it further: text, yes (or answers), asked", writes=True,
        scope="annotate", body=types.AnswersRequest, reply=types.LearnReply, refuses=(404, 409),
    ),
    Route(
        "GET", "/labels/{label}/next", next_texts, "the texts to ask about next: n", query=types.NextQuery,
        reply=types.NextReply, refuses=(404,),
    ),
    Route(
        "POST", "/labels/{label}/next", next_texts, "the same: n, pool", body=types.NextRequest, reply=types.NextReply,
        refuses=(404,),
    ),
    Route(
        "GET", "/labels/{label}", label_card, "one label, and how good it is thought to be", reply=types.LabelReply,
        refuses=(404,),
    ),
    Route(
        "PATCH", "/labels/{label}", change_label, "change it: name, threshold or precision", writes=True,
        scope="admin", body=types.PatchRequest, reply=types.PatchReply, refuses=(404, 409),
    ),
    Route(
        "DELETE", "/labels/{label}", retire, "take a label out, by its id", writes=True, scope="admin",
        reply=types.RevisionReply, refuses=(404, 409), by_id=True,
    ),
    Route(
        "GET", "/history", history, "revisions, newest first: label, limit, offset", query=types.HistoryQuery,
        reply=types.HistoryReply, refuses=(404,),
    ),
    Route(
        "POST", "/rollback", rollback, "go back: revision", writes=True, scope="admin", body=types.RollbackRequest,
        reply=types.RevisionReply, refuses=(404, 409),
    ),
    Route(
        "POST", "/undo", undo, "undo the last change: {}", writes=True, scope="admin", body=types.NoFields,
        reply=types.UndoReply, refuses=(409,),
    ),
)  # fmt: skip
FOR_ROWS: dict[AnswerTo, dict[str, Any]] = {
    suggest: {"answer": suggest_rows, "about": "labels for rows: rows, k", "body": types.SuggestRowsRequest},
    learn: {"answer": learn_rows, "about": "learn a label: name, yes, no (rows)", "body": types.LearnRowsRequest},
    **{one: {"answer": for_texts, "body": None, "reply": None} for one in (explain, learn_batch, answers, next_texts)},
}  # fmt: skip


def routes_of(living: LivingTagger) -> tuple[Route, ...]:
    """The routes for a model, of texts or of rows."""
    if not living.view().takes_rows:
        return ROUTES
    return tuple(replace(one, **FOR_ROWS.get(one.answer, {})) for one in ROUTES)


def _new_name(asked: Any) -> str:
    return label_name(asked.name).strip()


def _learned(report: LearnReport, revision: int, status: int) -> Reply:
    return Reply({"revision": revision} | report_data(report), status, learned=report.seconds)


def _label(record: LabelRecord) -> dict[str, Any]:
    return {field: getattr(record, field) for field in OF_A_LABEL}


def _suggestion(view: View, name: str, score: float, known: bool) -> dict[str, Any]:
    label = view.labels[name]
    probability = float(expit(label.slope * score + label.shift))
    return {"label": name, "score": score, "probability": probability, "yes": known and score > label.threshold}
