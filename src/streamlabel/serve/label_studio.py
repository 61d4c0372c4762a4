"""A back end for Label Studio: suggestions for its tasks, and labels learned from what people answer there.

Label Studio calls ``health``, ``setup`` and ``predict``, and sends events to ``webhook``, for whose answer it waits one
second, once. So an event is written into the ledger and answered at once, or before it is written where another process
holds the ledger; labels are learned behind it, one after the other, each from all that has come for it meanwhile
(`LabelStudio.learn_due`).

A label is learned as soon as a yes comes or goes, or a no where it says yes; for other noes when there are ten, and a
tenth of its answers. People may look for texts of a new label, so answers count as found, not as asked
(`streaming.found`). Labels of `fit` stay.
"""

from __future__ import annotations

import hmac
import logging
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias
from xml.parsers import expat

import numpy as np

from streamlabel.errors import ConflictError, DataError, StreamlabelError
from streamlabel.serve.access import LOG, SERVICE_WORDS, Refusal
from streamlabel.serve.ledger import Due, Ledger, LedgerAnswer
from streamlabel.serve.live_tagger import LivingTagger, View
from streamlabel.serve.requests import Asked, Reply, Route, Start, Struct
from streamlabel.serve.routes import AT_ONCE, LONG
from streamlabel.store.guard import now

Answer: TypeAlias = Callable[[LivingTagger, Asked], Reply]
logger = logging.getLogger("streamlabel.serve")
PREFIX = "/label-studio"
BEHIND = f"{PREFIX}/{{word}}"  # the secret
ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")
SECONDS = 0.7  # in which an event is answered, written or not
MOST_WAITING = 100  # events that wait to be written
LOST = "an event of Label Studio was lost (%s); 'streamlabel label-studio pull' fetches its answers"
MOST_BYTES = 64 << 20  # of tasks: Label Studio sends a whole selection, and 5,000 new tasks, in one body
WAITS_FOR = 3  # yes answers, where the name alone says nothing
MOST_NO = 2000  # no answers that one label is learned from
FEW_NO, ENOUGH_NO = 10, 0.1  # new noes for which a label is learned again: so many, and this share of its answers
UNDEFINED = "$undefined$"  # the field of a task that was imported as a line of text
PATH = " / "  # joins the names on the way to an item of a taxonomy
SECRET = re.compile("[A-Za-z0-9_-]{20,200}")


class Result(Struct, frozen=True):
    """What was said with one control; other kinds of results have other fields, which are left out."""

    from_name: str | None = None
    value: dict[str, Any] | None = None


class Annotation(Struct, frozen=True):
    """One person's answers to a task; ``was_cancelled``: skipped."""

    id: Start
    result: tuple[Result, ...] | None = None
    was_cancelled: bool | None = None
    updated_at: str | None = None
    task: Start | None = None


class Task(Struct, frozen=True):
    """A task: its fields, and its annotations where they come along."""

    id: Start
    data: dict[str, Any] | None = None
    annotations: tuple[Annotation, ...] | None = None
    updated_at: str | None = None


class TaskPage(Struct, frozen=True):
    """A page of tasks, and how many there are in all."""

    tasks: list[Task]
    total: int


class Project(Struct, frozen=True):
    """A project and its label config."""

    id: Start = 0
    label_config: str | None = None


class PredictBody(Struct, frozen=True):
    """The body of ``predict``; the project is ``number.time``."""

    tasks: list[Task]
    label_config: str
    project: str | None = None


class SetupBody(Struct, frozen=True):
    """The body of ``setup``."""

    schema: str | None = None
    project: str | None = None
    hostname: str | None = None


class Event(Struct, frozen=True):
    """The body of ``webhook``: one or several annotations and tasks, as the action has it."""

    action: str
    project: Project = Project()
    annotation: Annotation | list[Annotation] | None = None
    task: Task | list[Task] | None = None
    annotations: tuple[Annotation, ...] = ()
    tasks: tuple[Task, ...] = ()


