"""The server: a socket that is bound first, and uvicorn on it. The only import of uvicorn."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamlabel.errors import MissingExtraError, StreamlabelError

if TYPE_CHECKING:
    import uvicorn


MOST_CONNECTIONS = 500
USUAL_FILES = 1024  # that a process may have open; more are not used
QUEUE = 512  # connections that wait in the system until they are taken
SEND_BUFFER = 128 << 10  # bytes: what the system takes of an answer that nobody reads
MOST_LINES = 10  # of a kind in the log in a minute
SECONDS_FOR_HEAD = 10.0
SECONDS_FOR_REQUEST = 30.0  # more than the application allows for a body: this cuts off what it does not read
SECONDS_TO_TAKE = 20.0  # for what the application sends at once
SECONDS_TO_END = 30  # more than a body may take, so that nothing that comes slowly has to be cut off


def address_of(host: str) -> str:
    """The IP address of a host: the first one, which is then the one that is bound."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise StreamlabelError(f"{host!r} is no address of this machine ({error}); try --host 127.0.0.1") from None
    return str(found[0][4][0])


def listen(address: str, port: int) -> socket.socket:
    """Open a socket that takes connections; port 0 for one that is free."""
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    try:
        bound = socket.create_server((address, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise StreamlabelError(f"port {port} of {address} is in use; choose another one with --port") from None
        raise StreamlabelError(f"cannot listen at {address}, port {port}: {error.strerror or error}") from None
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    # asyncio turns off Nagle's algorithm, which costs 40 ms an answer, where a socket says that it is TCP.
    return _Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, bound.detach())


class _Listener(socket.socket):
    """A socket with a queue of its own length; asyncio would make it as short as what it takes from it at a time."""

    def listen(self, backlog: int = QUEUE) -> None:
        super().listen(max(backlog, QUEUE))


def url_of(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    address, port = listener.getsockname()[:2]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def make_server(app: Callable[..., Any]) -> uvicorn.Server:
    """Make the uvicorn server of an application."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("uvicorn", "serve", "the service") from None
    files = _most_files()
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=_punctual_protocol(),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=min(MOST_CONNECTIONS, files // 2),  # the model needs some files, too
            backlog=max(1, files // 16),  # asyncio takes so many at a time, a few times over, before it can close any
            timeout_graceful_shutdown=SECONDS_TO_END,
        )
    )


def _most_files() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return USUAL_FILES
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if 0 < most < USUAL_FILES else USUAL_FILES


def _punctual_protocol() -> type[asyncio.Protocol]:
    """uvicorn's protocol, with limits for how many connections there are, and how long a request or answer takes.

    Without them it has one between requests only. Nothing of an answer is taken while the piece before is unsent.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class PunctualProtocol(H11Protocol):
        _awaited: Any = None
        _timer: asyncio.TimerHandle | None = None
        _taking: asyncio.TimerHandle | None = None
        _heard = 0.0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            transport.set_write_buffer_limits(high=0)
            self._watch()
            if len(self.connections) >= (self.limit_concurrency or 0):
                self._make_room()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._await(None)
            self.resume_writing()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._taking = self.loop.call_later(SECONDS_TO_TAKE, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._taking is not None:
                self._taking.cancel()

        def _make_room(self) -> None:
            """Close the connection that has been quiet for longest, of those between requests; this one is, too."""
            connections: set[Any] = self.connections
            idle = (one for one in connections if one.conn.their_state is h11.IDLE)
            oldest = min(idle, key=lambda one: one._heard)
            connections.discard(oldest)
            oldest.transport.abort()

        def _watch(self) -> None:
            self._heard = self.loop.time()
            state = self.conn.their_state
            if state is not self._awaited:
                self._await(state)

        def _await(self, state: Any) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._awaited, self._timer = state, None
            limits = {h11.IDLE: SECONDS_FOR_HEAD, h11.SEND_BODY: SECONDS_FOR_REQUEST}
            if state in limits:
                self._timer = self.loop.call_later(limits[state], self.transport.abort)

    return PunctualProtocol


def run_until_signal(server: uvicorn.Server, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM (then return) or Ctrl-C (then raise KeyboardInterrupt).

    Both wait until the requests under way are answered or SECONDS_TO_END have passed.

    ready : called when connections are taken
    """

    def end(*_: Any) -> None:  # uvicorn repeats the signal when it has ended
        server.should_exit = True

    before, few = signal.signal(signal.SIGTERM, end), FewLines()
    loggers = [logging.getLogger(name) for name in ("asyncio", "uvicorn.error", "streamlabel.serve")]
    try:
        for logger in loggers:
            logger.addFilter(few)
        ready()
        server.run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, before)
        for logger in loggers:
            logger.removeFilter(few)


class FewLines(logging.Filter):
    """A filter that lets the same line into the log a few times a minute only, however often somebody causes it."""

    def __init__(self) -> None:
        super().__init__()
        self._minute, self._counts = 0.0, Counter[str]()

    def filter(self, record: logging.LogRecord) -> bool:
        minute, line = time.monotonic() // 60, record.getMessage().partition("\n")[0]
        if minute != self._minute:
            self._minute, self._counts = minute, Counter()
        self._counts[line] += 1
        if self._counts[line] == MOST_LINES:
            record.msg = f"{record.msg} (more of these are left out for a minute)"
        return self._counts[line] <= MOST_LINES
