"""What the web pages show, and what their forms do: plain JSON values that fill a template, or are the answer."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from scipy.special import ndtri

from streamlabel.errors import DataError, NotFoundError
from streamlabel.serve.access import Refusal, mistakes
from streamlabel.serve.live_tagger import LivingTagger, View, check_known, threshold_moved
from streamlabel.serve.openapi import kind_in_words
from streamlabel.serve.pages import Fields, Found, Page, link, number_field, text_field, whole_field
from streamlabel.store.history import LabelChange, LabelRecord, Revision
from streamlabel.store.stored_rows import FOUND
from streamlabel.streaming.calibration import WANTED, estimate_data, sigmoid
from streamlabel.tagging.examples import LabelExamples, answers_by_revision, revisions_that_taught
from streamlabel.tagging.explain import explanation_data
from streamlabel.tagging.tagger import Tagger
from streamlabel.tagging.text_answers import TextPool, digest, filled_rows
from streamlabel.types import FloatArray
from streamlabel.validation import check_label_names

TOP = 8  # texts in a ranking
EXAMPLES = 4  # texts of the pool that are offered to be tried
SUGGESTED = 8  # labels for a text
ON_A_PAGE = 50
MOST_LOOKED_AT = 2000  # texts of the pool by which firing rates are told
MOST_COMPARED = 5000  # labels with which the scores of a label are compared
NEAR = 8  # neighbours of a label
MOST_SKIPPED = 200  # questions that are left out because they were skipped
STEPS = 200  # of the threshold's slider
SORTS = {"name": "name", "new": "newest", "answers": "most answers", "precision": "precision"}
SURE = 3.0  # standard errors from which a firing rate has moved


def status(living: LivingTagger) -> dict[str, Any]:
    """The model and the pool in a few numbers: what every page says at its foot."""
    view = living.view()
    return {
        "revision": view.revision, "n_labels": len(view.labels), "n_pool": len(living.recent),
        "remembers": living.recent.most, "read_only": living.read_only, "takes_rows": view.takes_rows,
        "problem": bool(living.problem),
    }  # fmt: skip


def try_text(living: LivingTagger, text: str | None) -> dict[str, Any]:
    """The best labels of a text; without one, some texts of the pool to try."""
    view = living.view()
    if text is None or not text.strip():
        texts = living.recent.pool(view.tagger).texts
        return {"text": "", "known": True, "results": None, "examples": list(texts[:EXAMPLES])}
    ((best, known),) = view.tagger.suggest_known([text], SUGGESTED)
    living.recent.add([text])
    found: list[dict[str, Any]] = []
    for name, score in best:
        label = view.labels[name]
        limit = None if math.isinf(label.threshold) else _chance(label, label.threshold)
        said = {"label": name, "score": score, "probability": _chance(label, score), "threshold": limit}
        found.append(said | {"yes": bool(known and score > label.threshold)})
    found.sort(key=lambda one: -one["probability"])
    return {"text": text, "known": known, "results": found, "examples": []}


def why(living: LivingTagger, text: str, label: str) -> dict[str, Any]:
    """Why a text got its score for a label: words and neighbours for and against."""
    view = living.view()
    check_known(label, view.labels)
    found = explanation_data(view.tagger.explain(text, label, 6))
    return found | {"threshold": _finite(found["threshold"])}


def asking(living: LivingTagger, label: str, skipped: Iterable[str] = ()) -> dict[str, Any]:
    """The next question about a label, how good the label is by now, and whether any other label has moved."""
    left_out = list(skipped)
    pool = living.recent.pool(living.view().tagger)
    with living.reading() as (view, tagger):
        check_known(label, view.labels)
        known = tagger.examples(label)
        if known is None:
            of_fit = "was learned by fit, from all of its texts; fit again to change it"
            why = of_fit if view.labels[label].origin == "fit" else "has no answers that are kept; none can be added"
            raise Refusal(409, f"label {label!r} {why}")
        answered = {one.tobytes(): bool(yes) for one, yes in zip(known.digests, known.answers, strict=True)}
        question = None
        if len(pool.texts):
            found = ((digest(one.text).hex(), one) for one in tagger.next(label, pool, len(left_out) + 1))
            question = next(({"digest": key} | asdict(one) for key, one in found if key not in left_out), None)
        others = unmoved(view, tagger, label)
        moved = known.estimate is not None and threshold_moved(tagger.store, view.labels[label])
        curve, last = _curve(tagger, label), _last_change(tagger)
    scores = _pool_scores(view, label, pool)
    return {
        "label": label,
        "about": known.about,
        "n_yes": sum(answered.values()),
        "n_no": len(answered) - sum(answered.values()),
        "estimate": estimate_data(known.estimate),
        "threshold_moved": moved,
        "more": more_answers(estimate_data(known.estimate), view.labels[label].threshold),
        "undo": last.number if last is not None and _is_answer(last, label) else None,
        "mine": _is_answer(last, label, living.actor),
        "question": question,
        "skipped": left_out,
        "ranking": _ranking(view.labels[label], pool, scores, answered),
        "others": others,
        "curve": curve,
    }


def answer(living: LivingTagger, label: str, wanted: str, yes: bool, *, asked: bool = True) -> float:
    """Learn a label further from the answer to a question, or, not ``asked``, a correction; returns the seconds."""
    try:
        key = bytes.fromhex(wanted)
    except ValueError:
        raise Refusal(422, "that is no text of the pool; reload the page") from None
    text = living.texts_of([key]).get(key)
    if text is None:
        raise Refusal(409, "that text has left the pool meanwhile; reload the page for another one")
    return living.learn(label, [text] if yes else [], [] if yes else [text], more=True, asked=asked)[0].seconds


def more_answers(estimate: Mapping[str, Any] | None, threshold: float, wanted: float = WANTED) -> dict[str, Any]:
    """How many more answers are needed until the whole interval of the precision lies above ``wanted``.

    The interval of 90 % has a width w, and shrinks as 1 / sqrt(answers). A share p with such an interval weighs as much
    as ``n = p (1 - p) (2 z / w)^2`` answers, z = 1.645; for its lower end to be at ``wanted``, half the width has to
    be p - wanted, so ``n (w / (2 (p - wanted)))^2 - n`` are missing. Where p is not above it, answers make the
    estimate surer, not higher: nothing can be told, but a higher threshold may do.
    """
    said: dict[str, Any] = {"wanted": wanted, "n": None, "raised": None}
    precision = None if estimate is None else estimate["precision"]
    if precision is not None and precision["low"] >= wanted:
        return said | {"n": 0}
    if precision is not None and precision["value"] > wanted:
        p, width = min(precision["value"], 0.99), precision["high"] - precision["low"]
        weight = p * (1 - p) * (2 * float(ndtri(0.95)) / width) ** 2
        return said | {"n": max(1, math.ceil(weight * ((width / (2 * (p - wanted))) ** 2 - 1)))}
    raised = None if estimate is None else estimate["raised"]
    return said | {"raised": raised if raised and raised["threshold"] > threshold else None}


def unmoved(view: View, tagger: Tagger, label: str) -> dict[str, Any]:
    """Compare all other labels with what they were before this one came: name, threshold, checksum of the weights."""
    before = max(view.labels[label].born - 1, 1)
    try:
        changes = tagger.store.diff(before)
    except NotFoundError:  # forgotten by vacuum
        return {"since": before, "n_compared": 0, "changed": []}
    mine = {view.labels[label].id}
    later = sum(record.born > before for record in view.labels.values())
    names = {record.id: record.name for record in view.labels.values()}
    changed = sorted({_name_in(one, names) for one in changes if one.id not in mine and one.kind != "added"})
    return {"since": before, "n_compared": len(view.labels) - later, "changed": changed}


def list_labels(living: LivingTagger, wanted: str, sort: str, page: int) -> dict[str, Any]:
    """A page of labels whose names hold ``wanted``, with quality, age, and how often they fire now."""
    if sort not in SORTS:
        raise Refusal(422, f"labels are sorted by {', '.join(SORTS)}")
    pool = living.recent.pool(living.view().tagger)
    with living.reading() as (view, tagger):
        search = wanted.strip().casefold()
        found = [record for record in view.labels.values() if search in record.name.casefold()]
        number_of = tagger.classifier_.state_.names.number
        if sort == "precision":
            known = tagger.store.estimates([number_of(record.name) for record in found])
            good = {name: _value(known.get(number_of(name))) for name in (record.name for record in found)}
            found.sort(key=lambda record: (-good[record.name], record.name))
        elif sort == "name":
            found.sort(key=lambda record: record.name.casefold())
        elif sort == "new":
            found.sort(key=lambda record: (-record.born, -record.id))
        else:
            found.sort(key=lambda record: (-(record.n_yes + record.n_no), -record.n_yes, record.name))
        n_pages = max(1, -(-len(found) // ON_A_PAGE))
        page = min(max(page, 1), n_pages)
        shown = found[(page - 1) * ON_A_PAGE : page * ON_A_PAGE]
        numbers = [number_of(record.name) for record in shown]
        known = tagger.store.estimates(numbers)
    rates = _rates(view, _some(pool.rows), numbers)
    rows = [
        _label_row(record, known.get(number), None if rates is None else rates[at], len(pool.texts))
        for at, (record, number) in enumerate(zip(shown, numbers, strict=True))
    ]
    return {"q": wanted, "sort": sort, "page": page, "n_pages": n_pages, "n_found": len(found), "labels": rows}


def label_card(living: LivingTagger, label: str) -> dict[str, Any]:
    """All about one label: how good, what it was learned from, what it is near to, and where it is in doubt."""
    pool = living.recent.pool(living.view().tagger)
    with living.reading() as (view, tagger):
        check_known(label, view.labels)
        known, record = tagger.examples(label), view.labels[label]
        curve, trials, row = _curve(tagger, label), _trials(tagger), _label_row(record, None, None, 0)
        row["threshold_moved"] = bool(known and known.estimate) and threshold_moved(tagger.store, record)
    scores, near = _pool_scores(view, label, pool), near_labels(view, label, pool)
    given: dict[bytes, tuple[bool, bool]] = {}
    if known is not None:
        columns = zip(known.digests, known.answers, known.asked, strict=True)
        given = {one.tobytes(): (bool(yes), bool(asked)) for one, yes, asked in columns}
    texts = living.texts_of(given)
    shown = [
        {"digest": key.hex(), "text": texts[key], "yes": yes, "asked": asked}
        for key, (yes, asked) in reversed(given.items())
        if key in texts
    ]
    unsure, scores = _ranking(record, pool, scores, given, doubt=True), _unanswered(scores, pool, known)
    return row | {
        "about": "" if known is None else known.about,
        "kept": known is not None,
        "n_asked": sum(asked for _, asked in given.values()),
        "estimate": estimate_data(None if known is None else known.estimate),
        "share": record.share,
        "anchored": record.anchored,
        "near": near,
        "curve": curve,
        "trials": trials,
        "answers": shown,
        "n_hidden": len(given) - len(shown),
        "unsure": unsure,
        "at": at_threshold(record, scores, record.threshold),
        "slider": _slider(scores, record.threshold),
    }


def threshold_card(living: LivingTagger, label: str, value: float) -> dict[str, Any]:
    """What is expected of a label at another threshold, by its probabilities on the pool."""
    pool = living.recent.pool(living.view().tagger)
    with living.reading() as (view, tagger):
        check_known(label, view.labels)
        scores = _unanswered(_pool_scores(view, label, pool), pool, tagger.examples(label))
    return {"label": label, "at": at_threshold(view.labels[label], scores, value)}


def at_threshold(record: LabelRecord, scores: FloatArray, threshold: float) -> dict[str, Any] | None:
    """Precision, recall and firing rate that are expected on the pool at a threshold; None without a pool.

    With p the label's probabilities: precision is the mean of p where it fires, recall its part of the sum of all p.
    """
    if not scores.size:
        return None
    chances, fires = _chances(record, scores), scores > threshold
    n_fires = int(fires.sum())
    return {
        "threshold": _finite(threshold),
        "precision": float(chances[fires].mean()) if n_fires else None,
        "recall": float(chances[fires].sum() / max(chances.sum(), 1e-300)),
        "n_fires": n_fires,
        "n_pool": len(scores),
        "rate": n_fires / len(scores),
    }


def near_labels(view: View, label: str, pool: TextPool) -> dict[str, Any]:
    """The signed neighbours of a label: those of its code, or, if it has fewer than three, by scores on the pool."""
    state = view.tagger.classifier_.state_
    code = [{"label": name, "weight": weight} for name, weight in state.neighbours(label, NEAR)]
    if len(code) >= 3 or not len(pool.texts) or not 3 <= len(view.labels) <= MOST_COMPARED:
        return {"kind": "code", "labels": code}
    scores, number = state.classifiers.scores(_some(pool.rows, 500)), state.names.number(label)
    centred = scores - scores.mean(axis=0)
    lengths = np.maximum(np.linalg.norm(centred, axis=0), 1e-12)
    alike = centred.T @ centred[:, number] / (lengths * lengths[number])
    order = [int(at) for at in np.argsort(-np.abs(alike), kind="stable") if at != number][:NEAR]
    found = [{"label": state.names[at], "weight": float(alike[at])} for at in order]
    return {"kind": "scores", "labels": found}


def history(living: LivingTagger, page: int) -> dict[str, Any]:
    """A page of revisions, newest first, which answers they brought, and which of them can be undone."""
    with living.reading() as (view, tagger):
        revisions, last = tagger.store.history(), _last_change(tagger)
        n_pages = max(1, -(-len(revisions) // ON_A_PAGE))
        page = min(max(page, 1), n_pages)
        revisions = revisions[(page - 1) * ON_A_PAGE : page * ON_A_PAGE]
        told = answers_by_revision(tagger.store, revisions)
    texts = living.texts_of(key for answers in told.values() for key, _ in answers)
    shown = [_revision(one, view) for one in revisions]
    for one in shown:
        one["answers"] = [{"yes": yes, "text": texts.get(key)} for key, yes in told.get(one["number"], ())]
    return {"newest": view.revision, "undo": last and last.number, "page": page, "n_pages": n_pages, "revisions": shown}


def changes(living: LivingTagger, revision: int) -> dict[str, Any]:
    """What a revision did to the labels."""
    with living.reading() as (view, tagger):
        try:
            found = tagger.store.diff(revision - 1, revision)
        except NotFoundError:
            raise Refusal(404, f"revision {revision}, or the one before it, is not kept") from None
    names = {record.id: record.name for record in view.labels.values()}
    shown = [asdict(one) | {"name": _name_in(one, names)} for one in found[:ON_A_PAGE]]
    return {"revision": revision, "n": len(found), "changes": shown}


def _name_in(change: LabelChange, names: Mapping[int, str]) -> str:
    """The name of a changed label: of now, or, if it is gone, of then."""
    of_names = change.kind in ("added", "retired", "renamed")
    then = str(change.after or change.before) if of_names else f"label {change.id}"
    return names.get(change.id, then)


def _last_change(tagger: Tagger) -> Revision | None:
    """The change that undo would undo; None if there is none."""
    try:
        return tagger.store.last_change()
    except DataError:
        return None


def _is_answer(change: Revision | None, label: str, actor: str | None = None) -> bool:
    """Whether a change is an answer about a label, of this actor where one is given."""
    return change is not None and change.detail == {"label": label} and actor in (None, change.actor)


def _revision(one: Revision, view: View) -> dict[str, Any]:
    detail = one.detail if isinstance(one.detail, dict) else {}
    named = detail.get("labels")
    labels = named if isinstance(named, list) else [detail["label"]] if "label" in detail else []
    n_labels = detail.get("n", named if isinstance(named, int) else len(labels))
    shown = [{"name": str(name), "known": str(name) in view.labels} for name in labels[:5]]
    return {
        "number": one.number, "at": one.at, "age": age(one.at), "actor": one.actor, "action": one.action,
        "labels": shown, "n_labels": n_labels, "to": detail.get("to"),
    }  # fmt: skip


def age(at: str) -> str:
    """How long ago a moment was, in words."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
    for size, word in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count:,} {word}{'' if count == 1 else 's'} ago"
    return "just now"


