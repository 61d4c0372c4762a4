"""``streamlabel serve`` as a process: answers, learns, ends on a signal, and nothing is lost."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import Result

from processes import PATIENCE, started
from streamlabel import Tagger
from tagged_texts import tagged_texts

DATA = tagged_texts(300, 100)
needs_serve = pytest.mark.skipif(
    any(find_spec(package) is None for package in ("starlette", "uvicorn")), reason="the extra serve is not installed"
)
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM to handle")


@pytest.fixture
def start(model: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], Callable[..., Any]]]]:
    """Starts a service at a free port; the process, and a function that asks it."""
    begun = ExitStack()

    def begin(*options: str) -> tuple[subprocess.Popen[str], Callable[..., Any]]:
        command = [sys.executable, "-m", "streamlabel", "serve", str(model), "--port", "0", "--json", *options]
        process = begun.enter_context(started(command, text=True))
        said = ""
        while not said.endswith("}\n"):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said += line
        at = urlsplit(json.loads(said)["url"])
        assert at.hostname == "127.0.0.1"

        def ask(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
            connection = http.client.HTTPConnection("127.0.0.1", at.port or 0, timeout=PATIENCE)
            try:
                content = None if body is None else json.dumps(body)
                connection.request(method, path, content, {"Content-Type": "application/json", **headers})
                response = connection.getresponse()
                return response.status, json.loads(response.read())
            finally:
                connection.close()

        return process, ask

    with begun:
        yield begin


@needs_serve
@needs_signals
def test_a_label_that_was_learned_outlives_the_service(start: Callable[..., Any], model: Path) -> None:
    process, ask = start("--actor", "eve")
    texts, yes = DATA.unseen[:5], [DATA.texts[i] for i in DATA.rows["railways"][:6]]
    status, before = ask("POST", "/suggest", {"texts": texts, "k": 100})
    assert (status, before["revision"]) == (200, 2)
    status, report = ask("POST", "/labels", {"name": "railways", "yes": yes})
    assert (status, report["revision"]) == (201, 3)
    status, after = ask("POST", "/suggest", {"texts": texts, "k": 100})
    assert after["revision"] == 3
    assert ask("POST", "/explain", {"text": yes[0], "label": "railways"})[1]["label"] == "railways"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    again = Tagger.open(model)
    assert again.label_names_[-1] == "railways"
    assert again.store.history()[0].actor == "eve"
    found = [[(one["label"], one["score"]) for one in row] for row in after["results"]]
    assert found == again.suggest(texts, 100)
    for row, old in zip(after["results"], before["results"], strict=True):
        new = {one["label"]: one["score"] for one in row}
        common = [one for one in old if one["label"] in new]
        assert len(common) >= len(old) - 1
        assert all(new[one["label"]] == one["score"] for one in common)


@needs_serve
@needs_signals
def test_ctrl_c_ends_it_and_a_token_is_asked_for(start: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t" * 30)
    process, ask = start("--token-file", str(tmp_path / "token"), "--read-only", "--allow-host", "Tags.example")
    assert ask("GET", "/health")[0] == 401
    assert ask("GET", "/health", Authorization=f"Bearer {'t' * 30}")[0] == 200
    assert ask("GET", "/health", Host="evil.example")[0] == 421
    assert ask("GET", "/health", Host="tags.example", Authorization=f"Bearer {'t' * 30}")[0] == 200
    assert ask("DELETE", "/labels/1", Authorization=f"Bearer {'t' * 30}")[0] == 503
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted" in err


@needs_serve
def test_a_port_in_use(call: Callable[..., Result], model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert call("serve", model, "--port", port, code=1).stderr == (
            f"error: port {port} of 127.0.0.1 is in use; choose another one with --port\n"
        )


def test_what_keeps_it_from_beginning(call: Callable[..., Result], model: Path, tmp_path: Path) -> None:
    assert "there is no model" in call("serve", tmp_path / "none", code=3).stderr
    assert "--token-file" in call("serve", model, "--host", "0.0.0.0", code=2).stderr
    assert "no such file" in call("serve", model, "--token-file", tmp_path / "none", code=3).stderr
    assert "without a port" in call("serve", model, "--allow-host", "tags.example:80", code=1).stderr
    call("serve", model, "--port", "70000", code=2)


@pytest.mark.parametrize("module", ["starlette.applications", "uvicorn"])
def test_the_install_line(
    call: Callable[..., Result], model: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    if module == "uvicorn":
        pytest.importorskip("starlette")
    monkeypatch.setitem(sys.modules, module, None)
    assert "pip install 'streamlabel[serve]'" in call("serve", model, code=1).stderr
