"""How the service shows web pages, at /ui/: forms and links in, templates or JSON out.

The only import of jinja2 and markdown_it.

Every page answers with JSON instead, the data of its template, to who sends ``Accept: application/json``. Pages that
change something take only requests that a page of this service sends (`check_origin`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

from streamlabel.errors import DataError, MissingExtraError, NotFoundError
from streamlabel.serve.access import COOKIE, SCOPES, Gate, Refusal
from streamlabel.serve.requests import JSON, Asked, Reply, Route, encode

PREFIX = "/ui"
FORM = "application/x-www-form-urlencoded"
MOST_BYTES = 1 << 20  # of a form
MOST_FIELD = 200_000  # characters of a text
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", "Vary": "Accept, HX-Request"}
LASTING = {"Cache-Control": "public, max-age=31536000, immutable"}  # its URL has the hash of its content
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
CONFIG = json.dumps(
    {
        "includeIndicatorStyles": False,
        "allowEval": False,
        "allowScriptTags": False,
        "historyCacheSize": 0,
        "refreshOnHistoryMiss": True,
        "scrollBehavior": "auto",
        "defaultSettleDelay": 0,  # what is shown can be answered at once
        "responseHandling": [
            {"code": "204", "swap": False},
            {"code": "[23]..", "swap": True},
            {"code": "...", "swap": True, "error": True, "target": "#notice", "select": "#error",
             "swapOverride": "innerHTML"},
        ],
    }
)  # fmt: skip

Fields = Mapping[str, str]


@dataclass(frozen=True)
class Found:
    """The content of a page: its template, the data that fill it, and the address under which it is found again.

    learned : the seconds that learning took, for the metrics
    """

    template: str
    data: dict[str, Any]
    address: str | None = None
    learned: float | None = None


@dataclass(frozen=True)
class Page:
    """One page: method, path below /ui, what answers from the model and the fields of the form or the query.

    scope : what a token has to allow, as in `requests.Route`: read, annotate or admin;   writes : it changes the model
    """

    method: str
    path: str
    answer: Callable[[Any, Fields], Found]
    scope: str = "read"

    @property
    def writes(self) -> bool:
        return self.scope != "read"


def link(path: str, **fields: object) -> str:
    """An address below /ui with a query; names of labels may hold anything."""
    query = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in fields.items() if value not in (None, ""))
    return f"{path}?{query}" if query else path


def wants_page(asked: Asked) -> bool:
    """Whether a browser asks, which takes HTML."""
    return "text/html" in asked.headers.get("accept", "")


def wants_json(asked: Asked) -> bool:
    """Whether who asks prefers JSON to a page."""
    return JSON in asked.headers.get("accept", "") and not wants_page(asked)


def check_origin(asked: Asked) -> None:
    """Refuse what a page of another site may have sent: htmx's header cannot come from there without permission."""
    site = asked.headers.get("sec-fetch-site", "none")
    if asked.headers.get("hx-request") != "true" or site not in ("same-origin", "none"):
        raise Refusal(403, "only the pages of this service may send this; open it in a browser with scripts allowed")


class ResultsPage:
    """A page of experiments in Markdown, as ``streamlabel reproduce report`` writes it, with its pictures.

    Of links to other files only the words are left: those files are not served.
    """

    def __init__(self, path: Path) -> None:
        from markdown_it import MarkdownIt

        try:
            self.text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise NotFoundError(f"{path}: there is no such file; 'streamlabel reproduce report' writes one") from None
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"is no page in Markdown ({error})", source=path) from error
        found = re.findall(r"!\[[^\]]*\]\(([^)\s]+\.png)\)", self.text)
        self.pictures = {one.rpartition("/")[2]: path.parent / one for one in found if (path.parent / one).is_file()}
        reader = MarkdownIt("js-default", {"html": False, "linkify": False})
        tokens = reader.parse(self.text)
        for token in tokens:
            token.children = _without_files(token.children or [])
            if str(token.attrGet("style") or "").startswith("text-align:right"):  # the policy takes no inline style
                token.attrs = {"class": "number"}
        table = {"<table>": '<div class="wide" tabindex="0"><table>', "</table>": "</table></div>"}
        made = str(reader.renderer.render(tokens, reader.options, {}))
        self.html = re.sub("|".join(table), lambda one: table[one[0]], made)


def _without_files(tokens: list[Any]) -> list[Any]:
    """The pieces of a line without links to files; pictures get the address under which they are served."""
    kept: list[Any] = []
    inside = False
    for one in tokens:
        if one.type == "image":
            one.attrs["src"] = "results/" + str(one.attrs["src"]).rpartition("/")[2]
        if one.type == "link_open":
            inside = not str(one.attrGet("href")).startswith("https://")
        if not (inside and one.type in ("link_open", "link_close")):
            kept.append(one)
        inside = inside and one.type != "link_close"
    return kept