def _label_row(record: LabelRecord, estimate: Any, rate: float | None, n_looked_at: int) -> dict[str, Any]:
    known = estimate_data(estimate)
    then = record.n_yes / max(record.n_yes + record.n_no, 1) if record.origin == "fit" else None
    then = known["fires"] if known else then
    moved = None
    if rate is not None and then is not None:
        n_now, n_then = min(n_looked_at, MOST_LOOKED_AT), known["n_pool"] if known else record.n_yes + record.n_no
        both = (rate * n_now + then * n_then) / (n_now + n_then)
        error = math.sqrt(both * (1 - both) * (1 / n_now + 1 / max(n_then, 1)))
        moved = abs(rate - then) > SURE * error
    return {
        "id": record.id, "name": record.name, "origin": record.origin, "n_yes": record.n_yes, "n_no": record.n_no,
        "born": record.born, "born_at": record.born_at, "age": age(record.born_at),
        "threshold": _finite(record.threshold), "estimate": known, "rate_then": then, "rate_now": rate, "moved": moved,
    }  # fmt: skip


def _value(estimate: Any) -> float:
    return -1.0 if estimate is None or estimate["precision"] is None else float(estimate["precision"][0])


def _curve(tagger: Tagger, label: str) -> list[dict[str, Any]]:
    """The estimates of a label each time that it was learned, but for what was undone."""
    points = dict(tagger.store.estimates_since(tagger.classifier_.state_.names.number(label)))
    found = []
    for revision in revisions_that_taught(tagger.store.history(), label, points)[0]:
        estimate = estimate_data(points[revision]) or {}
        kept = {key: estimate.get(key) for key in ("precision", "recall", "n_asked", "reached", "alone")}
        found.append({"revision": revision} | kept)
    return found


