"""A socket that is bound first, and uvicorn on it. The only import of uvicorn."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamlabel.exceptions import MissingExtraError, StreamlabelError

if TYPE_CHECKING:
    import uvicorn

__all__ = ["address_of", "listen", "make_server", "run_until_signal", "url_of"]

MOST_CONNECTIONS = 100
SECONDS_TO_END = 30


def address_of(host: str) -> str:
    """The IP address of a host: the first one, which is then the one that is bound."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise StreamlabelError(f"{host!r} is no address of this machine ({error}); try --host 127.0.0.1") from None
    return str(found[0][4][0])


def listen(address: str, port: int) -> socket.socket:
    """A socket that takes connections; port 0 for one that is free."""
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
    address, port = listener.getsockname()[:2]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def make_server(app: Callable[..., Any]) -> uvicorn.Server:
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("uvicorn", "serve", "the service") from None
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",
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


def run_until_signal(server: uvicorn.Server, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve; returns after SIGTERM, KeyboardInterrupt after Ctrl-C, both when the requests under way are answered.

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
