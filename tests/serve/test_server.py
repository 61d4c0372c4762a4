"""The service at a port: those who send slowly or nothing are cut off, and keep nobody else from being answered."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from processes import PATIENCE, wait_for
from streamlabel import Tagger
from streamlabel.serve.access import Gate
from streamlabel.serve.live_tagger import LivingTagger
from streamlabel.serve.server import listen, make_server
from tagged_texts import tagged_texts

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")

from streamlabel.serve import app, server

HEAD = b"POST /suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"


class Service:
    def __init__(self, living: LivingTagger, gate: Gate) -> None:
        self.server = make_server(app.create_app(living, gate))
        self.listener = listen("127.0.0.1", 0)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listener]})

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def health(self) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status
        finally:
            connection.close()

    def end(self) -> None:
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@contextmanager
def started(living: LivingTagger, gate: Gate) -> Iterator[Service]:
    service = Service(living, gate)
    service.thread.start()
    try:
        yield service
    finally:
        service.end()


def everything(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    content = b""
    while chunk := connection.recv(65536):
        content += chunk
    return content


def test_many_idle_connections_keep_nobody_out(living: LivingTagger, loopback: Gate) -> None:
    with started(living, loopback) as service, ExitStack() as stack:
        for _ in range(120):
            stack.enter_context(service.connect())
        assert service.health() == 200


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHost: loc"])
def test_a_head_that_does_not_come_is_not_waited_for(
    living: LivingTagger, loopback: Gate, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(server, "SECONDS_FOR_HEAD", 0.5)
    with started(living, loopback) as service, service.connect() as connection:
        connection.sendall(sent)
        assert everything(connection) == b""


def test_a_head_that_trickles_is_cut_off_also_after_an_answer(
    living: LivingTagger, loopback: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "SECONDS_FOR_HEAD", 0.5)
    with started(living, loopback) as service, service.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert cut_off(connection, b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 1000)


def test_a_body_that_does_not_come_is_a_408(
    living: LivingTagger, loopback: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "SECONDS_FOR_BODY", 0.5)
    with started(living, loopback) as service, service.connect() as connection:
        connection.sendall(HEAD + b'{"texts": [')
        said = everything(connection)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"send it again" in said
    assert b"nosniff" in said


def test_a_body_that_nobody_reads_is_not_waited_for(
    living: LivingTagger, loopback: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The route is unknown, so the answer comes before the body, which then trickles."""
    monkeypatch.setattr(server, "SECONDS_FOR_REQUEST", 0.5)
    with started(living, loopback) as service, service.connect() as connection:
        connection.sendall(HEAD.replace(b"suggest", b"nothing").replace(b"100", b"1000"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 404 ")
        assert cut_off(connection, b"x" * 900)


def cut_off(connection: socket.socket, content: bytes) -> bool:
    """Whether the other side closes while the content is sent, a byte now and then."""
    begin = time.monotonic()
    for byte in content:
        if time.monotonic() - begin > PATIENCE:
            break
        try:
            connection.sendall(bytes([byte]))
            connection.settimeout(0.1)
            if not connection.recv(65536):
                return True
        except TimeoutError:
            continue
        except ConnectionError:
            return True
    return False


def test_a_stalled_body_at_the_end_is_answered_without_a_traceback(
    living: LivingTagger, loopback: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "SECONDS_TO_END", 1)
    with started(living, loopback) as service, service.connect() as connection:
        connection.sendall(HEAD + b"{")
        while not service.server.server_state.tasks:
            time.sleep(0.01)
        service.end()
        said = everything(connection)
    assert said.startswith(b"HTTP/1.1 503 ")
    assert b"is ending" in said
    assert not [record for record in caplog.records if record.exc_info]
    assert "Traceback" not in caplog.text


def test_a_label_that_is_being_learned_at_the_end_is_kept(
    living: LivingTagger, loopback: Gate, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its asker hears that the service is ending."""
    begun, go_on, learn = threading.Event(), threading.Event(), Tagger.learn

    def slowly(tagger: Tagger, *arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(PATIENCE)
        return learn(tagger, *arguments)

    monkeypatch.setattr(Tagger, "learn", slowly)
    monkeypatch.setattr(server, "SECONDS_TO_END", 1)
    data = tagged_texts(200, 60)
    body = json.dumps({"name": "football", "yes": [data.texts[i] for i in data.rows["football"][:5]]}).encode()
    head = HEAD.replace(b"suggest", b"labels").replace(b"100", str(len(body)).encode())
    with started(living, loopback) as service, service.connect() as connection:
        connection.sendall(head + body)
        assert begun.wait(PATIENCE)
        service.end()
        assert everything(connection).startswith(b"HTTP/1.1 503 ")
        go_on.set()
        wait_for(lambda: "football" in living.view().labels)
    assert Tagger.open(model).label_names_[-1] == "football"


def test_there_is_time_for_a_body_at_the_end() -> None:
    assert app.SECONDS_FOR_BODY < server.SECONDS_TO_END
    assert app.SECONDS_FOR_BODY < server.SECONDS_FOR_REQUEST
    config: Any = make_server(lambda: None).config
    assert (config.limit_concurrency, config.timeout_graceful_shutdown) == (500, 30)
