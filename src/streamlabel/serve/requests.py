"""Types of routes, of what a request may hold and of what an answer holds; the OpenAPI document is made of them.

A body that is no JSON is refused with 400, one that is JSON and not of its type with 422 and one message: the field,
what is wrong with it, what to send.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from streamlabel.errors import MissingExtraError
from streamlabel.serve.access import Refusal, Token
from streamlabel.tagging.explain import N_WORDS
from streamlabel.validation import MAX_NAME_LENGTH

try:
    import msgspec
    from msgspec import UNSET, Meta, Struct, UnsetType
except ImportError:
    raise MissingExtraError("msgspec", "serve", "the service") from None

JSON = "application/json"
MOST_BYTES = 4 << 20
MOST_TEXTS = 1000
MOST_K = 100
MOST_SUGGESTIONS = 20_000  # texts times k: about 2 MB of answer
MOST_LABELS = 10_000  # in one answer
LARGEST = 2**53  # the whole numbers that every reader of JSON has
TOO_MANY = f"are too many; at most {MOST_SUGGESTIONS:,} suggestions are made at once"
A_TEXT = "send either texts, a list, or text"
AN_ANSWER = "send either text and yes, or answers, a list of such"
A_CHANGE = "send one of name, threshold and precision; pool goes with precision"
ONE_OF_TEXTS = {"oneOf": [{"required": ["text"]}, {"required": ["texts"]}]}
ONE_OF = {"oneOf": [{"required": ["text", "yes"], "not": {"required": ["answers"]}}, {"required": ["answers"]}]}

Texts = Annotated[list[str], Meta(max_length=MOST_TEXTS)]
Rows = Annotated[list[list[float]], Meta(max_length=MOST_TEXTS)]
Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
Count = Annotated[int, Meta(ge=1, le=MOST_K)]
Natural = Annotated[int, Meta(ge=1, le=LARGEST)]
Start = Annotated[int, Meta(ge=0, le=LARGEST)]


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a request; others are refused."""


class NoFields(Request, frozen=True):
    """A request without fields: {}."""


class SuggestRequest(Request, frozen=True):
    """The k best labels of texts."""

    texts: Texts | UnsetType = UNSET
    text: str | UnsetType = UNSET
    k: Count = 5

    def __post_init__(self) -> None:
        if (self.texts is UNSET) == (self.text is UNSET):
            raise ValueError(A_TEXT)
        if len(self.all_texts) * self.k > MOST_SUGGESTIONS:
            raise ValueError(f"{len(self.all_texts):,} texts with k {self.k} {TOO_MANY}")

    @property
    def all_texts(self) -> list[str]:
        """The texts; one that came alone is a list of one (doccano cannot send a list)."""
        return self.texts if isinstance(self.texts, list) else [self.text] if isinstance(self.text, str) else []


class SuggestRowsRequest(Request, frozen=True):
    """The k best labels of rows of numbers, as many in a row as the model has features."""

    rows: Rows
    k: Count = 5

    def __post_init__(self) -> None:
        if len(self.rows) * self.k > MOST_SUGGESTIONS:
            raise ValueError(f"{len(self.rows):,} rows with k {self.k} {TOO_MANY}")


class ExplainRequest(Request, frozen=True):
    """Why a text got its score for a label; words: at most so many on each side."""

    text: str
    label: str
    words: Count = N_WORDS


class NewLabel(Request, frozen=True):
    """A label to learn, from texts it applies to and texts it does not, or from its name alone."""

    name: Name
    yes: Texts = []
    no: Texts = []
    about: str = ""


class LearnRequest(NewLabel, frozen=True):
    """A label to learn, from texts or from its name alone; pool: texts as they come, by which it is judged."""

    pool: Texts | UnsetType = UNSET


class BatchRequest(Request, frozen=True):
    """Several labels to learn in one revision: all of them, or none if something is wrong with one."""

    labels: Annotated[list[NewLabel], Meta(min_length=1, max_length=MOST_K)]
    pool: Texts | UnsetType = UNSET