@dataclass
class Control:
    """A control of a label config: what it is about, and its choices, by the path of keys that results carry.

    single : one choice at most;   conditional : shown to some only;   remote : its choices are our labels
    """

    name: str
    to_name: str
    kind: str
    single: bool
    conditional: bool
    remote: bool
    labels: dict[tuple[str, ...], str] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelConfig:
    """A label config: its controls, and the field of a task that each object shows."""

    controls: tuple[Control, ...]
    fields: Mapping[str, str]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of all choices, each once."""
        return tuple(dict.fromkeys(name for control in self.controls for name in control.labels.values()))

    def text(self, control: Control, data: Mapping[str, Any] | None) -> tuple[str, str]:
        """The field and the text that a control is about; "" where the task has none."""
        name, known = self.fields.get(control.to_name, ""), data or {}
        value = known.get(name, known.get(UNDEFINED))
        return name, value if isinstance(value, str) else ""


@lru_cache(maxsize=32)
def parse_config(text: str) -> LabelConfig:
    """Parse a label config, XML without a document type: its Choices and Taxonomies, wherever they stand."""
    controls: list[Control] = []
    fields: dict[str, str] = {}
    opened: list[tuple[str, dict[str, str]]] = []
    path: list[tuple[str, str]] = []  # of choices in choices: key and name
    inside: list[Control] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        opened.append((tag, attributes))
        value = attributes.get("value", "")
        if tag in ("Choices", "Taxonomy"):
            conditional = any("visibleWhen" in around for _, around in opened)
            kind, single = tag.lower(), tag == "Choices" and attributes.get("choice", "single").startswith("single")
            to_name = attributes.get("toName", "").split(",")[0]
            control = Control(attributes.get("name", ""), to_name, kind, single, conditional, "apiUrl" in attributes)
            inside.append(control)
            if not {"perRegion", "perItem"} & {name for name, said in attributes.items() if said == "true"}:
                controls.append(control)
        elif tag == "Choice" and inside and value:
            path.append((attributes.get("alias", value), value))
            steps = path if inside[-1].kind == "taxonomy" else path[-1:]
            name = unicodedata.normalize("NFC", PATH.join(name for _, name in steps).strip())
            inside[-1].labels[tuple(key for key, _ in steps)] = name
        elif value.startswith("$") and "name" in attributes:
            fields[attributes["name"]] = value[1:]

    def end(tag: str) -> None:
        _, attributes = opened.pop()
        if tag in ("Choices", "Taxonomy"):
            inside.pop()
        elif tag == "Choice" and inside and attributes.get("value"):
            path.pop()

    def refuse(*_: Any) -> None:
        raise Refusal(422, "the label config has a document type; leave it out")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = start, end, refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise Refusal(422, f"the label config is no XML: {error}") from None
    return LabelConfig(tuple(controls), fields)


class LabelStudio:
    """The back end of one served model.

    secret : a word in the path that stands for a token;   guarded : whether other requests must bring a token
    """

    def __init__(self, living: LivingTagger, *, secret: str = "", guarded: bool = False) -> None:
        self._living, self._ledger, self._secret = living, Ledger(living.path), secret
        self._guarded = guarded
        self._waiting: dict[str, str] = {}
        self._nameless: set[str] = set()  # labels whose names alone were tried, and say nothing
        self._host = ""
        self._learner, self._ending = ThreadPoolExecutor(1, "label-studio"), threading.Event()
        self._taker, self._room = ThreadPoolExecutor(1, "ledger"), threading.Semaphore(MOST_WAITING)

    @property
    def routes(self) -> tuple[Route, ...]:
        """The routes, once for those who bring a token and once behind the secret, which they do not show."""
        return (*self._routes(PREFIX, is_open=False), *(self._routes(BEHIND, is_open=True) if self._secret else ()))

    @property
    def free(self) -> tuple[str, ...]:
        """The paths that need no token: those with the secret, and one that a browser asks first."""
        behind = [one.path.replace("{word}", self._secret) for one in self.routes if one.path.startswith(BEHIND)]
        return (f"{PREFIX}/taxonomy", *behind)

    def _routes(self, prefix: str, *, is_open: bool) -> Iterator[Route]:
        def route(method: str, name: str, answer: Answer, about: str, scope: str | None = "read", **more: Any) -> Route:
            def with_secret(living: LivingTagger, asked: Asked) -> Reply:
                if not hmac.compare_digest(asked.path["word"].encode(), self._secret.encode()):
                    raise Refusal(404, "Not Found")
                return answer(living, asked)

            about = f"for Label Studio: {about}"
            scope, answers = (None, with_secret) if is_open else (scope, answer)
            return Route(method, f"{prefix}/{name}", answers, about, scope=scope, **more)

        large: dict[str, Any] = {"most_bytes": MOST_BYTES}
        yield route("GET", "health", self.health, "whether all is well", lane="apart")
        yield route("GET", "versions", self.versions, "the revision")
        yield route("POST", "setup", self.setup, "which labels a project has", "annotate", body=SetupBody)
        yield route("POST", "predict", self.predict, "suggestions", body=PredictBody, **large)
        yield route("POST", "webhook", self.webhook, "answers", "annotate", body=Event, lane="webhook", **large)
        yield route("GET", "taxonomy", self.taxonomy, "all labels, for <Taxonomy apiUrl>")
        yield route("OPTIONS", "taxonomy", self.preflight, "whether its pages may ask", None)

    def start(self) -> None:
        """Learn, behind the requests, what was left to learn when the service ended."""
        if not self._living.read_only:
            self._learner.submit(self._learn_quietly)

    def close(self) -> None:
        """End when all events are written and the label that is being learned is learned; the others stay due."""
        self._taker.shutdown(wait=True)
        self._ending.set()
        self._learner.shutdown(wait=True, cancel_futures=True)

    def health(self, living: LivingTagger, _: Asked) -> Reply:
        """Answer that all is well; which labels wait, and for what; how many events were lost."""
        version, lost = _version(living.view()), living.n_lost
        return Reply({"status": "UP", "model_version": version, "waiting": dict(self._waiting), "lost": lost})

    def versions(self, living: LivingTagger, _: Asked) -> Reply:
        """Answer with the revision."""
        return Reply({"versions": [_version(living.view())]})

    def setup(self, living: LivingTagger, asked: Asked) -> Reply:
        """Take note of a project's labels."""
        body: SetupBody = asked.body
        host = (body.hostname or "").rstrip("/")
        self._host = host if ORIGIN.fullmatch(host) else ""
        if body.schema and not living.read_only:
            self._offer(_project(body.project), parse_config(body.schema))
            self.start()
        return Reply({"model_version": _version(living.view())})

    def predict(self, living: LivingTagger, asked: Asked) -> Reply:
        """Suggest labels of the config for tasks: as many results as tasks, in their order."""
        body: PredictBody = asked.body
        config, view = parse_config(body.label_config), living.view()
        found: list[dict[str, Any]] = []
        for begin in range(0, len(body.tasks), AT_ONCE):
            found += _predictions(view, config, [task.data for task in body.tasks[begin : begin + AT_ONCE]])
        living.recent.add(text for task in body.tasks for text in _texts(config, task))
        return Reply({"results": found})

    def webhook(self, living: LivingTagger, asked: Asked) -> Reply:
        """Take an event in: answers, deletions, new labels. 202 where it has to wait for another process."""
        if living.read_only:
            raise Refusal(503, "this service is read-only; it was started with --read-only")
        if not self._room.acquire(blocking=False):
            raise self._lost("too many wait to be written")
        taking = self._taker.submit(self._take_in, living, asked.body)
        taking.add_done_callback(lambda _: self._room.release())
        status = 201 if taking in wait((taking,), SECONDS).done and taking.result() else 202
        return Reply({"revision": living.view().revision}, status)

    def _take_in(self, living: LivingTagger, event: Event) -> bool:
        """Write an event into the ledger, however long that takes; its labels are learned later."""
        try:
            self._write(living, event)
        except (StreamlabelError, OSError) as error:
            raise self._lost(error.args[0] if isinstance(error, StreamlabelError) else str(error)) from error
        self.start()
        return True

    def _lost(self, why: str) -> Refusal:
        self._living.n_lost += 1
        logger.error(LOST, why)
        return Refusal(503, LOST % LOG)

    def _write(self, living: LivingTagger, event: Event) -> None:
        project, fixed = event.project.id, _fixed(living.view())
        config = parse_config(event.project.label_config) if event.project.label_config else None
        if config is not None:
            self._offer(project, config)
        if event.action == "START_TRAINING":
            self._ledger.hurry()
        elif event.action == "ANNOTATIONS_DELETED":
            self._ledger.delete(project, annotations=[one.id for one in event.annotations], fixed=fixed)
        elif event.action == "TASKS_DELETED":
            self._ledger.delete(project, tasks=[one.id for one in event.tasks], fixed=fixed)
        elif event.action == "TASKS_CREATED" and config is not None:
            living.recent.add(text for task in event.tasks for text in _texts(config, task))
        elif config is not None:
            tasks = {task.id: task for task in _several(event.task)}
            first = next(iter(tasks), None)
            pairs = [(tasks.get(one.task or first), one) for one in _several(event.annotation)]
            self._take(project, config, [(task, one) for task, one in pairs if task is not None], None)

    def taxonomy(self, living: LivingTagger, asked: Asked) -> Reply:
        """Answer with all labels as a tree; its aliases are their ids, so that names may change."""
        return Reply({"items": _tree(living.view())}, headers=self._origin(asked))

    def preflight(self, living: LivingTagger, asked: Asked) -> Reply:
        """Answer a browser that asks whether it may bring a token along."""
        more = {"Access-Control-Allow-Headers": "Authorization", "Access-Control-Allow-Methods": "GET"}
        return Reply({}, headers=self._origin(asked) | more)

    def _origin(self, asked: Asked) -> dict[str, str]:
        """Whose pages may read the labels: of any site, if they know the secret or a token; else Label Studio's own."""
        allowed = "*" if self._guarded or "word" in asked.path else self._host
        return {"Access-Control-Allow-Origin": allowed} if allowed else {}

    def take_tasks(self, project: int, config: LabelConfig, tasks: Iterable[Task], at: str) -> None:
        """Bring the ledger up to date with tasks and all of their annotations, as they were at a time."""
        since, found = self._offer(project, config), [(task, task.annotations or ()) for task in tasks]
        self._take(project, config, [(task, one) for task, several in found for one in several], since)
        gone: set[int] = set()
        for task, several in found:
            gone |= self._ledger.annotations(project, task.id, at) - {one.id for one in several}
        self._ledger.delete(project, annotations=sorted(gone), fixed=_fixed(self._living.view()))

    def pulled(self, project: int, until: str | None = None) -> str:
        """Until when the answers of a project were asked for."""
        return self._ledger.pulled(project, until)

    def learn_due(self, *, all_now: bool = False) -> dict[str, str]:
        """Learn the labels whose answers have changed, until none is due; returns what became of each.

        all_now : also those that would wait for more noes
        """
        found: dict[str, str] = {}
        while not self._ending.is_set():
            view = self._living.view()
            known = [one for one in self._ledger.due() if one.urgent or one.label in view.labels]
            due = [one for one in known if all_now or one.urgent or _is_enough(one, view)]
            if not due:
                break
            found[due[0].label] = self._learn(due[0])  # one at a time: what has come meanwhile may be more urgent
            self._ledger.done(due[0])
        return found

    def _learn_quietly(self) -> None:
        """Learn in the thread behind the requests: trouble goes to the log, and what is due stays so."""
        while not self._ending.is_set():
            try:
                with self._living.acting("label-studio"):
                    self.learn_due()
                return
            except ConflictError:  # another process is writing
                self._ending.wait(1.0)
            except StreamlabelError as error:
                logger.error("answers of Label Studio wait: %s", error.told(SERVICE_WORDS))
                return
            except Exception:
                logger.exception("answers of Label Studio wait")
                return

    def _learn(self, one: Due) -> str:
        """Learn one label from what the ledger says about it; returns what became of it."""
        label, said, kept = one.label, self._ledger.said(one.label), self._living.examples(one.label)
        record = self._living.view().labels.get(label)
        if record is not None and kept is None:
            return "stays as it is: the answers that it was learned from are not kept"
        if record is None:
            born = self._give_birth(label, list(said.yes.values()), list(said.no.values())[-MOST_NO:])
            if born is not None:
                return born
            kept, record = self._living.examples(label), self._living.view().labels[label]
        assert kept is not None
        known = {row.tobytes(): bool(yes) for row, yes in zip(kept.digests, kept.answers, strict=True)}
        yes = [text for key, text in said.yes.items() if known.get(key) is not True]
        room = max(0, MOST_NO - sum(not answer for answer in known.values()))
        new = [text for key, text in said.no.items() if key not in known]
        no = [text for key, text in said.no.items() if known.get(key) is True] + (new[-room:] if room else [])
        withdrawn = [key for key in said.deleted if key in known]
        if not yes and not no and not withdrawn:
            return "nothing new"
        try:
            report, revision = self._living.learn(label, yes, no, more=True, withdrawn=withdrawn)
        except Refusal as refusal:
            if refusal.status != 422:
                raise
            if said.yes or not withdrawn:
                logger.warning("%r cannot be learned: %s", label, refusal.message)
                return f"cannot be learned: {refusal.message}"
            self._living.retire(record.id)
            logger.info("%r was taken out: all of its yes answers were deleted", label)
            return "taken out: all of its yes answers were deleted"
        return f"learned from {report.n_yes} yes and {report.n_no} no, revision {revision}"

    def _give_birth(self, label: str, yes: list[str], no: list[str]) -> str | None:
        """Learn a new label from enough answers, or from its name; None if the name alone made it."""
        if len(yes) >= WAITS_FOR:
            try:
                report, revision = self._living.learn(label, yes, no)
            except Refusal as refusal:
                return self._wait(label, refusal.message)
            self._waiting.pop(label, None)
            return f"new, learned from {report.n_yes} yes and {report.n_no} no, revision {revision}"
        if label not in self._nameless:
            try:
                self._living.learn(label, [], [])
                self._waiting.pop(label, None)
                return None
            except Refusal as refusal:
                logger.info("%s", refusal.message)
                self._nameless.add(label)
        return self._wait(label, f"{len(yes)} of {WAITS_FOR} yes answers are there, and its name alone says too little")

    def _wait(self, label: str, why: str) -> str:
        self._waiting[label] = why
        logger.info("%r waits: %s", label, why)
        return f"waits: {why}"

    def _offer(self, project: int, config: LabelConfig) -> dict[str, str]:
        return self._ledger.offer(project, config.labels, now(), _fixed(self._living.view()))

    def _take(
        self,
        project: int,
        config: LabelConfig,
        pairs: Sequence[tuple[Task, Annotation]],
        since: Mapping[str, str] | None,
    ) -> None:
        """Write annotations into the ledger; ``since``: when labels were born, where they may be younger than these."""
        view, answers = self._living.view(), list[LedgerAnswer]()
        fixed = _fixed(view)
        for task, one in pairs:
            answers += [] if one.was_cancelled else _answers(view, project, config, task, one, since)
        skipped = [one.id for _, one in pairs if one.was_cancelled]
        few = answers if len(pairs) == 1 else []
        wrong = {name for one in few for name in _said_yes(view, one.text, set(one.offered) - set(one.yes) - fixed)}
        if skipped:
            self._ledger.delete(project, annotations=skipped, fixed=fixed)
        self._ledger.record(answers, fixed, wrong)


