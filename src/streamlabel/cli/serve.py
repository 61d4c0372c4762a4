"""``streamlabel serve``, ``token`` and ``label-studio pull``: models as a service, who may ask it, what it missed."""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamlabel.cli.models import actor_option, model_argument
from streamlabel.cli.options import FileOptions, text_rows
from streamlabel.cli.output import format_table, json_option, note, plural, write
from streamlabel.data.news import example_files
from streamlabel.errors import DataError, DownloadError
from streamlabel.store.guard import now
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.tagging.tagger import Tagger

if TYPE_CHECKING:
    from streamlabel.serve.label_studio import Task

SCOPES = ("read", "annotate", "admin")


@click.command()
@click.argument("models", nargs=-1, type=click.Path(path_type=Path), metavar="MODEL...")
@click.option("--demo", is_flag=True, help="Serve short news texts that come with the package; nothing is kept.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="NAME", help="Name or address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes one that is free."
)
@click.option("--read-only", is_flag=True, help="Answer, and change nothing.")
@click.option(
    "--in-memory", is_flag=True, help="Read the classifiers instead of mapping their files, which may then be replaced."
)
@click.option("--pool", metavar="PATH", help="A file, or a folder of files, of texts as they come now; kept in memory.")
@click.option(
    "--remember", type=click.IntRange(100, 100_000), metavar="N",
    help="Keep the newest N texts that are sent to /suggest, in memory only: they join the pool  [default: none]",
)  # fmt: skip
@click.option(
    "--tokens", type=click.Path(path_type=Path), metavar="FILE",
    help="Only who brings a token of FILE is answered; 'streamlabel token add FILE NAME' makes one.",
)  # fmt: skip
@click.option(
    "--allow-host", "allowed", multiple=True, metavar="NAME",
    help="Also answer requests to this name, which a proxy passes on; may be repeated.",
)  # fmt: skip
@click.option("--access-log", is_flag=True, help="Write a line of JSON for each request to standard error.")
@click.option("--label-studio", "for_studio", is_flag=True, help="Be a machine learning back end of Label Studio, too.")
@click.option("--secret-path", metavar="WORD", help="Also answer Label Studio at /label-studio/WORD/, without a token.")
@click.option(
    "--annif", type=click.Path(path_type=Path), metavar="FILE",
    help="Answer Annif, too, with subjects of this vocabulary (TSV or CSV).",
)  # fmt: skip
@click.option(
    "--results", type=click.Path(path_type=Path), metavar="FILE",
    help="Show this page of experiments, too; 'streamlabel reproduce report' writes one.",
)  # fmt: skip
@actor_option
@json_option
def serve(
    models: tuple[Path, ...], demo: bool, host: str, port: int, read_only: bool, in_memory: bool, pool: str | None,
    remember: int | None, tokens: Path | None, allowed: tuple[str, ...], access_log: bool, for_studio: bool,
    secret_path: str | None, annif: Path | None, results: Path | None, actor: str, as_json: bool,
) -> None:  # fmt: skip
    """Answer over HTTP from MODEL, in JSON and as web pages at /ui/: suggest, explain, and learn labels.

    A new label is on the disk when it is answered; other requests are answered meanwhile. An address that other
    machines can reach needs --tokens. Nothing is encrypted: put a proxy with TLS in front, and then give --tokens, too,
    and --allow-host with the name that the proxy is asked by. Ctrl-C ends it.

    Of several models each has its routes under /models/ and the name of its folder, and / lists them. --pool and
    --remember are for one.

    With --remember, whoever may ask can be shown texts that others sent, as questions about a label.

    \b
    GET    /                        these routes
    GET    /livez                   whether the process answers
    GET    /readyz                  whether the newest revision can be read, and how many labels it has
    GET    /labels                  labels: id, name, answers, threshold; q, limit, offset
    POST   /suggest                 labels for texts: texts (or text), k
    POST   /explain                 why a text got its score: text, label, words
    POST   /labels                  learn a label: name, about, yes, no, pool
    POST   /batch                   learn several in one revision: labels, pool
    POST   /labels/{label}/answers  learn it further: text, yes (or answers), asked
    GET    /labels/{label}/next     the texts to ask about next: n
    POST   /labels/{label}/next     the same: n, pool
    GET    /labels/{label}          one label, and how good it is thought to be
    PATCH  /labels/{label}          change it: name, threshold or precision
    DELETE /labels/{label}          take a label out, by its id
    GET    /history                 revisions, newest first: label, limit, offset
    POST   /rollback                go back: revision
    POST   /undo                    undo the last change: {}
    GET    /metrics                 figures for Prometheus
    GET    /openapi.json            this service as an OpenAPI 3.1 document
    GET    /docs                    the same as a page to read
    GET    /ui/                     web pages for people
    """
    from streamlabel.serve.access import Gate, TokenFile, host_name, is_loopback, names_of
    from streamlabel.serve.app import create_app
    from streamlabel.serve.live_tagger import LivingTagger, RecentTexts, open_reader
    from streamlabel.serve.pages import ResultsPage
    from streamlabel.serve.requests import Route
    from streamlabel.serve.server import address_of, listen, make_server, run_until_signal, url_of
    from streamlabel.serve.telemetry import log_requests

    if demo == bool(models):
        raise click.UsageError("give the MODEL that is to be served, or --demo; one of the two")
    if len(models) > 1 and (pool is not None or remember is not None or for_studio):
        raise click.UsageError("--pool, --remember and --label-studio are for one model")
    if secret_path is not None and not for_studio:
        raise click.UsageError("--secret-path is for --label-studio; give both")
    known = None if tokens is None else TokenFile(tokens)
    address = address_of(host)
    if known is None and not is_loopback(address):
        raise click.UsageError(f"other machines can reach {host}; give --tokens, or --host 127.0.0.1")
    names = names_of(host, address, [host_name(name) for name in allowed])
    texts = [] if pool is None else pool_texts(pool)
    with ExitStack() as stack:
        if demo:
            models = (Path(stack.enter_context(TemporaryDirectory(prefix="streamlabel-"))) / "demo",)
            others = make_demo(models[0])
            texts = others if pool is None else texts
        if remember is not None and len(set(texts)) > remember:
            problem = f"the pool has {len(set(texts)):,} texts, and --remember keeps {remember:,}, its own included"
            raise click.UsageError(f"{problem}; give a larger one, or none")
        names_of_models = _names(models)
        recent = RecentTexts(texts, remember or 0)
        living = {
            name: LivingTagger(
                open_reader(path, mapped=not in_memory), actor=actor, read_only=read_only,
                recent=recent if len(models) == 1 else None,
            )
            for name, path in names_of_models.items()
        }  # fmt: skip
        views = {name: one.view() for name, one in living.items()}
        if any(view.takes_rows for view in views.values()):
            if pool is not None or remember is not None:
                raise click.UsageError(f"--pool and --remember are for texts, and {models[0]} takes rows of numbers")
            if for_studio or annif is not None:
                raise click.UsageError("--label-studio and --annif are for models of texts")
        served = living if len(models) > 1 else next(iter(living.values()))
        studio, more = None, list[Route]()
        if for_studio and isinstance(served, LivingTagger):
            from streamlabel.serve.label_studio import LabelStudio, check_secret

            secret = "" if secret_path is None else check_secret(secret_path)
            studio = LabelStudio(served, secret=secret, guarded=known is not None)
            more.extend(studio.routes)
        if annif is not None:
            from streamlabel.serve.annif import annif_routes, read_vocabulary

            more.extend(annif_routes(read_vocabulary(annif)))
        free = studio.free if studio else ()
        page = None if results is None else ResultsPage(results)
        gate = Gate(names, known)
        server = make_server(create_app(served, gate, access_log=access_log, more=more, free=free, results=page))
        sys.setswitchinterval(0.0005)  # s: who learns lets go of Python ten times as often, for those who ask meanwhile
        listener = listen(address, port)
        if access_log:
            log_requests(sys.stderr)
        url = url_of(listener)
        if len(models) > 1:
            each = [
                {
                    "name": name,
                    "model": str(path),
                    "revision": views[name].revision,
                    "n_labels": len(views[name].labels),
                }
                for name, path in names_of_models.items()
            ]
            data: dict[str, Any] = {"url": url, "read_only": read_only, "models": each}
            text = (
                f"{url} serves {plural(len(models), 'model')}: {', '.join(views)}; web pages at {url}/ (Ctrl-C ends it)"
            )
        else:
            (view,), (model,) = views.values(), models
            data = {
                "url": url,
                "model": str(model),
                "revision": view.revision,
                "n_labels": len(view.labels),
                "read_only": read_only,
                "n_pool": len(recent),
                "remembers": recent.most,
            }
            size = f"{plural(len(view.labels), 'label')}, revision {view.revision}"
            kept = f"; a pool of {plural(len(recent), 'text')}" if len(recent) else ""
            if recent.most:
                kept += f"; remembers the newest {plural(recent.most, 'text')} that it is sent, in memory"
            text = (
                f"{url} serves {'the demo' if demo else model}: {size}{kept}; web pages at {url}/ui/ (Ctrl-C ends it)"
            )

        def say() -> None:
            write(data, as_json=as_json, text=lambda: text)
            if demo and not as_json and sys.stdout.isatty() and has_screen():
                click.launch(f"{url}/ui/")

        try:
            if studio is not None:
                studio.start()
            run_until_signal(server, listener, say)
        finally:
            if studio is not None:
                studio.close()