def _trials(tagger: Tagger) -> list[dict[str, Any]]:
    """What known labels reached that were learned again from few yes, with the past and the name, and without."""
    recipes = tagger.store.get_part(FOUND).content if FOUND in tagger.store.parts() else []
    known = {one["n_yes"]: one for one in recipes if one.get("reached") is not None}  # those that read names come last
    return [{key: one[key] for key in ("n_yes", "reached", "alone")} for _, one in sorted(known.items())]


def _chance(record: LabelRecord, score: float) -> float:
    return float(_chances(record, np.array([score]))[0])


def _chances(record: LabelRecord, scores: FloatArray) -> FloatArray:
    return sigmoid(scores, np.array(record.slope), np.array(record.shift))


def _pool_scores(view: View, label: str, pool: TextPool) -> FloatArray:
    if not len(pool.texts):
        return np.empty(0)
    state = view.tagger.classifier_.state_
    return state.classifiers.scores(pool.rows, np.array([state.names.number(label)]))[:, 0]


def _unanswered(scores: FloatArray, pool: TextPool, known: LabelExamples | None) -> FloatArray:
    """The scores of texts that a label was not learned from."""
    return scores if known is None or not len(scores) else scores[~pool.among(known.digests)]


def _rates(view: View, rows: Any, numbers: list[int]) -> list[float] | None:
    """The shares of some rows for which labels of these numbers fire."""
    if not rows.shape[0] or not numbers:
        return None
    state, columns = view.tagger.classifier_.state_, np.array(numbers)
    scores = state.classifiers.scores(rows, columns)
    fires = (scores > state.decisions.thresholds[columns]) & filled_rows(rows)[:, None]
    return [float(rate) for rate in fires.mean(axis=0)]


