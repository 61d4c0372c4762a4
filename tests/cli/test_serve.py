"""``streamlabel serve`` as a process: answers, learns, ends on a signal, and nothing is lost."""

from __future__ import annotations

import http.client
import json
import shutil
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

import numpy as np
import pytest
from click.testing import Result

from processes import PATIENCE, started
from streamlabel import ModelStore, StreamingLabelClassifier, Tagger
from tagged_texts import tagged_texts

DATA = tagged_texts(300, 100)
needs_serve = pytest.mark.skipif(
    any(find_spec(one) is None for one in ("msgspec", "prometheus_client", "starlette", "uvicorn")),
    reason="the extra serve is not installed",
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
        while not said.endswith("\n}\n"):
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
def test_ctrl_c_ends_it_and_a_token_is_asked_for(
    start: Callable[..., Any], tmp_path: Path, call: Callable[..., Result]
) -> None:
    file = tmp_path / "tokens.json"
    secret = call("token", "add", file, "ann", "--scope", "admin", "--expires", "1d").stdout.strip()
    process, ask = start("--tokens", str(file), "--read-only", "--allow-host", "Tags.example")
    given = f"Bearer {secret}"
    assert ask("GET", "/labels")[0] == 401
    assert ask("GET", "/livez")[0] == 200
    assert ask("GET", "/labels", Authorization=given)[0] == 200
    assert ask("GET", "/labels", Host="evil.example")[0] == 421
    assert ask("GET", "/labels", Host="tags.example", Authorization=given)[0] == 200
    assert ask("DELETE", "/labels/1", Authorization=given)[0] == 503
    assert "ann" in call("token", "list", file).stdout
    assert secret not in call("token", "list", file, "--json").stdout
    call("token", "revoke", file, "ann")
    assert ask("GET", "/labels", Authorization=given)[0] == 401
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


@needs_serve
def test_what_keeps_it_from_beginning(call: Callable[..., Result], model: Path, tmp_path: Path) -> None:
    assert "there is no model" in call("serve", tmp_path / "none", code=3).stderr
    assert "--tokens" in call("serve", model, "--host", "0.0.0.0", code=2).stderr
    assert "no such file" in call("serve", model, "--tokens", tmp_path / "none", code=3).stderr
    assert "without a port" in call("serve", model, "--allow-host", "tags.example:80", code=1).stderr
    call("serve", model, "--port", "70000", code=2)


@needs_serve
@needs_signals
def test_several_models_and_a_log_of_requests(
    start: Callable[..., Any], call: Callable[..., Result], model: Path, tmp_path: Path
) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    other = tmp_path / "rows"
    ModelStore.create(other, StreamingLabelClassifier().fit(X, (X > 0).astype(int), ["a", "b", "c"])).close()
    assert "takes rows" in call("serve", other, "--remember", 100, code=2).stderr
    process, ask = start(str(other), "--access-log")
    assert [one["name"] for one in ask("GET", "/")[1]["models"]] == [model.name, "rows"]
    assert ask("POST", "/models/rows/suggest", {"rows": [[3.0, 0.0, 0.0]], "k": 1})[1]["results"][0][0]["label"] == "a"
    assert ask("GET", f"/models/{model.name}/labels/nobody")[0] == 404
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    lines = [json.loads(line) for line in err.splitlines()]
    assert [(one["model"], one["route"], one["status"]) for one in lines] == [
        ("", "/", 200), ("rows", "/suggest", 200), (model.name, "/labels/{label}", 404),
    ]  # fmt: skip


@needs_serve
def test_names_of_several_models(call: Callable[..., Result], model: Path, tmp_path: Path) -> None:
    for path in ("a/model", "a/bad name"):
        shutil.copytree(model, tmp_path / path)
    same = call("serve", model, tmp_path / "a" / "model", code=2).stderr
    assert "have the same name, model; rename one" in same
    assert "letters, digits" in call("serve", model, tmp_path / "a" / "bad name", code=2).stderr
    assert "for one model" in call("serve", model, tmp_path / "a", "--remember", 100, code=2).stderr


@pytest.mark.parametrize("module", ["starlette.applications", "uvicorn", "msgspec", "prometheus_client"])
def test_the_install_line(
    call: Callable[..., Result], model: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    if module == "uvicorn":
        pytest.importorskip("starlette")
    for name in [one for one in sys.modules if one.startswith("streamlabel.serve.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    assert "pip install 'streamlabel[serve]'" in call("serve", model, code=1).stderr