class LearnRowsRequest(Request, frozen=True):
    """A label to learn from rows of numbers."""

    name: Name
    yes: Annotated[Rows, Meta(min_length=1)]
    no: Annotated[Rows, Meta(min_length=1)]


class Answer(Request, frozen=True):
    """Whether a label applies to a text."""

    text: str
    yes: bool


class AnswersRequest(Request, frozen=True):
    """Answers for a label: text and yes, or several such; asked: these texts were put as questions."""

    text: str | UnsetType = UNSET
    yes: bool | UnsetType = UNSET
    answers: Annotated[list[Answer], Meta(min_length=1, max_length=MOST_TEXTS)] | UnsetType = UNSET
    asked: bool = True
    pool: Texts | UnsetType = UNSET

    def __post_init__(self) -> None:
        alone = [self.text is UNSET, self.yes is UNSET]
        if self.answers is UNSET and alone == [False, True]:
            raise ValueError("the field 'yes' is missing")
        if (self.answers is UNSET and any(alone)) or (self.answers is not UNSET and not all(alone)):
            raise ValueError(AN_ANSWER)

    def sides(self) -> tuple[list[str], list[str]]:
        """The texts for yes, and those for no."""
        if isinstance(self.answers, UnsetType):
            assert isinstance(self.text, str)
            return ([self.text], []) if self.yes else ([], [self.text])
        said = self.answers
        return [one.text for one in said if one.yes], [one.text for one in said if not one.yes]


class NextRequest(Request, frozen=True):
    """The texts whose answers would help a label most: n of them, of a pool or of those that the service keeps."""

    n: Count = 10
    pool: Texts | UnsetType = UNSET


class NextQuery(Request, frozen=True):
    """The n texts that the service keeps whose answers would help a label most."""

    n: Count = 10


class PatchRequest(Request, frozen=True):
    """One change of a label: another name; a threshold, or "auto" for the one it was learned with; or a precision."""

    name: Name | UnsetType = UNSET
    threshold: float | Literal["auto"] | UnsetType = UNSET
    precision: Annotated[float, Meta(gt=0, le=1)] | UnsetType = UNSET
    pool: Texts | UnsetType = UNSET

    def __post_init__(self) -> None:
        given = [one for one in (self.name, self.threshold, self.precision) if one is not UNSET]
        if len(given) != 1 or (self.pool is not UNSET and self.precision is UNSET):
            raise ValueError(A_CHANGE)


class RollbackRequest(Request, frozen=True):
    """A revision to go back to."""

    revision: Natural


class LabelsQuery(Request, frozen=True):
    """A part of the labels: those with q in their name, from offset on, at most limit."""

    q: str = ""
    limit: Annotated[int, Meta(ge=1, le=MOST_LABELS)] = 1000
    offset: Start = 0


class HistoryQuery(Request, frozen=True):
    """A part of the revisions, newest first; with a label those that changed it, by any name that it had."""

    label: str | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    offset: Start = 0


class Error(Struct):
    """What was wrong, and what to do."""

    error: str


class RouteLine(Struct):
    method: str
    path: str
    about: str


class PoolSize(Struct):
    n_texts: int
    remembers: int


class IndexReply(Struct):
    service: str
    revision: int
    takes: Literal["texts", "rows"]
    n_features: int
    pool: PoolSize
    routes: list[RouteLine]


class LiveReply(Struct):
    ok: bool


class ReadyReply(Struct, omit_defaults=True):
    ok: bool
    revision: int
    n_labels: int
    read_only: bool
    problem: str = ""


class Label(Struct):
    """A label; its threshold is null where nothing exceeds it."""

    id: int
    name: str
    n_yes: int
    n_no: int
    n_unasked: int | None
    threshold: float | None
    origin: str
    born: int
    born_at: str


class LabelsReply(Struct):
    revision: int
    n_labels: int
    labels: list[Label]


class Suggestion(Struct):
    label: str
    score: float
    probability: float
    yes: bool


class SuggestReply(Struct):
    revision: int
    results: list[list[Suggestion]]


class Word(Struct):
    word: str
    part: float


class NeighbourScore(Struct):
    label: str
    weight: float
    score: float