def _some(rows: Any, most: int = MOST_LOOKED_AT) -> Any:
    """At most so many of the rows, evenly."""
    n_rows = rows.shape[0]
    return rows if n_rows <= most else rows[np.linspace(0, n_rows - 1, most).astype(np.intp)]


def _ranking(
    record: LabelRecord, pool: TextPool, scores: FloatArray, answered: Mapping[bytes, Any], *, doubt: bool = False
) -> list[dict[str, Any]]:
    """The texts of the pool without an answer that have the highest scores; or, in doubt, are next to the threshold."""
    order = np.argsort(np.abs(scores - record.threshold) if doubt else -scores, kind="stable")
    found: list[dict[str, Any]] = []
    for at in order:
        if len(found) == TOP or (doubt and math.isinf(record.threshold)):
            break
        if pool.digests[at].tobytes() not in answered:
            chance, fires = _chance(record, scores[at]), bool(scores[at] > record.threshold)
            found.append({"text": pool.texts[at], "probability": chance, "fires": fires})
    return found


def _slider(scores: FloatArray, threshold: float) -> dict[str, float] | None:
    """The ends and the step of a slider for the threshold: from the middle of the pool to its highest score."""
    if not scores.size or math.isinf(threshold):
        return None
    low, high = min(float(np.median(scores)), threshold), max(float(scores.max()), threshold)
    if low == high:
        return None
    return {"low": low, "high": high, "step": (high - low) / STEPS}


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value


