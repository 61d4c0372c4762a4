"""The service at a port: those who send or read slowly, or not, are cut off, and keep nobody from being answered."""

from __future__ import annotations

import gc
import http.client
import json
import logging
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import processes
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


MUCH = json.dumps({"texts": ["farming and football"] * 1000, "k": 20}).encode()


def health(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/livez")
        return connection.getresponse().status
    finally:
        connection.close()


class Service:
    def __init__(self, living: LivingTagger, gate: Gate) -> None:
        self.server = make_server(app.create_app(living, gate))
        self.listener = listen("127.0.0.1", 0)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listener]})

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def unread(self) -> socket.socket:
        """A connection with a large answer that has begun to come, and is not read."""
        connection = socket.socket()
        connection.settimeout(PATIENCE)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        connection.connect(("127.0.0.1", self.port))
        connection.sendall(HEAD.replace(b"100", str(len(MUCH)).encode()) + MUCH)
        assert connection.recv(12, socket.MSG_PEEK)
        return connection

    def health(self) -> int:
        return health(self.port)

    def suggest(self, body: bytes = b'{"texts": ["x"]}') -> tuple[int, Any]:
        """Ask with urllib, which looks for an answer when all is sent."""
        url = f"http://127.0.0.1:{self.port}/suggest"
        try:
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=PATIENCE) as said:
                return said.status, json.load(said)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error) | {"again": error.headers["retry-after"]}

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


@pytest.mark.parametrize("sent", [b"", b"GET /livez HTTP/1.1\r\nHost: loc"])
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
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert cut_off(connection, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 1000)


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

    def slowly(tagger: Tagger, *arguments: Any, **options: Any) -> Any:
        begun.set()
        assert go_on.wait(PATIENCE)
        return learn(tagger, *arguments, **options)

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


