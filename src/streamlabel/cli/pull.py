"""``streamlabel label-studio pull``: catch up with the answers that a Label Studio project has."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamlabel.cli.models import actor_option, model_argument
from streamlabel.cli.output import json_option, note, plural, write
from streamlabel.errors import DataError, DownloadError
from streamlabel.store.guard import now
from streamlabel.tagging.tagger import Tagger

if TYPE_CHECKING:
    from streamlabel.serve.label_studio import Task

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
