"""A web server on 127.0.0.1 that misbehaves on demand, for the tests of downloads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

from processes import PATIENCE


@dataclass
class Site:
    """What the server does, and what it was asked."""

    body: bytes = b""  # what every other path answers with
    files: dict[str, bytes] = field(default_factory=dict)
    etag: str | None = '"v1"'
    ranges: bool = True
    breaks: list[int] = field(default_factory=list)  # bytes to send before each broken connection
    statuses: list[int] = field(default_factory=list)  # error answers to give first
    redirects: dict[str, str] = field(default_factory=dict)
    length: bool = True
    stalls: bool = False  # keep a broken connection open and silent, until all ends
    ended: threading.Event = field(default_factory=threading.Event)
    shift: int = 0  # a wrong start in Content-Range
    requests: list[dict[str, str]] = field(default_factory=list)
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    site: Site

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        site = self.site
        site.requests.append({name.lower(): value for name, value in self.headers.items()})
        if self.path in site.redirects:
            self.send_response(302)
            self.send_header("Location", site.redirects[self.path])
            self.end_headers()
        elif site.statuses:
            self.send_error(site.statuses.pop(0))
        elif self.path in site.files:
            self.send_file(site, site.files[self.path])
        elif site.files or self.path.startswith("/missing"):
            self.send_error(404)
        else:
            self.send_file(site, site.body)

    def send_file(self, site: Site, content: bytes) -> None:
        start = 0
        wanted = self.headers.get("Range")
        fits = self.headers.get("If-Range") in (None, site.etag)
        if wanted and site.ranges and fits:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start + site.shift}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if site.etag:
            self.send_header("ETag", site.etag)
        body = content[start:]
        if site.length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.close_connection = True
        if not site.breaks:
            self.wfile.write(body)
            return
        self.wfile.write(body[: site.breaks.pop(0)])
        self.wfile.flush()
        if site.stalls:
            site.ended.wait(PATIENCE)


@contextmanager
def running_site(body: bytes = b"") -> Iterator[Site]:
    """The server, as long as the block runs; ``site.url`` is its address."""
    site = Site(body)
    no_proxy = mock.patch.dict(os.environ, {"no_proxy": "127.0.0.1"})
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("BoundHandler", (Handler,), {"site": site}))
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        with no_proxy:
            yield site
    finally:
        site.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def closed_port() -> int:
    """A port of 127.0.0.1 where nobody listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        return server.server_port
