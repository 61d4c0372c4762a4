"""The server: a socket that is bound first, and uvicorn on it. The only import of uvicorn."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamlabel.errors import MissingExtraError, StreamlabelError

if TYPE_CHECKING:
    import uvicorn


MOST_CONNECTIONS = 500  # half of the files that a process may usually have open (1,024); the model needs some, too
SECONDS_FOR_HEAD = 10.0
SECONDS_FOR_REQUEST = 30.0  # more than the application allows for a body: this cuts off what it does not read
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
    # asyncio turns off Nagle's algorithm, which costs 40 ms an answer, where a socket says that it is TCP.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, bound.detach())


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
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=SECONDS_TO_END,
        )
    )


def _punctual_protocol() -> type[asyncio.Protocol]:
    """uvicorn's protocol, with a limit for how long a request may take to come; it has one between requests only."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class PunctualProtocol(H11Protocol):
        _awaited: Any = None
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._await(None)

        def _watch(self) -> None:
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

    before = signal.signal(signal.SIGTERM, end)
    try:
        ready()
        server.run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, before)