class ExplainReply(Struct):
    revision: int
    label: str
    score: float
    threshold: float | None
    probability: float
    intercept: float
    words_for: list[Word]
    words_against: list[Word]
    others: float
    neighbours: list[NeighbourScore]
    note: str
    unknown_words: list[str]
    yes: bool


class Interval(Struct):
    value: float
    low: float
    high: float


class EstimateData(Struct):
    """How good a label is thought to be, with intervals of 90 %."""

    precision: Interval | None
    recall: Interval | None
    average_precision: Interval | None
    rate: Interval | None
    fires: float | None
    n_pool: int
    n_asked: int = 0
    of_name: float | None = None
    reached: float | None = None
    alone: float | None = None
    raised: dict[str, float] | None = None


class LabelReply(Label):
    """A label; where its threshold was moved, the estimate is that of the threshold it was learned with."""

    revision: int
    estimate: EstimateData | None
    threshold_moved: bool


class NearLabel(Struct):
    label: str
    weight: float


class Fires(Struct):
    n_yes: int
    n_looked_at: int


class Report(Struct):
    """How a label was learned."""

    name: str
    n_yes: int
    n_no: int
    n_background: int
    neighbours: list[NearLabel]
    used_past: bool
    threshold: float | None
    seconds: float
    fires: Fires | None
    estimate: EstimateData | None
    pool: str
    name_gain: float
    n_unknown_words: int
    unknown_words: list[str]
    clarity: dict[str, Any] | None
    words_read: list[str]


class LearnReply(Report):
    revision: int


class BatchReply(Struct):
    revision: int
    labels: list[Report]


class QuestionData(Struct):
    text: str
    probability: float
    score: float
    why: str


class NextReply(Struct):
    revision: int
    label: str
    n_pool: int
    questions: list[QuestionData]


class RevisionReply(Struct):
    revision: int


class PatchReply(Struct):
    """A label as it is then; where its threshold was moved, the estimate is that of the one it was learned with."""

    revision: int
    name: str
    threshold: float | None
    estimate: EstimateData | None
    threshold_moved: bool


class RevisionLine(Struct):
    number: int
    at: str
    actor: str
    action: str
    detail: Any


class HistoryReply(Struct):
    revision: int
    n_revisions: int
    revisions: list[RevisionLine]


class UndoReply(Struct):
    revision: int
    undone: RevisionLine


