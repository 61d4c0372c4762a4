"""The pages of docs/ say what is true: every code block runs, every command and public name is there.

A page is a story: its blocks run from top to bottom, in one empty folder and one namespace.

* ``python``: a session with ``>>>``, compared with what it prints;
* ``console``: lines with ``$``. `streamlabel` is run and its output compared; for `make` the target must exist,
  ``python FILE`` must name a script of examples/ (which is run below), `pip install` is not run;
* a ``{code-block}`` with a caption is a file of that name, which later blocks read;
* ``text``: formulas, without any code;
* ``:class: needs-data`` puts a block into a second run, which is skipped where there are no real data sets. Blocks on
  Parquet, ONNX and the like are left out where the package is not installed.

Any other block fails the test: nothing is shown that nobody runs.
"""

from __future__ import annotations

import doctest
import importlib.util
import itertools
import re
import runpy
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import streamlabel
from streamlabel.cli import main
from streamlabel.data.news import POOL, make_news_corpus
from streamlabel.tagging.questions import Question
from streamlabel.tagging.tagger import Tagger

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCE = re.compile(r"^(?P<ticks>`{3,}|:{3,})(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=ticks)[ ]*$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"\A:(\w+):[ ]*(.*)\n")
SHOWN_BY_SPHINX = {"{command-help}", "{eval-rst}", "{literalinclude}", "{note}", "{toctree}"}
# Blocks that use these words are left out where the package is not installed.
OPTIONAL = {
    "parquet": "pyarrow",
    "onnxruntime": "onnxruntime",
    "skops": "skops",
    "mlflow": "mlflow",
    "dask": "distributed",
    "service": "uvicorn",
    "reproduce": "pandas",
    "on_device": "torch",
}
MISSING = [word for word, package in OPTIONAL.items() if importlib.util.find_spec(package) is None]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: what it is, its options, its text, and the line where that begins."""

    kind: str
    argument: str
    options: dict[str, str]
    body: str
    line: int

    @property
    def needs_data(self) -> bool:
        return self.options.get("class") == "needs-data"


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        kind, _, argument = fence["info"].strip().partition(" ")
        body, options = fence["body"], {}
        while kind.startswith("{") and (option := OPTION.match(body)):
            options[option[1]] = option[2]
            body = body[option.end() :]
        if kind == "{code-block}" and "caption" not in options:
            kind, argument = argument, ""
        skipped = len(fence["body"]) - len(body)
        line = text.count("\n", 0, fence.start("body") + skipped)
        yield Block(kind, argument, options, body.removeprefix("\n") if options else body, line)


class Story:
    """Runs the blocks of a page, in order."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.names: dict[str, object] = {}
        self.n_checked = 0

    def run(self, block: Block) -> None:
        where = f"{self.page.name}, line {block.line}"
        if block.kind == "python":
            self._session(block, where)
        elif block.kind == "console":
            self._console(block, where)
        elif block.kind == "{code-block}":
            (self.folder / block.options["caption"]).write_text(block.body, encoding="utf-8")
        elif block.kind == "text":
            assert not re.search(r"^(>>>|\$) ", block.body, re.MULTILINE), f"{where}: code in a block of kind 'text'"
        elif block.kind not in SHOWN_BY_SPHINX:
            pytest.fail(f"{where}: a block of kind {block.kind!r}, which nothing runs")

    def _session(self, block: Block, where: str) -> None:
        test = doctest.DocTestParser().get_doctest(block.body, self.names, where, str(self.page), block.line)
        assert test.examples, f"{where}: a python block without >>>"
        said: list[str] = []
        result = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append, clear_globs=False)
        assert not result.failed, "".join(said)
        self.names = test.globs
        self.n_checked += result.attempted

    def _console(self, block: Block, where: str) -> None:
        first, *parts = re.split(r"^\$ ", block.body, flags=re.MULTILINE)
        assert not first.strip(), f"{where}: a console block begins with '$ '"
        for part in parts:
            line, _, expected = part.partition("\n")
            command, *arguments = shlex.split(line.partition("  #")[0])
            if command == "streamlabel":
                got = CliRunner().invoke(main, arguments, prog_name="streamlabel", catch_exceptions=False).output
                matches = doctest.OutputChecker().check_output(expected.rstrip() + "\n", got.rstrip() + "\n", OPTIONS)
                assert matches, f"{where}: '{line}' printed\n{got}"
            elif command == "make":
                target = f"\n{arguments[0]}:"
                assert target in (ROOT / "Makefile").read_text(encoding="utf-8"), f"{where}: no target {arguments[0]}"
            elif command == "python":
                assert ROOT / arguments[0] in EXAMPLES, f"{where}: no example {arguments[0]}"
            else:
                assert (command, arguments[0]) == ("pip", "install"), f"{where}: '{line}' is not checked by anything"
            self.n_checked += 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to run in, where no data set can be found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STREAMLABEL_DATA", raising=False)
    monkeypatch.setenv("STREAMLABEL_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(page: Path, folder: Path) -> None:
    story = Story(page, folder)
    for block in blocks_of(page):
        if not block.needs_data and not any(word in block.body for word in MISSING):
            story.run(block)


def answer_truly(monkeypatch: pytest.MonkeyPatch, label: str, most: int) -> None:
    """Questions of ``next --ask`` about texts of the example's pool get the answer that is true, so many of them."""
    corpus = make_news_corpus(POOL, random_state=1)
    applies = corpus.Y[:, [corpus.label_names.index(label)]].toarray()[:, 0] > 0
    truth = dict(zip(corpus.texts, applies.tolist(), strict=True))
    inner, asked = Tagger.next, []

    def noted(*arguments: Any) -> list[Question]:
        asked.extend(found := inner(*arguments))
        return found

    def key(question: str) -> str:
        said = "q" if len(asked) > most else "y" if truth[asked[-1].text] else "n"
        click.echo(question + said)
        return said

    monkeypatch.setattr(Tagger, "next", noted)
    monkeypatch.setattr("streamlabel.cli.add_label._key", key)


def test_the_commands_of_the_readme_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its console blocks, with what they print; seconds may differ, for they are of the machine that printed them."""
    answer_truly(monkeypatch, "avian influenza", 10)
    story = Story(ROOT / "README.md", folder)
    for block in blocks_of(ROOT / "README.md"):
        if block.kind == "console":
            timeless = re.sub(r"\b\d+\.\d+ s\b", "... s", block.body)
            story.run(replace(block, body=timeless))
    assert story.n_checked > 3


@pytest.mark.parametrize("page", [p for p in PAGES if "needs-data" in p.read_text()], ids=lambda page: page.name)
def test_the_blocks_on_real_data_run(
    page: Path, folder: Path, data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMLABEL_DATA", str(data_root))
    story = Story(page, folder)
    for block in blocks_of(page):
        if block.needs_data:
            story.run(block)
    assert story.n_checked


def test_the_pages_have_blocks_to_run(folder: Path) -> None:
    """The tests above would pass on pages whose blocks are not found."""
    kinds = [block.kind for page in PAGES for block in blocks_of(page)]
    assert kinds.count("python") > 20
    assert kinds.count("console") > 3
    fences = sum(len(re.findall(r"^[ ]*(?:```|:::)", page.read_text(encoding="utf-8"), re.MULTILINE)) for page in PAGES)
    assert fences == 2 * len(kinds)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected"),
        ("```python\nprint(1)\n```\n", "without >>>"),
        ("```console\n$ streamlabel --version\nstreamlabel, version none\n```\n", "printed"),
        ("```console\n$ make coffee\n```\n", "no target coffee"),
        ("```console\n$ rm -r data\n```\n", "not checked by anything"),
        ("```text\n>>> 1 + 1\n```\n", "code in a block"),
        ("```rust\nfn main() {}\n```\n", "nothing runs"),
    ],
)
def test_a_wrong_block_is_found(text: str, problem: str, folder: Path) -> None:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    (block,) = blocks_of(page)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=problem):
        Story(page, folder).run(block)


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.name)
def test_the_examples_run(script: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


def test_the_rewriting_of_docstrings_does_what_it_says() -> None:
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("estimator_docs", DOCS / "_ext" / "estimator_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


def commands(command: click.Command = main, path: tuple[str, ...] = ()) -> Iterator[str]:
    yield " ".join(path)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


def test_every_command_is_in_the_docs() -> None:
    shown = [block.argument for block in blocks_of(DOCS / "cli.md") if block.kind == "{command-help}"]
    assert sorted(shown) == sorted(commands())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_text_names_exists(page: Path) -> None:
    """Commands and files that are named between the blocks, where nothing runs them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    known = set(commands())
    for named in re.findall(r"`streamlabel ([a-z][a-z0-9 -]*)", text):
        words = " ".join(itertools.takewhile(lambda word: not word.startswith("-"), named.split()))
        assert words in known, f"{page.name}: there is no 'streamlabel {words}'"
    for named in re.findall(r"(?:benchmarks|docs|examples|tests)/[\w/]+\.(?:py|md)", text):
        assert (ROOT / named).is_file(), f"{page.name}: there is no {named}"


def test_every_layer_with_public_modules_is_in_the_reference() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    package = Path(streamlabel.__file__).parent
    layers = {path.parent.name for path in package.glob("*/[a-z]*.py")} - {"cli"}
    missing = [layer for layer in sorted(layers) if f"streamlabel.{layer}\n" not in page]
    assert not missing, f"api.md does not list {missing}"
    for name in streamlabel.__all__:
        if name != "__version__":
            assert f"`streamlabel.{name}`" in page, f"api.md does not name {name}"


def test_the_numbers_of_the_readme_are_those_of_the_results() -> None:
    def table(page: Path) -> list[list[str]]:
        lines = page.read_text(encoding="utf-8").partition("| annotated rows |")[2].splitlines()
        rows = itertools.takewhile(lambda line: line.startswith("|"), lines[1:])
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows][1:]

    order = (2, 1, 4)  # Delicious, Bibtex, Reuters-21578
    measured = {row[0]: [row[column] for column in order] for row in table(DOCS / "results.md")}
    shown = {row[0]: [float(cell) for cell in row[1:]] for row in table(ROOT / "README.md")}
    assert len(shown) == 4
    for rows, gains in shown.items():
        assert gains == pytest.approx([float(cell.split()[0]) for cell in measured[rows]], abs=0.0501), rows
