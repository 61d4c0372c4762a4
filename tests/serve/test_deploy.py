"""The files in deploy/: they parse, agree with the service, and name only metrics and options that there are."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streamlabel.cli.serve import serve

DEPLOY = Path(__file__).parents[2] / "deploy"
pytestmark = pytest.mark.skipif(not DEPLOY.is_dir(), reason="deploy/ is only in the repository")


def check_command(words: list[str]) -> None:
    """Whether ``streamlabel serve`` takes these arguments."""
    assert words[0].rpartition("/")[2] == "streamlabel"
    assert words[1] == "serve"
    with serve.make_context("serve", words[2:]) as context:
        assert context.params["tokens"] is not None


def test_every_metric_of_the_dashboard_is_there(client: Any) -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked.append(board["templating"]["list"][1]["query"])
    named = {name for one in asked for name in re.findall(r"\b(?:streamlabel|process)_[a-z_]+", one)}
    client.post("/labels", json={"name": "football", "about": "teams and goals of football", "yes": []})
    shown = set(re.findall(r"^([a-z_]+)[ {]", client.get("/metrics").text, re.MULTILINE))
    assert len(named) > 8
    assert named <= shown
    labels = set(re.findall(r'(\w+)="', client.get("/metrics").text))
    grouped = {
        name.strip() for one in asked for names in re.findall(r"by \(([^)]*)\)", one) for name in names.split(",")
    }
    assert grouped <= labels
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_the_container_starts_the_service_and_asks_a_route_that_there_is(client: Any) -> None:
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    found = {word: line for line in lines if line for word in [line.split()[0]]}
    entry, command = (json.loads(found[word].partition(" ")[2]) for word in ("ENTRYPOINT", "CMD"))
    check_command([*entry, *command])
    assert found["USER"].split()[1] == "10001:10001"
    (path,) = re.findall(r"127\.0\.0\.1:8000(/\w+)", found["HEALTHCHECK"])
    assert client.get(path).status_code == 200
    for line in lines:
        if line.startswith("COPY") and "--from" not in line:
            assert all((DEPLOY.parent / name).exists() for name in line.split()[1:-1]), line


def test_the_compose_file_parses() -> None:
    yaml = pytest.importorskip("yaml")
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["streamlabel"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    assert service["read_only"]
    assert all(one.startswith("127.0.0.1:") for one in service["ports"])


def test_the_unit_is_one(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "streamlabel.service")
    check_command(shlex.split(unit["Service"]["ExecStart"]))
    assert unit["Service"]["ProtectSystem"] == "strict"
    if shutil.which("systemd-analyze"):
        text = (
            (DEPLOY / "streamlabel.service")
            .read_text()
            .replace("/opt/streamlabel/bin/streamlabel", shutil.which("true"))
        )
        (tmp_path / "streamlabel.service").write_text(text)
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(tmp_path / "streamlabel.service")],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, "streamlabel.service:" in done.stderr) == (0, False), done.stderr