def _answers(
    view: View, project: int, config: LabelConfig, task: Task, annotation: Annotation, since: Mapping[str, str] | None
) -> Iterator[LedgerAnswer]:
    """What an annotation says about each text of a task: which labels apply, of those that were offered."""
    said: dict[str, tuple[str, list[str], list[str]]] = {}
    at = annotation.updated_at or ""
    for control in config.controls:
        name, text = config.text(control, task.data)
        results = [one for one in annotation.result or () if one.from_name == control.name]
        if not text or (control.conditional and not results):
            continue
        _, yes, offered = said.setdefault(name, (text, [], []))
        labels = _of_us(view) if control.remote else control.labels
        chosen = [labels[key] for one in results for key in _keys(control, one) if key in labels]
        yes += chosen
        offered += [label for label in labels.values() if not since or since.get(label, "") <= at or label in chosen]
    for name, (text, yes, offered) in said.items():
        sides = tuple(dict.fromkeys(yes)), tuple(dict.fromkeys(offered))
        yield LedgerAnswer(project, annotation.id, task.id, name, text, *sides, at)


def check_secret(word: str) -> str:
    """Check the word of a secret path."""
    if SECRET.fullmatch(word) is None:
        advice = "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"
        raise DataError(f"a secret path has 20 to 200 letters, digits, - and _; {advice}")
    return word


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _project(value: str | None) -> int:
    """The number of a project that is called ``number.time``."""
    number = (value or "").partition(".")[0]
    return int(number) if number.isdecimal() and len(number) < LONG else 0


