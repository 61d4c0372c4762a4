"""The service as a Starlette application: all routes, with limits and refusals. The only import of starlette."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from streamlabel.errors import MissingExtraError, StreamlabelError
from streamlabel.serve.access import Gate, Refusal, refusal_for
from streamlabel.serve.live_tagger import LivingTagger
from streamlabel.serve.routes import MOST_BYTES, ROUTES, Route, parse_body

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


READERS = 4  # answers that are worked out at the same time; each may hold the scores of some texts for all labels
MOST_UNDER_WAY = 100  # requests at the same time, each from its body, of MOST_BYTES at most, to its answer's last byte
MOST_ANSWERS = 64 << 20  # bytes of all answers that are on their way
MOST_MESSAGE = 1000  # characters of an error, which may repeat what was asked; such an answer is not counted
AT_ONCE = 256 << 10  # bytes of an answer that are given to the connection together
MOST_DRAINED = 32 << 20  # bytes of a body that is too large; simple clients look for an answer when all is sent
SECONDS_FOR_BODY = 20.0
AGAIN = {"Retry-After": "1"}
CLOSE = {"Connection": "close"}  # what is left of the body is not waited for
JSON = "application/json"
HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
)


def create_app(living: LivingTagger, gate: Gate) -> ASGIApp:
    """Make the service as an ASGI application.

    Answers are worked out in a few threads, changes one after the other in another one; /health has its own.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Match
        from starlette.routing import Route as StarletteRoute
    except ImportError:
        raise MissingExtraError("starlette", "serve", "the service") from None
    readers, writer, apart = (
        ThreadPoolExecutor(size, name) for size, name in ((READERS, "reader"), (1, "writer"), (1, "apart"))
    )
    few, few_apart = _Few(), _Few()

    def endpoint(one: Route) -> _Endpoint:
        if one.apart:
            return _Endpoint(one, living, apart, few_apart)
        return _Endpoint(one, living, writer if one.writes else readers, few)

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
            same = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
            headers["Allow"] = ", ".join(sorted({method for route in same for method in route.methods or ()}))
        return _response(_error(str(error.detail)), error.status_code, headers)

    async def fail(_: Request, error: Exception) -> Response:
        return _response(_error("the service failed; its log says why"), HTTPStatus.INTERNAL_SERVER_ERROR)

    paths = [one.path.replace("}", ":path}") for one in ROUTES]  # a name may hold a slash
    routes = [
        StarletteRoute(path, endpoint(one), methods=[one.method]) for path, one in zip(paths, ROUTES, strict=True)
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            Refusal: refuse, StreamlabelError: refuse_package, HTTPException: refuse_route, Exception: fail,
        },
    )  # fmt: skip
    app.router.redirect_slashes = False
    return _Door(app, gate)


class _Door:
    """The outermost layer: lets requests in that the gate lets in, and puts the same headers on every answer."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            self._gate.check(scope["headers"])
        except Refusal as refusal:
            response = _response(_error(refusal.message), refusal.status, refusal.headers)
            return await response(scope, receive, send_with_headers)
        return await self._app(scope, receive, send_with_headers)


class _Few:
    """A count of the requests under way, and of the bytes of their answers; Refusal where there is no room for more."""

    def __init__(self) -> None:
        self._requests, self._bytes = 0, 0

    @contextmanager
    def request(self) -> Iterator[None]:
        if self._requests >= MOST_UNDER_WAY:
            raise Refusal(503, "too many requests are under way; try again in a moment", AGAIN | CLOSE)
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1

    @contextmanager
    def answer(self, size: int) -> Iterator[None]:
        """Count an answer; one that is larger than all may be together goes alone."""
        if self._bytes and self._bytes + size > MOST_ANSWERS:
            raise Refusal(503, "too many answers are on their way; try again in a moment", AGAIN)
        self._bytes += size
        try:
            yield
        finally:
            self._bytes -= size


class _Endpoint:
    """A route as an ASGI application, so that its requests count until the last byte of the answer is sent."""

    def __init__(self, route: Route, living: LivingTagger, pool: ThreadPoolExecutor, few: _Few) -> None:
        self._route, self._living, self._pool, self._few = route, living, pool, few

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.requests import Request

        with self._few.request():
            content, status = await self._answer(Request(scope, receive))
            with self._few.answer(len(content)):
                await _send(content, status, send)

    async def _answer(self, request: Request) -> tuple[bytes, int]:
        if self._route.writes and self._living.read_only:
            raise Refusal(503, "this service is read-only; it was started with --read-only")
        try:
            body = await _read_body(request) if self._route.method == "POST" else None
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, self._work, body, request.path_params)
        except asyncio.CancelledError:  # the server ends, and has waited long enough
            raise Refusal(503, "the service is ending; ask again when it is back", CLOSE) from None

    def _work(self, body: bytes | None, path: dict[str, Any]) -> tuple[bytes, int]:
        reply = self._route.answer(self._living, path if body is None else parse_body(body, path))
        return _encode(reply.data), reply.status


async def _send(content: bytes, status: int, send: Send) -> None:
    """Send an answer, piece by piece: each waits until the one before it has left this process."""
    headers = _response(content, status).raw_headers
    try:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for start in range(0, len(content), AT_ONCE):
            piece = content[start : start + AT_ONCE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except asyncio.CancelledError:  # the server ends, and has waited long enough
        return


async def _read_body(request: Request) -> bytes:
    from starlette.requests import ClientDisconnect

    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON or request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(415, f"send the body with 'Content-Type: {JSON}', and not compressed")
    too_large = Refusal(413, f"the body is larger than {MOST_BYTES >> 20} MiB; send fewer or shorter texts", CLOSE)
    announced = request.headers.get("content-length", "0")
    most = MOST_BYTES if "expect" in request.headers else MOST_DRAINED  # who expects a word first has sent nothing yet
    if announced.isdecimal() and int(announced[:20]) > most:
        raise too_large
    content, size = bytearray(), 0
    try:
        async with asyncio.timeout(SECONDS_FOR_BODY):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= MOST_BYTES:
                    content += chunk
                elif size > MOST_DRAINED:
                    break
    except TimeoutError:
        if size <= MOST_BYTES:
            raise Refusal(408, f"the body did not come within {SECONDS_FOR_BODY:g} s; send it again", CLOSE) from None
    except ClientDisconnect:
        raise Refusal(400, "the body ended too early") from None
    if size > MOST_BYTES:
        raise too_large
    return bytes(content)


def _error(message: str) -> bytes:
    return _encode({"error": message[:MOST_MESSAGE]})


def _encode(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, allow_nan=False).encode()


def _response(content: bytes, status: int, headers: dict[str, str] | None = None) -> Response:
    from starlette.responses import Response

    return Response(content, status, headers, media_type=JSON)