class Shown:
    """The templates and static files of the pages, and answers made of them.

    status : what every page of a model says about it at its foot;   results : the page of experiments
    """

    def __init__(self, gate: Gate, status: Callable[[Any], dict[str, Any]], results: ResultsPage | None = None) -> None:
        try:
            import jinja2
        except ImportError:
            raise MissingExtraError("jinja2", "serve", "the web pages") from None
        self._gate, self._status, self._results = gate, status, results
        folder = files("streamlabel.serve") / "web"
        self._static = {one.name: one.read_bytes() for one in (folder / "static").iterdir()}
        sources = {one.name: one.read_text(encoding="utf-8") for one in (folder / "templates").iterdir()}
        self._made = jinja2.Environment(
            loader=jinja2.DictLoader(sources), autoescape=True, undefined=jinja2.StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._made.filters.update(pct=_percent, count=_count)
        self._made.globals.update(link=link, ego=ego_graph, line=curve_line, config=CONFIG, floor=math.floor)
        self._hashes = {name: sha256(content).hexdigest()[:12] for name, content in self._static.items()}

    def routes(self, pages: Sequence[Page]) -> list[Route]:
        """The pages of a model as routes below `PREFIX`."""

        def route(page: Page) -> Route:
            def answer(living: Any, asked: Asked) -> Reply:
                if page.method == "POST":
                    check_origin(asked)
                fields = dict(asked.query) if asked.body is None else parse_form(asked.body)
                return self.page(living, asked, page.answer(living, fields))

            about = "web pages for people" if page.path == "/" and page.method == "GET" else ""
            return Route(
                page.method, f"{PREFIX}{page.path}", answer, about, writes=page.writes, scope=page.scope,
                takes=FORM, most_bytes=MOST_BYTES, refused=self.refusal,
            )  # fmt: skip

        def to_pages(_: Any, asked: Asked) -> Reply:
            return Reply(b"", 303, headers={"Location": f"{asked.root}{PREFIX}/"})

        def nothing(_: Any, __: Asked) -> Reply:
            raise Refusal(404, "there is no such page")

        other = Route("GET", f"{PREFIX}/{{rest:path}}", nothing, "", refused=self.refusal)
        return [*map(route, pages), *self._of_results(route), Route("GET", PREFIX, to_pages, ""), other]

    def _of_results(self, route: Callable[[Page], Route]) -> list[Route]:
        """The page of experiments, if there is one, and its pictures."""
        if self._results is None:
            return []
        found = Found("results.html", {"markdown": self._results.text, "_html": self._results.html})

        def picture(path: Path) -> Callable[[Any, Asked], Reply]:
            return lambda _, __: Reply(path.read_bytes(), kind="image/png", headers=HEADERS)

        pictures = self._results.pictures.items()
        shown = [Route("GET", f"{PREFIX}/results/{name}", picture(path), "") for name, path in pictures]
        return [route(Page("GET", "/results", lambda _, __: found)), *shown]

    def open_routes(self) -> list[Route]:
        """What is shown without a token: the page that asks for one, and the static files."""

        def file(name: str, content: bytes) -> Route:
            kind = KINDS.get(name.rpartition(".")[2], "text/plain")
            reply = Reply(content, kind=f"{kind}; charset=utf-8", headers=HEADERS | LASTING)
            return Route("GET", f"{PREFIX}/static/{name}", lambda _, __: reply, "", scope=None)

        def take(_: Any, asked: Asked) -> Reply:
            """Let the browser keep the token where no script can read it."""
            check_origin(asked)
            secret = parse_form(asked.body).get("token", "").strip()
            if self._gate.tokens is None or self._gate.tokens.find(secret) is None:
                raise Refusal(401, "that is no token of this service, or it holds no longer")
            safe = "; Secure" if asked.headers.get("x-forwarded-proto") == "https" else ""
            cookie = f"{COOKIE}={secret}; Path={asked.top}/; HttpOnly; SameSite=Strict{safe}"
            return Reply(b"", 204, headers={"Set-Cookie": cookie, "HX-Redirect": f"{asked.top}/"})

        path = f"{PREFIX}/login"
        return [
            *(file(name, content) for name, content in self._static.items()),
            Route("GET", path, lambda _, asked: self._html(None, asked, "login.html", {}), "", scope=None),
            Route(
                "POST",
                path,
                take,
                "",
                scope=None,
                takes=FORM,
                most_bytes=1 << 10,
                lane="login",
                refused=lambda _, asked, refusal: self.refusal(None, asked, refusal),
            ),
        ]

    def page(self, living: Any, asked: Asked, found: Found) -> Reply:
        """Answer with a page, or with its data; living: the model that its foot tells about, None for none."""
        address = {} if found.address is None else {"HX-Push-Url": asked.root + PREFIX + found.address}
        if wants_json(asked):
            told = {key: value for key, value in found.data.items() if not key.startswith("_")}
            data = ({} if living is None else {"revision": self._status(living)["revision"]}) | told
            return Reply(encode(data), headers=HEADERS, learned=found.learned)
        return self._html(living, asked, found.template, found.data, headers=address, learned=found.learned)

    def refusal(self, living: Any, asked: Asked, refusal: Refusal) -> Reply:
        """Answer with one message: a page, the piece of one that htmx shows, or JSON."""
        message = re.sub(r"'([^']{40})[^']{20,}'", r"'\1…'", refusal.on_page)[:1000]  # long names are cut
        if wants_json(asked):
            return Reply(encode({"error": message}), refusal.status, headers=HEADERS | refusal.headers)
        part = "notice.html" if asked.headers.get("hx-request") == "true" else "error.html"
        return self._html(
            living, asked, part, {"message": message, "label": refusal.label}, refusal.status, refusal.headers
        )

    def _html(
        self, living: Any, asked: Asked, template: str, values: dict[str, Any], code: int = 200,
        headers: Mapping[str, str] | None = None, learned: float | None = None,
    ) -> Reply:  # fmt: skip
        may = {one: self._gate.tokens is None or bool(asked.token and asked.token.may(one)) for one in SCOPES}
        more = {
            "root": asked.root + PREFIX,
            "above": asked.root,
            "top": asked.top,
            "here": asked.here.removeprefix(PREFIX) or "/",
            "static": self._hashes,
            "status": None if living is None else self._status(living),
            "has_results": self._results is not None,
            "token": asked.token,
            "may": {one: allowed and not (living and living.read_only) for one, allowed in may.items()},
        }
        content = self._made.get_template(template).render(values | more).encode()
        return Reply(content, code, "text/html; charset=utf-8", HEADERS | dict(headers or {}), learned)


def parse_form(content: bytes) -> dict[str, str]:
    """Read the fields of a form."""
    try:
        return dict(parse_qsl(content.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20))
    except ValueError:
        raise Refusal(400, "the form is not encoded as a browser does it") from None


def text_field(fields: Fields, name: str) -> str:
    """A field of a form, which must be there."""
    if name not in fields:
        raise Refusal(422, f"the field {name!r} is missing")
    if len(fields[name]) > MOST_FIELD:
        raise Refusal(413, f"{name} has more than {MOST_FIELD:,} characters; shorten it")
    return fields[name]


def whole_field(fields: Fields, name: str, usual: int | None = None) -> int:
    """A field of a form that is a whole number."""
    value = fields.get(name, "" if usual is None else str(usual))
    if not (value.isascii() and value.isdecimal() and len(value) < 16):
        raise Refusal(422, f"{name} must be a whole number")
    return int(value)


def number_field(fields: Fields, name: str) -> float:
    """A field of a form that is a finite number."""
    try:
        value = float(text_field(fields, name))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Refusal(422, f"{name} must be a number")
    return value


WIDTH, HEIGHT, RING = 560, 340, 110


def ego_graph(near: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The places of neighbours on a ring around a label, strongest at the top: positions, stroke, side of the name."""
    most = max((abs(one["weight"]) for one in near), default=1.0) or 1.0
    found = []
    for at, one in enumerate(near):
        angle = 2 * math.pi * (at + 0.5) / len(near) - math.pi / 2
        x, y = WIDTH / 2 + RING * math.cos(angle), HEIGHT / 2 + RING * math.sin(angle)
        right = math.cos(angle) >= 0
        found.append(
            one | {"x": round(x, 1), "y": round(y, 1), "stroke": round(1.5 + 5 * abs(one["weight"]) / most, 1),
                   "text_x": round(x + (14 if right else -14), 1), "anchor": "start" if right else "end"}
        )  # fmt: skip
    return found


def curve_line(curve: list[dict[str, Any]], key: str, width: float, height: float) -> dict[str, Any]:
    """A learning curve as SVG points: the line of ``key`` over the answers asked, and the band of its interval."""
    known = [one for one in curve if one[key] is not None]
    most = max((one["n_asked"] for one in known), default=0) or 1
    places = [(width * one["n_asked"] / most, one[key]) for one in known]

    def points(side: str) -> list[str]:
        return [f"{x:.1f},{height * (1 - said[side]):.1f}" for x, said in places]

    band = [*points("low"), *reversed(points("high"))]
    return {"line": " ".join(points("value")), "band": " ".join(band), "n": len(known), "most": most}


def _percent(share: float | None) -> str:
    """A share as a percentage; small ones with a digit more."""
    if share is None:
        return "not known"
    return f"{100 * share:.1f}%" if 0 < share < 0.1 else f"{100 * share:.0f}%"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