def try_page(living: LivingTagger, fields: Fields) -> Found:
    """The page to try a text."""
    return Found("try.html", try_text(living, fields.get("text")))


def why_page(living: LivingTagger, fields: Fields) -> Found:
    """The reasons for one label of a text."""
    return Found("why.html", why(living, text_field(fields, "text"), _label(fields, "label")))


def new_page(living: LivingTagger, fields: Fields) -> Found:
    """The form for a new label."""
    return Found("new.html", {"name": fields.get("name", ""), "about": "", "yes": ""})


def learn_page(living: LivingTagger, fields: Fields) -> Found:
    """Learn a label from its name, its description and perhaps one text, and ask the first question."""
    name, yes = text_field(fields, "name").strip(), fields.get("yes", "").strip()
    if not name:
        raise Refusal(422, "the label needs a name; type one")
    with mistakes():
        (name,) = check_label_names([name], 1)
    if name in living.view().labels:
        more = "" if living.examples(name) is None else ", or answer questions about it"
        raise Refusal(409, f"there is a label {name!r} already; choose another name{more}", label=name)
    twins = [other for other in living.view().labels if other.casefold() == name.casefold()]
    report, _ = living.learn(name, [yes] if yes else [], [], about=fields.get("about", "").strip())
    said = [
        f"There is a label {other!r}, too, which differs only by case; History can undo this one." for other in twins
    ]
    if report.unknown_words:
        said.append(f"Not known to the model, and ignored until it is fitted again: {', '.join(report.unknown_words)}.")
    return replace(_asked(living, name, said=" ".join(said)), learned=report.seconds)


