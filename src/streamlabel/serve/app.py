"""The service as a Starlette application: all routes, with limits and refusals. The only import of starlette."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
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
MOST_UNDER_WAY = 100  # requests whose bodies are in memory at the same time, of MOST_BYTES at most
SECONDS_FOR_BODY = 20.0
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
        from starlette.routing import Route as StarletteRoute
    except ImportError:
        raise MissingExtraError("starlette", "serve", "the service") from None
    readers, writer, apart = (
        ThreadPoolExecutor(size, name) for size, name in ((READERS, "reader"), (1, "writer"), (1, "apart"))
    )
    under_way = asyncio.Semaphore(MOST_UNDER_WAY)

    def endpoint(one: Route) -> Callable[[Request], Awaitable[Response]]:
        if one.apart:
            return _endpoint(one, living, apart)
        return _bounded(_endpoint(one, living, writer if one.writes else readers), under_way)

    async def refuse(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return _response(_error(error.message), error.status, error.headers)

    async def refuse_package(_: Request, error: Exception) -> Response:
        assert isinstance(error, StreamlabelError)
        return await refuse(_, refusal_for(error))

    async def refuse_route(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _response(_error(str(error.detail)), error.status_code, dict(error.headers or {}))

    async def fail(_: Request, error: Exception) -> Response:
        return _response(_error("the service failed; its log says why"), HTTPStatus.INTERNAL_SERVER_ERROR)

    app = Starlette(
        routes=[StarletteRoute(one.path, endpoint(one), methods=[one.method]) for one in ROUTES],
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


def _endpoint(route: Route, living: LivingTagger, pool: ThreadPoolExecutor) -> Callable[[Request], Awaitable[Response]]:
    def work(content: bytes | None, path: dict[str, Any]) -> tuple[bytes, int]:
        reply = route.answer(living, path if content is None else parse_body(content))
        return _encode(reply.data), reply.status

    async def answer(request: Request) -> Response:
        if route.writes and living.read_only:
            raise Refusal(503, "this service is read-only; it was started with --read-only")
        try:
            content = await _read_body(request) if route.method == "POST" else None
            work_done = asyncio.get_running_loop().run_in_executor(pool, work, content, request.path_params)
            return _response(*await work_done)
        except asyncio.CancelledError:  # the server ends, and has waited long enough
            raise Refusal(503, "the service is ending; ask again when it is back", CLOSE) from None

    return answer


def _bounded(
    answer: Callable[[Request], Awaitable[Response]], under_way: asyncio.Semaphore
) -> Callable[[Request], Awaitable[Response]]:
    async def answer_few(request: Request) -> Response:
        if under_way.locked():
            raise Refusal(503, "too many requests are under way; try again in a moment", {"Retry-After": "1"} | CLOSE)
        async with under_way:
            return await answer(request)

    return answer_few


async def _read_body(request: Request) -> bytes:
    from starlette.requests import ClientDisconnect

    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON or request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(415, f"send the body with 'Content-Type: {JSON}', and not compressed")
    too_large = Refusal(413, f"the body is larger than {MOST_BYTES >> 20} MiB; send fewer or shorter texts", CLOSE)
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced[:20]) > MOST_BYTES:
        raise too_large
    content = bytearray()
    try:
        async with asyncio.timeout(SECONDS_FOR_BODY):
            async for chunk in request.stream():
                content += chunk
                if len(content) > MOST_BYTES:
                    raise too_large
    except TimeoutError:
        raise Refusal(408, f"the body did not come within {SECONDS_FOR_BODY:g} s; send it again", CLOSE) from None
    except ClientDisconnect:
        raise Refusal(400, "the body ended too early") from None
    return bytes(content)


def _error(message: str) -> bytes:
    return _encode({"error": message})


def _encode(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, allow_nan=False).encode()


def _response(content: bytes, status: int, headers: dict[str, str] | None = None) -> Response:
    from starlette.responses import Response

    return Response(content, status, headers, media_type=JSON)