def test_a_request_is_under_way_until_its_answer_is_read(
    living: LivingTagger, loopback: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_UNDER_WAY", 1)
    with started(living, loopback) as service:
        with service.unread() as connection:
            status, said = service.suggest()
            assert (status, said["again"]) == (429, "1")
            assert "requests are under way" in said["error"]
            assert service.health() == 200
            assert len(json.loads(read_whole(connection))["results"]) == 1000
        wait_for(lambda: service.suggest()[0] == 200)


def test_answers_that_nobody_reads_are_bounded_together(
    living: LivingTagger, loopback: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is larger than all may be still goes out, alone."""
    monkeypatch.setattr(app, "MOST_ANSWERS", 1000)
    with started(living, loopback) as service:
        with service.unread():
            status, said = service.suggest()
            assert (status, said["again"]) == (429, "1")
            assert "answers are on their way" in said["error"]
        wait_for(lambda: service.suggest(MUCH)[0] == 200)


def test_an_answer_that_is_not_taken_ends_its_connection(
    living: LivingTagger, loopback: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "SECONDS_TO_TAKE", 0.5)
    with started(living, loopback) as service, service.unread() as connection:
        wait_for(lambda: not service.server.server_state.connections, 60)
        wait_for(lambda: not service.server.server_state.tasks)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            read_whole(connection)


def read_whole(connection: socket.socket) -> bytes:
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.read()


def test_an_answer_that_is_not_read_at_the_end_is_no_traceback(
    living: LivingTagger, loopback: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "SECONDS_TO_END", 1)
    with started(living, loopback) as service, service.unread():
        service.end()
    assert not [record for record in caplog.records if record.exc_info]
    with warnings.catch_warnings():  # the loop has ended before the connection: so does the process, usually
        warnings.simplefilter("ignore", ResourceWarning)
        service.server.server_state.connections.clear()
        gc.collect()


def test_simple_clients_hear_that_a_body_is_too_large(living: LivingTagger, loopback: Gate) -> None:
    with started(living, loopback) as service:
        for size in (5 << 20, 20 << 20):
            status, said = service.suggest(b" " * size)
            assert (status, "4 MiB" in said["error"]) == (413, True)


@pytest.mark.parametrize(
    ("size", "more"), [(b"5000000", b"Expect: 100-continue\r\n"), (b"99999999999", b"")], ids=["asks first", "huge"]
)
def test_a_body_that_is_too_large_is_not_asked_for(
    living: LivingTagger, loopback: Gate, size: bytes, more: bytes
) -> None:
    with started(living, loopback) as service, service.connect() as connection:
        connection.sendall(HEAD.replace(b"100\r\n", size + b"\r\n" + more))
        assert everything(connection).startswith(b"HTTP/1.1 413 ")


def test_a_body_with_two_ends_is_refused_and_nothing_after_it_is_read(living: LivingTagger, loopback: Gate) -> None:
    head = HEAD.replace(b"100\r\n", b"5\r\nTransfer-Encoding: chunked\r\n")
    with started(living, loopback) as service, service.connect() as connection:
        connection.sendall(head + b"0\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        said = everything(connection)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1") == 1
    assert b"not both" in said


def test_who_is_quiet_for_longest_makes_room(
    living: LivingTagger, loopback: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 4)
    with started(living, loopback) as service, service.connect() as busy, ExitStack() as stack:
        busy.sendall(HEAD)
        wait_for(lambda: service.server.server_state.tasks)
        idle = [stack.enter_context(service.connect()) for _ in range(10)]
        assert service.health() == 200
        assert [everything(one) for one in idle[:8]] == [b""] * 8
        busy.sendall(b" " * 100)
        assert busy.recv(12) == b"HTTP/1.1 400"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit of files to set")
def test_few_files_are_enough_for_many_idle_connections(model: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    limited = ["sh", "-c", 'ulimit -n 128 && log=$1 && shift && exec "$@" 2>"$log"', "sh", str(log)]
    command = [*limited, sys.executable, "-m", "streamlabel", "serve", str(model), "--port", "0"]
    with processes.started(command, text=True) as process, ExitStack() as stack:
        said = process.stdout.readline()
        assert said, log.read_text()
        port = int(said.split()[0].rpartition(":")[2])
        for _ in range(200):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
        assert health(port) == 200
        assert len(log.read_text().splitlines()) < 200


def test_the_same_line_is_logged_a_few_times_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now, few = [600.0], server.FewLines()
    monkeypatch.setattr(server.time, "monotonic", lambda: now[0])

    def say(message: str, *arguments: Any) -> str | None:
        record = logging.LogRecord("x", logging.ERROR, "", 1, message, arguments, None)
        return record.getMessage() if few.filter(record) else None

    said = [say("again: %s\nof %s", "one", number) for number in range(100)]
    assert said[:9] == [f"again: one\nof {number}" for number in range(9)]
    assert "left out for a minute" in str(said[9])
    assert set(said[10:]) == {None}
    assert say("another") == "another"
    now[0] += 60
    assert say("again: %s", "one") == "again: one"


def test_there_is_time_for_a_body_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_most_files", lambda: 1024)
    assert app.SECONDS_FOR_BODY < server.SECONDS_TO_END
    assert server.SECONDS_TO_TAKE < server.SECONDS_TO_END
    assert app.SECONDS_FOR_BODY < server.SECONDS_FOR_REQUEST
    config: Any = make_server(lambda: None).config
    assert (config.limit_concurrency, config.timeout_graceful_shutdown, config.backlog) == (500, 30, 64)


LOGIN = b"POST /ui/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"


def test_those_who_log_in_slowly_keep_nobody_else_out(
    living: LivingTagger, loopback: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They need no token: their requests have a small limit of their own, in number, size and time."""
    with started(living, loopback) as service, ExitStack() as stack:
        slow = [stack.enter_context(service.connect()) for _ in range(app.MOST_UNDER_WAY)]
        for one in slow:
            one.sendall(LOGIN + b"Content-Length: 100\r\n\r\nt")
        wait_for(lambda: b" 429 " in slow[-1].recv(13, socket.MSG_PEEK))
        assert service.suggest()[0] == 200
    monkeypatch.setattr(app, "SECONDS_TO_LOG_IN", 0.3)
    with started(living, loopback) as service, service.connect() as one, service.connect() as large:
        one.sendall(LOGIN + b"Content-Length: 100\r\n\r\nt")
        assert b" 408 " in everything(one)
        large.sendall(LOGIN + b"Content-Length: 2000\r\n\r\n" + b"t" * 2000)
        assert b"larger than 1 KiB" in everything(large)