def ask_page(living: LivingTagger, fields: Fields) -> Found:
    """The question page of a label."""
    return _asked(living, _label(fields, "label"), _skipped(fields))


def answer_page(living: LivingTagger, fields: Fields) -> Found:
    """Take the answer to a question, and ask the next one."""
    label, said, skipped = _label(fields, "label"), text_field(fields, "answer"), _skipped(fields)
    learned = None
    if said == "skip":
        skipped.append(text_field(fields, "digest"))
    elif said in ("yes", "no"):
        learned = answer(living, label, text_field(fields, "digest"), said == "yes")
    elif said == "found":
        if not text_field(fields, "text").strip():
            raise Refusal(422, "paste a text that the label applies to")
        learned = living.learn(label, [fields["text"]], [], more=True)[0].seconds
    else:
        raise Refusal(422, "the answer must be yes, no or skip")
    return replace(_asked(living, label, skipped), learned=learned)


def labels_page(living: LivingTagger, fields: Fields) -> Found:
    """The list of labels."""
    wanted, sort, page = fields.get("q", ""), fields.get("sort", "new"), whole_field(fields, "page", 1)
    found = list_labels(living, wanted, sort, page)
    return Found("labels.html", found | {"_sorts": SORTS})


def label_page(living: LivingTagger, fields: Fields) -> Found:
    """The card of a label."""
    return _card(living, _label(fields, "name"))


def at_page(living: LivingTagger, fields: Fields) -> Found:
    """What is expected of a label at another threshold."""
    return Found("at.html", threshold_card(living, _label(fields, "name"), number_field(fields, "threshold")))


def threshold_page(living: LivingTagger, fields: Fields) -> Found:
    """Set the threshold of a label."""
    name, value = _label(fields, "name"), number_field(fields, "threshold")
    living.set_threshold(name, value)
    return _card(living, name, f"The threshold is set: yes is a score above {value:.3f} now.")