def _version(view: View) -> str:
    return f"rev-{view.revision}"


def _fixed(view: View) -> set[str]:
    """The labels that are not learned from answers."""
    return {name for name, record in view.labels.items() if record.origin != "added"}


def _said_yes(view: View, text: str, labels: Iterable[str]) -> list[str]:
    """The labels that say yes to a text."""
    names = [name for name in labels if name in view.labels]
    return [name for name, yes in zip(names, view.chances([text], names)[1][0], strict=True) if yes] if names else []


def _is_enough(one: Due, view: View) -> bool:
    """Whether a label has so many new noes that it is worth learning again."""
    record = view.labels.get(one.label)
    return record is not None and one.n >= max(FEW_NO, ENOUGH_NO * (record.n_yes + record.n_no))


def _texts(config: LabelConfig, task: Task) -> set[str]:
    return {text for control in config.controls if (text := config.text(control, task.data)[1])}


def _keys(control: Control, result: Result) -> Iterator[tuple[str, ...]]:
    """The paths of the choices in a result."""
    said = (result.value or {}).get(control.kind) or ()
    if not isinstance(said, (list, tuple)):
        raise Refusal(422, f"{control.kind} of {control.name!r} must be a list")
    for one in said:
        path = one if isinstance(one, list) else [one]
        if control.remote:  # our feed: the last step is an id
            path = path[-1:]
        yield tuple(map(str, path))


