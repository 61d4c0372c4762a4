"""The frame of the command line: lazy commands, exit codes, one message an error, clean stdout."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from processes import PATIENCE, started
from streamlabel import __version__
from streamlabel.cli import COMMANDS, main
from streamlabel.cli.group import ExitCode, LazyCommand, StreamlabelGroup
from streamlabel.cli.output import format_table, json_option, note, plural, progress_bar, write
from streamlabel.errors import (
    ConflictError,
    DataError,
    DownloadError,
    MissingExtraError,
    NotFoundError,
    StreamlabelError,
)


def group_that_raises(error: BaseException) -> StreamlabelGroup:
    group = StreamlabelGroup("streamlabel")

    @group.command()
    def fail() -> None:
        raise error

    return group


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (StreamlabelError("broken"), 1, "error: broken\n"),
        (DataError("no labels", source="train.txt", line=17), 1, "error: train.txt, line 17: no labels\n"),
        (DownloadError("no network"), 1, "error: no network\n"),
        (MissingExtraError("pyarrow", "arrow", "Parquet"), 1, "pip install -e '.[arrow]')\n"),
        (NotFoundError("no set is called x"), 3, "error: no set is called x\n"),
        (FileNotFoundError(errno.ENOENT, "No such file", "a.txt"), 3, "error: a.txt: No such file\n"),
        (ConflictError("taken"), 4, "error: taken\n"),
        (PermissionError(errno.EACCES, "Permission denied", "a.txt"), 1, "error: a.txt: Permission denied\n"),
        (MemoryError(), 1, "error: out of memory"),
        (click.UsageError("no such option"), 2, "Error: no such option\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 0, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_every_error_has_its_code_and_one_message(error: BaseException, code: int, message: str) -> None:
    result = CliRunner().invoke(group_that_raises(error), ["fail"])
    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_bug_is_not_hidden() -> None:
    result = CliRunner().invoke(group_that_raises(RuntimeError("bug")), ["fail"])
    assert isinstance(result.exception, RuntimeError)


def test_exit_code_of_a_command_is_kept() -> None:
    group = StreamlabelGroup("streamlabel")

    @group.command()
    @click.pass_context
    def stop(ctx: click.Context) -> None:
        ctx.exit(ExitCode.CONFLICT)

    assert CliRunner().invoke(group, ["stop"]).exit_code == 4


def test_not_standalone_raises_what_was_raised() -> None:
    with pytest.raises(NotFoundError):
        group_that_raises(NotFoundError("x")).main(["fail"], standalone_mode=False)


def test_version_and_help() -> None:
    version = CliRunner().invoke(main, ["--version"])
    assert (version.exit_code, version.stdout) == (0, f"streamlabel, version {__version__}\n")
    help_text = CliRunner().invoke(main, ["--help"])
    assert help_text.exit_code == 0
    for name, command in COMMANDS.items():
        assert f"  {name} " in help_text.stdout
        assert command.summary in help_text.stdout


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["datasets", "nonsense"], ["datasets", "info"]])
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_loads_and_helps(name: str) -> None:
    assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0


def test_lazy_command_is_imported_only_when_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazy_probe.py").write_text(
        "import click\n\n@click.command()\ndef probe():\n    click.echo('called')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    group = StreamlabelGroup("streamlabel", lazy={"probe": LazyCommand("lazy_probe:probe", "A probe.")})
    assert "A probe." in CliRunner().invoke(group, ["--help"]).stdout
    assert "lazy_probe" not in sys.modules
    assert CliRunner().invoke(group, ["probe"]).stdout == "called\n"
    assert sys.modules.pop("lazy_probe")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], check=False, capture_output=True, text=True, timeout=PATIENCE)


def test_help_imports_no_command_and_no_heavy_package() -> None:
    code = (
        "import sys, click.testing, streamlabel.cli as cli\n"
        "click.testing.CliRunner().invoke(cli.main, ['--help'])\n"
        "print([name for name in sys.modules if name in ('numpy', 'rich', 'sklearn', 'streamlabel.cli.downloads')])"
    )
    assert run("-c", code).stdout == "[]\n"


def test_python_m_streamlabel() -> None:
    result = run("-m", "streamlabel", "--version")
    assert (result.returncode, result.stdout) == (0, f"streamlabel, version {__version__}\n")


LONG = """
import click
from streamlabel.cli.group import StreamlabelGroup
group = StreamlabelGroup("streamlabel")
@group.command()
def talk():
    while True:
        click.echo("x" * 1000)
group.main(["talk"])
"""


@pytest.mark.skipif(os.name == "nt", reason="pipes and signals are those of POSIX")
def test_closed_pipe_ends_quietly() -> None:
    with started([sys.executable, "-c", LONG]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        message = process.stderr.read()
        assert process.wait(PATIENCE) == 0
    assert message == b""


@pytest.mark.skipif(os.name == "nt", reason="pipes and signals are those of POSIX")
def test_interrupt_is_130_and_no_traceback() -> None:
    code = LONG.replace('click.echo("x" * 1000)', 'click.echo("x"); __import__("time").sleep(600)')
    with started([sys.executable, "-c", code]) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"Traceback" not in message


def test_json_option_and_write() -> None:
    @click.command()
    @json_option
    def show(as_json: bool) -> None:
        write({"label": "Vögel", "n": 1}, as_json=as_json, text=lambda: "1 label")

    assert CliRunner().invoke(show).stdout == "1 label\n"
    assert json.loads(CliRunner().invoke(show, ["--json"]).stdout) == {"label": "Vögel", "n": 1}


def test_json_has_no_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    write([{"threshold": math.inf, "score": 0.5}], as_json=True, text=str)
    assert json.loads(capsys.readouterr().out) == [{"threshold": None, "score": 0.5}]


@pytest.mark.parametrize(("number", "said"), [(0, "0 seeds"), (1, "1 seed"), (1200, "1,200 seeds")])
def test_one_is_not_many(number: int, said: str) -> None:
    assert plural(number, "seed") == said


def test_no_help_speaks_of_1_seeds() -> None:
    reproduce = COMMANDS["reproduce"].load()
    assert isinstance(reproduce, click.Group)
    context = click.Context(reproduce)
    for name in reproduce.list_commands(context):
        assert "1 seeds" not in CliRunner().invoke(main, ["reproduce", name, "--help"]).stdout


def test_table_aligns_and_trims() -> None:
    table = format_table(["name", "n"], [["a", "1"], ["long", "1,000"]], right=(1,))
    assert table == "name      n\na         1\nlong  1,000"


def test_progress_and_notes_are_silent_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    note("remark")
    with progress_bar("file", unit="bytes") as update:
        update(1, 10)
    assert capfd.readouterr() == ("", "")


def test_progress_is_drawn_on_stderr_of_a_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    note("remark")
    with progress_bar("steps [of] work") as update:
        update(1, 10)
        update(10, 10)
    output = capfd.readouterr()
    assert output.out == ""
    assert "remark" in output.err
    assert "steps [of] work" in output.err


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line_without_its_place_in_the_code() -> None:
    group = StreamlabelGroup("streamlabel")

    @group.command()
    def warn() -> None:
        warnings.warn("few answers", UserWarning)
        click.echo("done")

    result = CliRunner().invoke(group, ["warn"])
    assert (result.stdout, result.stderr) == ("done\n", "warning: few answers\n")