def pool_texts(path: str) -> list[str]:
    """The texts of a file, or of all files of a folder that hold texts, in the order of their names."""
    folder = Path(path)
    if path == "-" or not folder.is_dir():
        return [row.text for row in text_rows(path, FileOptions(offered=False))]
    kinds = (".txt", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".gz")
    found = sorted(one for one in folder.rglob("*") if one.suffix in kinds and one.is_file())
    if not found:
        raise DataError(f"is a folder without texts; it may hold files of {', '.join(kinds)}", source=path)
    return [row.text for one in found for row in text_rows(str(one), FileOptions(offered=False))]


def has_screen() -> bool:
    """Whether a browser could show itself here."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def make_demo(model: Path) -> list[str]:
    """Fit a model of the embedded news, to be served; returns other texts, as its pool."""
    files = example_files()
    rows = [json.loads(line) for line in files["texts.jsonl"].splitlines()]
    tagger = Tagger(classifier=StreamingLabelClassifier(tune="fit"))  # so that no answer waits for trials
    tagger.fit([row["text"] for row in rows], [row["labels"] for row in rows]).save(model)
    return files["pool.txt"].splitlines()


def _names(models: tuple[Path, ...]) -> dict[str, Path]:
    """The models by the names of their folders, which must differ and stand in an address as they are."""
    found: dict[str, Path] = {}
    for path in models:
        name = path.resolve().name
        if len(models) > 1 and not re.fullmatch(r"[A-Za-z0-9._-]+", name):
            raise click.UsageError(
                f"{path}: a name in an address has letters, digits, - _ and . only; rename the folder"
            )
        if name in found:
            raise click.UsageError(f"{found[name]} and {path} have the same name, {name}; rename one of the folders")
        found[name] = path
    return found


@click.group()
def token() -> None:
    """Who may ask a service: tokens with a name and a scope, in a file for `serve --tokens`.

    The file keeps sums of the tokens, not the tokens. A service notices a change at the next request.
    """


file_argument = click.argument("file", type=click.Path(path_type=Path))


@token.command("add")
@file_argument
@click.argument("name")
@click.option(
    "--scope", type=click.Choice(SCOPES), default="read", show_default=True,
    help="read: ask; annotate: also learn labels and answers; admin: also rename, retire, go back.",
)  # fmt: skip
@click.option("--expires", metavar="SPAN", help="After that it is refused: 12h, 30d, 8w  [default: never]")
@json_option
def add(file: Path, name: str, scope: str, expires: str | None, as_json: bool) -> None:
    """Make a token for NAME, and print it: this once, for FILE has its sum only. The history shows NAME.

    FILE is made if there is none, for its owner alone to read.
    """
    from streamlabel.serve.access import add_token

    secret, made = add_token(file, name, scope, expires)
    data = {"token": secret, "name": name, "scope": scope, "expires": made.expires}
    write(data, as_json=as_json, text=lambda: secret)


@token.command("list")
@file_argument
@json_option
def list_tokens(file: Path, as_json: bool) -> None:
    """The tokens of FILE: their names, scopes, and until when they hold."""
    from streamlabel.serve.access import read_tokens

    found = read_tokens(file)
    data = [
        {key: value for key, value in asdict(one).items() if key != "sha256"} | {"over": one.is_over} for one in found
    ]
    rows = [[one.name, one.scope, one.created[:10], (one.expires or "never")[:16] + (", over" if one.is_over else "")]
            for one in found]  # fmt: skip
    write(
        data, as_json=as_json, text=lambda: format_table(["name", "scope", "made", "until"], rows) if rows else "none"
    )


@token.command("revoke")
@file_argument
@click.argument("name")
@json_option
def revoke(file: Path, name: str, as_json: bool) -> None:
    """Take the token of NAME out of FILE: it is refused from the next request on."""
    from streamlabel.serve.access import revoke_token

    revoke_token(file, name)
    write({"revoked": name}, as_json=as_json, text=lambda: f"revoked {name!r}")


Found = TypeVar("Found")
PAGE = 100
SECONDS = 60


@click.group("label-studio")
def label_studio() -> None:
    """Label Studio: catch up with its answers. `serve --label-studio` takes them as they come."""


@label_studio.command("pull")
@model_argument
@click.argument("url")
@click.argument("project", type=click.IntRange(min=1))
@click.option(
    "--token-file", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=True, metavar="FILE",
    help="A file with a personal access token of Label Studio (Account & Settings, Personal Access Token).",
)  # fmt: skip
@actor_option
@json_option
def pull(model: Path, url: str, project: int, token_file: Path, actor: str, as_json: bool) -> None:
    """Ask Label Studio at URL for the answers of PROJECT, a number, that were given since the last time, and learn.

    For answers that came while the service was not there; it may run meanwhile. New, changed and deleted answers of the
    tasks that changed are taken in; labels are then learned from them.
    """
    from streamlabel.serve.label_studio import LabelStudio, Project, parse_config
    from streamlabel.serve.live_tagger import LivingTagger

    client = _Client(url, token_file.read_text("ascii", "replace").strip())
    studio = LabelStudio(LivingTagger(Tagger.open(model), actor=actor))
    begin, known, until, n_tasks = now(), studio.pulled(project), "", 0
    config = parse_config(client.get(f"/api/projects/{project}/", Project).label_config or "")
    for tasks in client.tasks(project, known):
        studio.take_tasks(project, config, tasks, begin)
        until = max(until, *(task.updated_at or "" for task in tasks))
        n_tasks += len(tasks)
        note(f"{plural(n_tasks, 'task')} ...")
    learned = studio.learn_due(all_now=True)
    if until:
        studio.pulled(project, until)
    studio.close()
    data = {"project": project, "n_tasks": n_tasks, "until": until or known, "labels": learned}
    lines = [f"{plural(n_tasks, 'task')} changed", *(f"{name}: {what}" for name, what in learned.items())]
    write(data, as_json=as_json, text=lambda: "\n".join(lines))


class _Client:
    """Label Studio's API with a personal access token, which is exchanged for one that holds five minutes."""

    def __init__(self, url: str, token: str) -> None:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise DataError(f"{url!r} is no address of Label Studio; give one that begins with http:// or https://")
        self._url, self._token, self._access = url.rstrip("/"), token, ""

    def tasks(self, project: int, since: str) -> Iterator[list[Task]]:
        """The tasks that changed since a time ("": all), with all of their annotations, a page at a time."""
        from streamlabel.serve.label_studio import TaskPage

        changed = {"filter": "filter:tasks:updated_at", "operator": "greater", "type": "Datetime", "value": since}
        query = {"filters": {"conjunction": "and", "items": [changed] if since else []}}
        number, total = 1, 1
        while (number - 1) * PAGE < total:
            asked = {"project": project, "fields": "all", "page": number, "page_size": PAGE, "query": json.dumps(query)}
            page = self.get(f"/api/tasks?{urllib.parse.urlencode(asked)}", TaskPage)
            number, total = number + 1, page.total
            if page.tasks:
                yield page.tasks

    def get(self, path: str, kind: type[Found]) -> Found:
        """Ask for something of this type; the access token is renewed once, where it has expired."""
        from streamlabel.serve.access import Refusal
        from streamlabel.serve.requests import parse_body

        where = path.partition("?")[0]
        for _ in range(2):
            self._access = self._access or self._refresh()
            status, content = self._ask(path, None, {"Authorization": f"Bearer {self._access}"})
            if status == HTTPStatus.OK:
                try:
                    return parse_body(content, kind)
                except Refusal as refusal:
                    problem = f"{where} answers something else than Label Studio does ({refusal.message})"
                    raise DownloadError(f"{self._url}: {problem}") from None
            if status == HTTPStatus.NOT_FOUND:
                raise DownloadError(f"{self._url}: there is no {where}; check the project's number")
            self._access = ""
        raise DownloadError(f"{self._url}: the token may not read this project")

    def _refresh(self) -> str:
        status, content = self._ask("/api/token/refresh/", {"refresh": self._token}, {})
        try:
            access = json.loads(content)["access"] if status == HTTPStatus.OK else None
        except (ValueError, LookupError, TypeError):
            access = None
        if not isinstance(access, str):
            problem = "the token is not accepted; make a personal access token (a legacy token does not do)"
            raise DownloadError(f"{self._url}: {problem}")
        return access

    def _ask(self, path: str, body: Any, headers: dict[str, str]) -> tuple[int, bytes]:
        content = None if body is None else json.dumps(body).encode()
        headers = {**headers, "Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, content, headers)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return HTTPStatus.OK, answer.read()
        except urllib.error.HTTPError as error:
            if error.code in (400, 401, 404):
                return error.code, b""
            raise DownloadError(f"{self._url}: answers {error.code}, {error.reason}") from None
        except (OSError, ValueError) as error:
            raise DownloadError(f"{self._url}: no Label Studio answers there ({error})") from None