def _of_us(view: View) -> dict[tuple[str, ...], str]:
    """Our labels as the choices of a control that asks for them."""
    return {(str(record.id),): name for name, record in view.labels.items()}


def _tree(view: View) -> list[dict[str, Any]]:
    """All labels as items of a taxonomy: a name ``a / b`` is b below a."""
    items: list[dict[str, Any]] = []
    nodes: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, record in view.labels.items():
        path, level = tuple(name.split(PATH)), items
        for depth in range(1, len(path) + 1):
            if path[:depth] not in nodes:
                nodes[path[:depth]] = {"value": path[depth - 1]}
                level.append(nodes[path[:depth]])
            if depth < len(path):
                level = nodes[path[:depth]].setdefault("children", [])
        nodes[path]["alias"] = str(record.id)
    return items


def _tree_paths(view: View) -> dict[tuple[str, ...], str]:
    """The paths of keys to our labels in the tree."""
    found: dict[tuple[str, ...], str] = {}
    for name, record in view.labels.items():
        path = tuple(name.split(PATH))
        above = [view.labels.get(PATH.join(path[:depth])) for depth in range(1, len(path))]
        steps = [step if one is None else str(one.id) for step, one in zip(path, above, strict=False)]
        found[(*steps, str(record.id))] = name
    return found


def _predictions(view: View, config: LabelConfig, rows: Sequence[Mapping[str, Any] | None]) -> list[dict[str, Any]]:
    """For each task what every control says, and how unsure the least sure label is: that is the score."""
    found: list[dict[str, Any]] = [{"result": [], "score": 0.0, "model_version": _version(view)} for _ in rows]
    for control in config.controls:
        labels = _tree_paths(view) if control.remote else control.labels
        keys = {name: key for key, name in labels.items() if name in view.labels}
        texts = [config.text(control, data)[1] for data in rows]
        if not keys or not any(texts):
            continue
        for one, chance, is_yes in zip(found, *view.chances(texts, list(keys)), strict=True):
            order = np.argsort(-chance, kind="stable")
            chosen = [list(keys.values())[at] for at in order if is_yes[at]][: 1 if control.single else None]
            if chosen:
                value = [list(key) for key in chosen] if control.kind == "taxonomy" else [key[0] for key in chosen]
                result = {"from_name": control.name, "to_name": control.to_name, "type": control.kind}
                one["result"].append(result | {"value": {control.kind: value}})
            one["score"] = max(one["score"], float(1.0 - np.abs(2.0 * chance - 1.0).min()))
    return found