def correct_page(living: LivingTagger, fields: Fields) -> Found:
    """Take another answer for a text that was answered; that it was asked stays so."""
    name, said = _label(fields, "name"), "yes" if text_field(fields, "answer") == "yes" else "no"
    learned = answer(living, name, text_field(fields, "digest"), said == "yes", asked=False)
    return replace(
        _card(living, name, f"Corrected: that text is a {said} now, and the label is learned again."), learned=learned
    )


def history_page(living: LivingTagger, fields: Fields) -> Found:
    """The list of revisions."""
    return _history(living, whole_field(fields, "page", 1))


def changes_page(living: LivingTagger, fields: Fields) -> Found:
    """What one revision did to the labels."""
    return Found("changes.html", changes(living, whole_field(fields, "revision")))


def undo_page(living: LivingTagger, fields: Fields) -> Found:
    """Undo the last change, if it is the one that the person saw; who answers questions goes on with them."""
    living.undo(whole_field(fields, "revision"))
    return _asked(living, _label(fields, "label"), _skipped(fields)) if "label" in fields else _history(living, 1)


def take_back_page(living: LivingTagger, fields: Fields) -> Found:
    """Undo the last change, if it is an answer about this label of the one who asks."""
    with living.reading() as (_, tagger):
        if not _is_answer(_last_change(tagger), _label(fields, "label"), living.actor):
            raise Refusal(409, "the last change is no answer of yours about this label; reload the page")
    return undo_page(living, fields)


def rollback_page(living: LivingTagger, fields: Fields) -> Found:
    """Go back to a revision."""
    living.rollback(whole_field(fields, "revision"))
    return _history(living, 1)


PAGES = (
    Page("GET", "/", try_page),
    Page("POST", "/", try_page),
    Page("POST", "/why", why_page),
    Page("GET", "/new", new_page),
    Page("POST", "/new", learn_page, "annotate"),
    Page("GET", "/ask", ask_page),
    Page("POST", "/ask", answer_page, "annotate"),
    Page("GET", "/labels", labels_page),
    Page("GET", "/label", label_page),
    Page("GET", "/at", at_page),
    Page("POST", "/threshold", threshold_page, "admin"),
    Page("POST", "/correct", correct_page, "annotate"),
    Page("GET", "/history", history_page),
    Page("GET", "/changes", changes_page),
    Page("POST", "/undo", undo_page, "admin"),
    Page("POST", "/back", take_back_page, "annotate"),
    Page("POST", "/rollback", rollback_page, "admin"),
)


def pages_of(living: LivingTagger) -> tuple[Page, ...]:
    """The pages of a model; one that takes rows of numbers has one, which says so."""
    return (Page("GET", "/{rest:path}", rows_page),) if living.view().takes_rows else PAGES


def rows_page(living: LivingTagger, _: Fields) -> Found:
    """Say that the pages are for models of texts."""
    return Found("rows.html", {"takes": "rows", "n_features": living.view().classifier.n_features_in_})


def reference(document: dict[str, Any]) -> Found:
    """The page of the service's OpenAPI document."""
    schemas = document["components"]["schemas"]
    return Found("docs.html", {"document": document, "_schemas": schemas, "_kind": kind_in_words})


def _asked(living: LivingTagger, label: str, skipped: list[str] | None = None, said: str = "") -> Found:
    return Found("ask.html", asking(living, label, skipped or []) | {"_said": said}, link("/ask", label=label))


def _card(living: LivingTagger, label: str, said: str = "") -> Found:
    return Found("label.html", label_card(living, label) | {"_said": said}, link("/label", name=label))


def _history(living: LivingTagger, page: int) -> Found:
    return Found("history.html", history(living, page), link("/history", page=page if page > 1 else None))


def _label(fields: Fields, name: str) -> str:
    """The name of a label, composed as it is in the model."""
    return unicodedata.normalize("NFC", text_field(fields, name))


def _skipped(fields: Fields) -> list[str]:
    return [one for one in fields.get("skipped", "").split(",") if one][-MOST_SKIPPED:]