@dataclass(frozen=True)
class Asked:
    """A request as a route sees it.

    path : fields of the path;   query, body : of the types that the route names, else a mapping, and any JSON
    routes : those of this service;   headers : by names in lower case;   token : who asks, None without one
    root : the path under which the model is served;   top : that of the service;   here : the path that was asked for
    """

    path: dict[str, str] = field(default_factory=dict)
    query: Any = None
    body: Any = None
    routes: tuple[Route, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    token: Token | None = None
    root: str = ""
    top: str = ""
    here: str = ""

    @property
    def label(self) -> str:
        return label_name(self.path["label"])


@dataclass(frozen=True)
class Reply:
    """The answer to a request: JSON data, or bytes of another kind, and a status.

    learned : the seconds that learning took, for the metrics
    """

    data: Any
    status: int = 200
    kind: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    learned: float | None = None


AnswerTo: TypeAlias = Callable[[Any, Asked], Reply]


@dataclass(frozen=True)
class Route:
    """One route of the service: method, path, and the function that answers.

    answer : from the living tagger and the request;   about : what it does, for those who ask
    writes : whether it changes the model
    lane : the threads and the limit that it shares with others (`app.LANES`); loop: at once, by the event loop itself
    scope : what a token must allow (`access.SCOPES`), None for a route that needs none
    body, query, reply : their types; a route without a type of its reply is not in the OpenAPI document
    refuses : statuses beside those that every route may have;   by_id : the label in the path is its id
    quick : a small body takes little time, whatever the model keeps
    takes, most_bytes : the type and the largest size of a body; what is not JSON comes to the route as bytes
    refused : how a refusal is answered, if not with JSON
    """

    method: str
    path: str
    answer: AnswerTo
    about: str
    writes: bool = False
    lane: str = ""
    scope: str | None = "read"
    body: type | None = None
    query: type | None = None
    reply: type | None = None
    status: int = 200
    refuses: tuple[int, ...] = ()
    by_id: bool = False
    quick: bool = False
    takes: str = JSON
    most_bytes: int = MOST_BYTES
    refused: Callable[[Any, Asked, Refusal], Reply] | None = None


Type = TypeVar("Type")
KINDS = {
    "str": "a string", "int": "a whole number", "float": "a number", "array": "a list", "object": "an object",
    "bool": "true or false", "null": "null",
}  # fmt: skip
MISSING, UNKNOWN = (
    re.compile(r"Object missing required field `(.+)`"),
    re.compile(r"Object contains unknown field `(.+)`"),
)
OTHER_KIND = re.compile(r"Expected `(.+)`, got `(.+)`")
BOUND = re.compile(r"Expected `(\w+)` (of length )?(<=|>=|>|<) ([\d.]+)")


def parse_body(content: bytes, kind: type[Type]) -> Type:
    """Read a body of this type; Refusal with 400 where it is not JSON, with 422 where it is not of the type."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        if "out of range" not in str(error):
            parse_json(content)  # more may be wrong with it than its type
        raise Refusal(422, _told(str(error), kind)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(400, f"the body is not JSON: {error}") from None


def parse_json(content: bytes) -> Any:
    """Read a body as JSON of any kind; Refusal with 400 where it is none."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(400, f"the body is not JSON: {error}") from None


def parse_query(given: Mapping[str, str], kind: type[Type]) -> Type:
    """Read the fields behind the question mark of an address; Refusal with 422 where they are not of the type."""
    try:
        return msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal(422, _told(str(error), kind)) from None


def encode(data: Any) -> bytes:
    """Make JSON of an answer; what is infinite becomes null, which JSON has."""
    return msgspec.json.encode(data)


def schemas_of(kinds: Sequence[Any], ref: str) -> dict[str, Any]:
    """The JSON Schemas of types, by name; ``ref``: how one refers to another, with {name}."""
    return msgspec.json.schema_components(kinds, ref_template=ref)[1]


def given(value: Any) -> Any:
    """The value of a field, None if it was left out."""
    return None if value is UNSET else value


def label_name(name: str) -> str:
    """The name of a label, composed as it is in the model."""
    return unicodedata.normalize("NFC", name)


def _told(said: str, kind: type) -> str:
    """What is wrong with a body, in words: the field, what it is, what it must be."""
    said, _, at = said.partition(" - at `$")
    where = at.removesuffix("`").lstrip(".")
    inside = f"{where}: " if where else ""
    if found := MISSING.fullmatch(said):
        return f"{inside}the field {found[1]!r} is missing"
    if found := UNKNOWN.fullmatch(said):
        known = ", ".join(sorted(getattr(kind, "__struct_fields__", ())))
        return f"{inside}the field {found[1]!r} is not known" + ("" if inside else f"; there are {known or 'none'}")
    if found := BOUND.fullmatch(said):
        return _bound(where, *found.groups())
    if found := OTHER_KIND.fullmatch(said):
        wanted = " or ".join(KINDS.get(one.strip(), one.strip()) for one in found[1].split("|"))
        is_now = f"is of type {found[2]}; it" if where else f"the body is of type {found[2]}; send a JSON object:"
        return f"{where} {is_now} must be {wanted}" if where else f"{is_now} {{...}}"
    return f"{where or 'the body'}: {said}" if where else said


def _bound(where: str, kind: str, of_length: str | None, sign: str, number: str) -> str:
    low, limit = sign.startswith(">"), f"{float(number):,g}"
    edge = {">=": "at least ", "<=": "at most ", ">": "more than ", "<": "less than "}[sign] + limit
    if not of_length:
        return f"{where} is too {'small' if low else 'large'}; it must be {KINDS.get(kind, kind)}, {edge}"
    what = "characters" if kind == "str" else "entries"
    return f"{where} has too {'few' if low else 'many'} {what}; {edge} are taken at once"
