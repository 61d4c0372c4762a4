"""The service as a Starlette application: all routes, with limits and refusals. The only import of starlette."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from streamlabel.errors import MissingExtraError, StreamlabelError
from streamlabel.serve.access import Gate, Refusal, refusal_for
from streamlabel.serve.live_tagger import LivingTagger
from streamlabel.serve.openapi import document
from streamlabel.serve.page_data import pages_of, reference, status
from streamlabel.serve.pages import PREFIX, Found, ResultsPage, Shown, wants_page
from streamlabel.serve.requests import JSON, Asked, Reply, Route, encode, parse_body, parse_json, parse_query
from streamlabel.serve.routes import live, routes_of
from streamlabel.serve.telemetry import RequestFacts, Telemetry

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


logger = logging.getLogger("streamlabel.serve")
QUICK = 32 << 10  # bytes of a body that is answered by one thread: several only take turns at what Python does
MOST_QUICK = 16  # of them that wait for it; others are answered as large ones are
READERS = 4  # answers that are worked out at the same time; each may hold the scores of some texts for all labels
LANES = {"": READERS, "apart": 1, "loop": 1, "login": 1, "webhook": 4}  # threads of routes that wait for no others
MOST_UNDER_WAY = 100  # requests of a lane, from the body to the last byte of the answer; a large body counts as several
MOST_LOGINS = 8  # the same of those who may not ask yet
USUAL_BYTES = 4 << 20  # of a body; a larger one, where a route takes it, counts as so many requests of this size
MOST_ANSWERS = 64 << 20  # bytes of all answers that are on their way
MOST_MESSAGE = 1000  # characters of an error, which may repeat what was asked; such an answer is not counted
AT_ONCE = 256 << 10  # bytes of an answer that are given to the connection together
MOST_DRAINED = 32 << 20  # bytes of a body that is too large; simple clients look for an answer when all is sent
SECONDS_FOR_BODY, SECONDS_TO_LOG_IN = 20.0, 3.0
FAILED = "the service failed; its log says why"
AGAIN = {"Retry-After": "1"}
CLOSE = {"Connection": "close"}  # what is left of the body is not waited for
HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
)
SLASH = b"%1F"  # stands for an escaped slash; no name has this character
FACTS, TOKEN = "streamlabel.facts", "streamlabel.token"  # in the scope of a request


def create_app(
    living: LivingTagger | Mapping[str, LivingTagger],
    gate: Gate,
    *,
    access_log: bool = False,
    more: Sequence[Route] = (),
    free: Sequence[str] = (),
    results: ResultsPage | None = None,
) -> ASGIApp:
    """Make the service as an ASGI application: of one model, or of several by name, each under /models/NAME.

    Answers are worked out in a few threads, changes one after the other in another one; some routes have their own
    threads and their own limit (`LANES`).

    more : routes beside those that every model has;   free : paths of theirs that need no token
    results : a page of experiments, to be shown among the web pages
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Match, Mount, Router
        from starlette.routing import Route as StarletteRoute
    except ImportError:
        raise MissingExtraError("starlette", "serve", "the service") from None

    class RawRoute(StarletteRoute):
        """A route in which an escaped slash is a part of a name, and does not part the path."""

        def matches(self, scope: Scope) -> tuple[Match, Scope]:
            raw = scope.get("raw_path", b"")
            if b"%2f" not in raw.lower():
                return super().matches(scope)
            path = unquote(re.sub(rb"%2[fF]", SLASH, raw).decode("ascii"))
            match, child = super().matches({**scope, "path": path})
            found = {key: value.replace("\x1f", "/") for key, value in child.get("path_params", {}).items()}
            return match, {**child, "path_params": found} if child else child

    telemetry, shown = Telemetry(log=access_log), Shown(gate, status, results)
    lanes = {name: (ThreadPoolExecutor(size, name or "reader"), _Few()) for name, size in LANES.items()}
    lanes["login"][1].most, quick = MOST_LOGINS, _Quick()

    def made(name: str, living: LivingTagger, root: str, routes: Sequence[Route]) -> list[StarletteRoute]:
        """The routes of a model, with those about the service itself."""
        telemetry.watch(name, living)
        own = (*routes, *_about(routes, telemetry, root, shown, tokens=gate.tokens is not None))
        own += (*(() if root else shown.open_routes()), *shown.routes(pages_of(living)))
        writer = ThreadPoolExecutor(1, "writer")
        found: list[StarletteRoute] = []
        for one in own:
            pool, count = lanes[one.lane]
            endpoint = _Endpoint(_Served(name, living, own, gate), one, writer if one.writes else pool, count, quick)
            found.append(RawRoute(one.path, endpoint, methods=[one.method]))
        return found

    several: dict[str, LivingTagger] = {} if isinstance(living, LivingTagger) else dict(living)
    routes: list[Any]
    if isinstance(living, LivingTagger):
        routes = made(living.path.name, living, "", (*routes_of(living), *more))
        inner = routes
    else:
        inner, routes = [], []
        for name, one in several.items():
            inner += (mine := made(name, one, f"/models/{name}", (*routes_of(one), *more)))
            routes.append(Mount(f"/models/{name}", app=Router(mine, redirect_slashes=False)))
        of_all = (*_about((), telemetry, "", shown)[:1], *shown.open_routes(), *_of_all(several, shown))
        first = next(iter(several.values()))
        for route in of_all:
            endpoint = _Endpoint(_Served("", first, of_all, gate), route, *lanes[route.lane], quick)
            routes.append(StarletteRoute(route.path, endpoint, methods=[route.method]))
            inner.append(routes[-1])

    async def refuse(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return _response(_error(error.message), error.status, error.headers)

    async def refuse_package(_: Request, error: Exception) -> Response:
        assert isinstance(error, StreamlabelError)
        return await refuse(_, refusal_for(error))

    async def refuse_route(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        if "Allow" in headers:  # of one route; others may have the same path
            same = (route for route in inner if route.matches(request.scope)[0] is not Match.NONE)
            headers["Allow"] = ", ".join(sorted({method for route in same for method in route.methods or ()}))
        if "text/html" in request.headers.get("accept", ""):
            root, said = request.scope.get("root_path", ""), "there is no such page"
            asked = Asked(headers=request.headers, root=root, top=request.scope.get("app_root_path", root))
            refusal = Refusal(error.status_code, said if error.status_code == 404 else str(error.detail), headers)
            reply = shown.refusal(None, asked, refusal)
            return _response(reply.data, reply.status, reply.headers, reply.kind)
        return _response(_error(str(error.detail)), error.status_code, headers)

    async def fail(_: Request, error: Exception) -> Response:
        return _response(_error(FAILED), HTTPStatus.INTERNAL_SERVER_ERROR)

    app = Starlette(
        routes=routes,
        exception_handlers={
            Refusal: refuse, StreamlabelError: refuse_package, HTTPException: refuse_route, Exception: fail,
        },
    )  # fmt: skip
    app.router.redirect_slashes = False
    roots = ("", *(f"/models/{name}" for name in several))
    open_paths = ("/livez", "/readyz", *(one.path for one in shown.open_routes()), *free)
    all_free = frozenset(f"{root}{path}" for root in roots for path in open_paths)
    return _Door(app, gate, telemetry, all_free)


def _about(
    routes: Sequence[Route], telemetry: Telemetry, root: str, shown: Shown, *, tokens: bool = False
) -> tuple[Route, ...]:
    """The routes that are about a service: its metrics, and its reference for programs and people."""

    def openapi(_: LivingTagger, __: Asked) -> Reply:
        return Reply(document(routes, tokens=tokens, root=root))

    def docs(living: LivingTagger, asked: Asked) -> Reply:
        return shown.page(living, asked, reference(document(routes, tokens=tokens, root=root)))

    return (
        Route("GET", "/metrics", lambda _, __: telemetry.metrics(), "figures for Prometheus"),
        Route("GET", "/openapi.json", openapi, "this service as an OpenAPI 3.1 document"),
        Route("GET", "/docs", docs, "the same as a page to read"),
    )


def _of_all(several: Mapping[str, LivingTagger], shown: Shown) -> tuple[Route, ...]:
    """The routes of a service with several models: which there are, and whether all are ready."""

    def models(_: LivingTagger, asked: Asked) -> Reply:
        found = [
            {"name": name, "path": f"/models/{name}/", "revision": view.revision, "n_labels": len(view.labels)}
            for name, view in ((name, one.view()) for name, one in several.items())
        ]
        data = {"service": "streamlabel", "models": found}
        return shown.page(None, asked, Found("models.html", data)) if wants_page(asked) else Reply(data)

    def ready(_: LivingTagger, __: Asked) -> Reply:
        broken = [name for name, one in several.items() if one.view() and one.problem]
        return Reply({"ok": not broken, "not_ready": broken}, 503 if broken else 200)

    def to_models(_: LivingTagger, asked: Asked) -> Reply:
        model = asked.here if asked.here.startswith("/models/") else ""
        return Reply(b"", 303, headers={"Location": f"{asked.root}{model}/"})

    own = [f"/models/{name}" for name in several]
    return (
        Route("GET", "/", models, "the models"),
        *(
            Route("GET", path, to_models, "")
            for path in ("/docs", "/openapi.json", PREFIX, f"{PREFIX}/{{rest:path}}", *own)
        ),
        Route("GET", "/livez", live, "whether the process answers", lane="loop", scope=None),
        Route("GET", "/readyz", ready, "whether all models can be read", lane="apart", scope=None),
    )


class _Door:
    """The outermost layer: asks who comes, lets in whom the gate lets in, counts, and adds the same headers to all.

    free : the paths that need no token
    """

    def __init__(self, app: ASGIApp, gate: Gate, telemetry: Telemetry, free: frozenset[str]) -> None:
        self._app, self._gate, self._telemetry, self._free = app, gate, telemetry, free

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begin, facts = time.perf_counter(), RequestFacts(scope["method"], scope["headers"])
        scope[FACTS], scope[TOKEN] = facts, None

        async def send_with_headers(message: Message) -> None:
            facts.see(message)
            if message["type"] == "http.response.start":
                headers = message["headers"] = list(message.get("headers", ()))
                known = {name.lower() for name, _ in headers}
                headers += [(name, value) for name, value in HEADERS if name not in known]
                headers.append((b"x-request-id", facts.id.encode()))
            await send(message)

        self._telemetry.began()
        try:
            token = self._gate.check(scope["headers"])
            if token is not None:
                scope[TOKEN], facts.token = token, token.name
            if scope["path"] not in self._free:
                self._gate.require(token, "read")
            await self._app(scope, receive, send_with_headers)
        except Refusal as refusal:
            response = _response(_error(refusal.message), *_to_login(scope, refusal))
            await response(scope, receive, send_with_headers)
        finally:
            self._telemetry.ended(facts, time.perf_counter() - begin)


def _to_login(scope: Scope, refusal: Refusal) -> tuple[int, dict[str, str]]:
    """The status and headers of a refusal; a browser without a token is led to the page that asks for one."""
    from starlette.datastructures import Headers

    headers = Headers(scope=scope)
    place = f"{scope.get('root_path', '')}{PREFIX}/login"
    if refusal.status == HTTPStatus.UNAUTHORIZED and headers.get("hx-request") == "true":
        return refusal.status, refusal.headers | {"HX-Redirect": place}
    if (
        refusal.status == HTTPStatus.UNAUTHORIZED
        and scope["method"] == "GET"
        and "text/html" in headers.get("accept", "")
    ):
        return HTTPStatus.SEE_OTHER, {"Location": place}
    return refusal.status, refusal.headers


class _Few:
    """A count of the requests under way, and of the bytes of their answers; Refusal where there is no room for more."""

    def __init__(self) -> None:
        self.most, self._requests, self._bytes = MOST_UNDER_WAY, 0, 0

    @contextmanager
    def request(self, weight: int = 1) -> Iterator[None]:
        if self._requests + weight > self.most:
            raise Refusal(429, "too many requests are under way; try again in a moment", AGAIN | CLOSE)
        self._requests += weight
        try:
            yield
        finally:
            self._requests -= weight

    @contextmanager
    def answer(self, size: int) -> Iterator[None]:
        """Count an answer; one that is larger than all may be together goes alone."""
        if self._bytes and self._bytes + size > MOST_ANSWERS:
            raise Refusal(429, "too many answers are on their way; try again in a moment", AGAIN)
        self._bytes += size
        try:
            yield
        finally:
            self._bytes -= size


class _Quick:
    """The one thread for what takes little time; while too much waits for it, other threads do it."""

    def __init__(self) -> None:
        self._thread, self._waiting = ThreadPoolExecutor(1, "quick"), 0

    @contextmanager
    def thread_or(self, pool: ThreadPoolExecutor, is_quick: bool) -> Iterator[ThreadPoolExecutor]:
        if not is_quick or self._waiting >= MOST_QUICK:
            yield pool
            return
        self._waiting += 1
        try:
            yield self._thread
        finally:
            self._waiting -= 1


@dataclass(frozen=True)
class _Served:
    """A model as it is served: its name, its routes, and who may ask."""

    name: str
    living: LivingTagger
    routes: tuple[Route, ...]
    gate: Gate


class _Endpoint:
    """A route as an ASGI application, so that its requests count until the last byte of the answer is sent."""

    def __init__(self, served: _Served, route: Route, pool: ThreadPoolExecutor, few: _Few, quick: _Quick) -> None:
        self._served, self._route, self._pool, self._few, self._quick = served, route, pool, few, quick

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.requests import Request

        facts: RequestFacts = scope[FACTS]
        facts.route, facts.model = self._route.path, self._served.name
        request = Request(scope, receive)
        with ExitStack() as held:
            try:
                held.enter_context(self._few.request(_weight(request, self._route)))
                if self._route.scope is not None:
                    self._served.gate.require(scope[TOKEN], self._route.scope)
                reply = await self._answer(request)
                held.enter_context(self._few.answer(len(reply.data)))
            except Exception as error:
                if self._route.refused is None:
                    raise
                show, living, refusal = self._route.refused, self._served.living, _refusal_for(error)
                reply = await asyncio.to_thread(show, living, self._asked(request), refusal)
            facts.learned = reply.learned
            await _send(reply, send)

    async def _answer(self, request: Request) -> Reply:
        if self._route.writes and self._served.living.read_only:
            raise Refusal(503, "this service is read-only; it was started with --read-only")
        try:
            body = await _read_body(request, self._route) if self._route.method in ("POST", "PATCH", "PUT") else None
            if self._route.lane == "loop":
                return self._work(body, request)
            is_quick = self._route.quick and len(body or b"") <= QUICK
            with self._quick.thread_or(self._pool, is_quick) as pool:
                return await asyncio.get_running_loop().run_in_executor(pool, self._work, body, request)
        except asyncio.CancelledError:  # the server ends, and has waited long enough
            raise Refusal(503, "the service is ending; ask again when it is back", CLOSE) from None

    def _work(self, body: bytes | None, request: Request) -> Reply:
        """The answer, as bytes."""
        route, living, token = self._route, self._served.living, request.scope[TOKEN]
        parsed: Any = body
        if body is not None and route.takes == JSON:
            parsed = parse_json(body) if route.body is None else parse_body(body, route.body)
        query: Any = request.query_params
        query = query if route.query is None else parse_query(query, route.query)
        with contextlib.nullcontext() if token is None else living.acting(token.name):
            reply = route.answer(living, replace(self._asked(request), query=query, body=parsed))
        return reply if isinstance(reply.data, bytes) else replace(reply, data=encode(reply.data))

    def _asked(self, request: Request) -> Asked:
        root = request.scope.get("root_path", "")
        return Asked(
            request.path_params, routes=self._served.routes, headers=request.headers, token=request.scope[TOKEN],
            root=root, top=root.removesuffix(f"/models/{self._served.name}"),
            here=request.scope["path"].removeprefix(root),
        )  # fmt: skip


def _refusal_for(error: Exception) -> Refusal:
    """What a page says about an error; one that nobody expected goes to the log."""
    if isinstance(error, StreamlabelError):
        return refusal_for(error)
    if not isinstance(error, Refusal):
        logger.error("a page failed", exc_info=error)
    return error if isinstance(error, Refusal) else Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, FAILED)


async def _send(reply: Reply, send: Send) -> None:
    """Send an answer, piece by piece: each waits until the one before it has left this process."""
    content = reply.data
    headers = _response(content, reply.status, reply.headers, reply.kind).raw_headers
    try:
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        for start in range(0, len(content), AT_ONCE):
            piece = content[start : start + AT_ONCE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except asyncio.CancelledError:  # the server ends, and has waited long enough
        return


def _weight(request: Request, route: Route) -> int:
    """How many requests of the usual size a request counts as, by what its head says of its body."""
    length = request.headers.get("content-length", "")
    said = int(length[:20]) if length.isdecimal() else route.most_bytes if "transfer-encoding" in request.headers else 0
    return max(1, -(-min(said, route.most_bytes) // USUAL_BYTES))


async def _read_body(request: Request, route: Route) -> bytes:
    from starlette.requests import ClientDisconnect

    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != route.takes or request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(415, f"send the body with 'Content-Type: {route.takes}', and not compressed")
    allowed, drained = route.most_bytes, max(route.most_bytes, MOST_DRAINED)
    seconds = SECONDS_TO_LOG_IN if route.lane == "login" else SECONDS_FOR_BODY
    size_told = f"{allowed >> 20} MiB" if allowed >> 20 else f"{allowed >> 10} KiB"
    too_large = Refusal(413, f"the body is larger than {size_told}; send fewer or shorter texts", CLOSE)
    announced = request.headers.get("content-length", "0")
    most = allowed if "expect" in request.headers else drained  # who expects a word first has sent nothing yet
    if announced.isdecimal() and int(announced[:20]) > most:
        raise too_large
    content, size = bytearray(), 0
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= allowed:
                    content += chunk
                elif size > drained:
                    break
    except TimeoutError:
        if size <= allowed:
            raise Refusal(408, f"the body did not come within {seconds:g} s; send it again", CLOSE) from None
    except ClientDisconnect:
        raise Refusal(400, "the body ended too early") from None
    if size > allowed:
        raise too_large
    return bytes(content)


def _error(message: str) -> bytes:
    return encode({"error": message[:MOST_MESSAGE]})


def _response(content: bytes, status: int, headers: dict[str, str] | None = None, kind: str = JSON) -> Response:
    from starlette.responses import Response

    return Response(content, status, headers, media_type=kind)
