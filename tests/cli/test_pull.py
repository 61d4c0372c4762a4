"""``streamlabel label-studio pull`` against a small site that answers as Label Studio 1.23.2 does (recorded)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import Result

pytest.importorskip("msgspec")

from streamlabel import Tagger
from streamlabel.tagging.text_answers import digest
from tagged_texts import tagged_texts

RECORDED = Path(__file__).parents[1] / "serve" / "label_studio"
DATA = tagged_texts(300, 100)
NEW = "zzqx"
YES = [DATA.texts[row] for row in DATA.rows["hospitals"]][:5]


class Studio:
    """The tasks of a project, and how often the access token was renewed."""

    def __init__(self) -> None:
        self.url, self.tasks, self.refreshed, self.queries = "", [], 0, []
        page = json.loads((RECORDED / "page.json").read_text("utf-8"))
        self.page = {key: value for key, value in page.items() if key != "tasks"}
        self.task = page["tasks"][0] | {"annotations": [], "predictions": []}
        self.annotation = json.loads((RECORDED / "ANNOTATION_CREATED.json").read_text("utf-8"))["annotation"]
        self.project = json.loads((RECORDED / "project.json").read_text("utf-8"))
        self.offer(NEW)

    def offer(self, *names: str) -> None:
        choices = "".join(f'<Choice value="{name}"/>' for name in names)
        control = f'<Choices name="topics" toName="text" choice="multiple">{choices}</Choices>'
        self.project["label_config"] = f'<View><Text name="text" value="$text"/>{control}</View>'

    def put(self, number: int, text: str, *answers: tuple[str, ...], at: str = "2026-02-01T00:00:00.000000Z") -> None:
        result = {"from_name": "topics", "to_name": "text", "type": "choices"}
        said = [
            self.annotation | {"id": 10 * number + place, "task": number, "updated_at": at}
            | {"result": [result | {"value": {"choices": list(names)}}] if names else []}
            for place, names in enumerate(answers)
        ]  # fmt: skip
        self.tasks = [task for task in self.tasks if task["id"] != number]
        self.tasks.append(self.task | {"id": number, "data": {"text": text}, "annotations": said, "updated_at": at})

    def answer(self, path: str, body: Any, token: str) -> tuple[int, Any]:
        at = urlsplit(path)
        if at.path == "/api/token/refresh/":
            self.refreshed += 1
            return (200, {"access": f"access-{self.refreshed}"}) if body["refresh"] == "personal" else (401, {})
        if token != f"Bearer access-{self.refreshed}" or (self.refreshed == 1 and at.path == "/api/tasks"):
            return 401, {}
        if at.path == "/api/projects/1/":
            return 200, self.project
        if at.path != "/api/tasks":
            return 404, {}
        asked = {key: value[0] for key, value in parse_qs(at.query).items()}
        query = json.loads(asked["query"])
        self.queries.append(query)
        since = [one["value"] for one in query["filters"]["items"]]
        found = [task for task in self.tasks if not since or task["updated_at"] > since[0]]
        size, number = int(asked["page_size"]), int(asked["page"])
        return 200, self.page | {"total": len(found), "tasks": found[size * (number - 1) : size * number]}


@pytest.fixture
def studio() -> Iterator[Studio]:
    found = Studio()

    class Handler(BaseHTTPRequestHandler):
        def handle_all(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            body = json.loads(content) if content else None
            status, data = found.answer(self.path, body, self.headers.get("authorization", ""))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(data).encode())

        do_GET = do_POST = handle_all

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture
def pull(studio: Studio, model: Path, tmp_path: Path, call: Callable[..., Result]) -> Callable[[], Any]:
    (tmp_path / "token").write_text("personal\n")

    def run() -> Any:
        done = call("label-studio", "pull", model, f"{studio.url}/", "1", "--token-file", tmp_path / "token", "--json")
        return json.loads(done.stdout)

    return run


def kept(model: Path, label: str) -> dict[bytes, bool]:
    known = Tagger.open(model).examples(label)
    return {row.tobytes(): bool(yes) for row, yes in zip(known.digests, known.answers, strict=True)}


def test_answers_that_came_meanwhile_are_learned(studio: Studio, pull: Callable[[], Any], model: Path) -> None:
    """Also over several pages and where the access token expires on the way; the second time nothing is new."""
    for number, text in enumerate(YES, start=1):
        studio.put(number, text, (NEW,))
    for number, text in enumerate(DATA.unseen, start=100):
        studio.put(number, text)
    found = pull()
    assert (found["n_tasks"], studio.refreshed, list(found["labels"])) == (105, 2, [NEW])
    assert kept(model, NEW) == {digest(text): True for text in YES}
    again = pull()
    assert (again["n_tasks"], again["labels"], again["until"]) == (0, {}, found["until"])
    assert studio.queries[-1]["filters"]["items"][0]["value"] == "2026-02-01T00:00:00.000000Z"


def test_what_was_changed_or_deleted_meanwhile_is_taken_back(
    studio: Studio, pull: Callable[[], Any], model: Path
) -> None:
    for number, text in enumerate(YES, start=1):
        studio.put(number, text, (NEW,))
    pull()
    later = "2026-02-02T00:00:00.000000Z"
    studio.put(1, YES[0], at=later)
    studio.put(2, YES[1], (), at=later)
    assert pull()["n_tasks"] == 2
    assert kept(model, NEW) == {digest(YES[1]): False} | {digest(text): True for text in YES[2:]}


def test_older_answers_say_nothing_about_a_label_that_came_later(
    studio: Studio, pull: Callable[[], Any], model: Path
) -> None:
    studio.put(1, DATA.unseen[0], ())
    pull()
    studio.offer(NEW, "qqjw")
    studio.put(1, DATA.unseen[0], (), at="2026-02-02T00:00:00.000000Z")
    for number, text in enumerate(YES, start=2):
        studio.put(number, text, (NEW, "qqjw"), at="2026-02-02T00:00:00.000000Z")
    pull()
    assert digest(DATA.unseen[0]) in kept(model, NEW)
    assert digest(DATA.unseen[0]) not in kept(model, "qqjw")


@pytest.mark.parametrize(
    ("token", "url", "project", "problem"),
    [
        ("legacy", None, "1", "the token is not accepted; make a personal access token"),
        ("personal", None, "7", "there is no /api/projects/7/; check the project's number"),
        ("personal", "ftp://example.org", "1", "is no address of Label Studio"),
        ("personal", "http://127.0.0.1:1", "1", "no Label Studio answers there"),
    ],
)
def test_a_mistake_is_one_message(
    token: str, url: str | None, project: str, problem: str, studio: Studio, model: Path, tmp_path: Path,
    call: Callable[..., Result],
) -> None:  # fmt: skip
    (tmp_path / "token").write_text(token)
    done = call("label-studio", "pull", model, url or studio.url, project, "--token-file", tmp_path / "token", code=1)
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
    assert not (model / "label-studio.db").exists() or not Tagger.open(model).label_names_.count(NEW)
