"""Runs the real Label Studio with our back end, from an empty project to a label that did not exist at its start.

``python real_run.py LABEL_STUDIO [--record FOLDER]``: the program of an environment of its own (`make
test-label-studio`). Both are started on loopback, in a temporary folder, and ended. With ``--record`` one request of
each kind that Label Studio sends is written into the folder, without tokens, dates and addresses.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from streamlabel import Tagger
from streamlabel.serve.access import add_token
from tagged_texts import tagged_texts

NEW = "vaccination"
DATA = tagged_texts(400, 200)
QUIET = {
    "COLLECT_ANALYTICS": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
    "LATEST_VERSION_CHECK": "false",
    "ML_BLOCK_LOCAL_IP": "false",
    "SSRF_PROTECTION_ENABLED": "false",
}
SCRUBBED = [
    (re.compile(r'"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)"'), '"2026-01-01T00:00:00Z"'),
    (re.compile(r'"(access_token|token|task_data_password|unique_id|import_id)": *"[^"]*"'), r'"\1": "left out"'),
    (re.compile(r"http://[\w.:]+"), "http://label-studio.example"),
    (re.compile(r'("project": *"\d+)\.\d+"'), r'\1.1700000000"'),
    (re.compile(r'"(email|username|created_username)": *"[^"]*"'), r'"\1": "ann"'),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(str(Path(options.program).absolute()), Path(folder), options.record)


def run(program: str, folder: Path, record: Path | None) -> None:
    Tagger().fit(DATA.texts, DATA.tags).save(folder / "model")
    password = secrets.token_hex(20)
    token, _ = add_token(folder / "tokens.json", "label studio", "annotate")
    with label_studio(program, folder, password) as studio, Recorder(record) as recorder:
        say(f"Label Studio {studio.get('/api/version')['release']} answers")
        with service(folder / "model", recorder, ["--label-studio", "--tokens", str(folder / "tokens.json")]):
            story(studio, f"{recorder.url}/label-studio", token)
        recorder.keep("/project", studio.get(f"/api/projects/{studio.project}/"))
        recorder.keep("/page", studio.get(f"/api/tasks?project={studio.project}&page_size=3&fields=all"))
        for name, seconds in sorted(recorder.seconds.items()):
            mean = sum(seconds) / len(seconds)
            say(f"{len(seconds)} times {name}: {max(seconds):.3f} s at most, {mean:.3f} s on average")
        say("the service is stopped; one more answer is given meanwhile")
        late(studio, folder)
    if record is not None:
        say(f"recorded {len(recorder.kept)} kinds of requests: {', '.join(sorted(recorder.kept))}")
    say("done")


def story(studio: Studio, url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    known = sorted({name for tags in DATA.tags[:40] for name in tags})[:6]
    project = studio.post("/api/projects/", {"title": "news", "label_config": config(known)})["id"]
    studio.project = project
    order = sorted(range(len(DATA.unseen)), key=lambda at: not DATA.truth[NEW][at])[:60]  # all that are about it
    texts = [{"text": DATA.unseen[at]} for at in sorted(order)]
    studio.post(f"/api/projects/{project}/import", texts[:55])
    begin = time.perf_counter()
    back_end = studio.post(
        "/api/ml", {"url": url.replace("//", f"//ann:{token}@"), "project": project, "title": "streamlabel"}
    )
    say(f"connected in {time.perf_counter() - begin:.2f} s: {back_end['readable_state']}")
    studio.post(f"/api/projects/{project}/import", texts[55:])
    tasks = studio.tasks()
    begin = time.perf_counter()
    studio.action("retrieve_tasks_predictions", [task["id"] for task in tasks])
    found = studio.predictions()
    say(f"{len(found)} predictions in {time.perf_counter() - begin:.2f} s, of {versions(found)}")
    assert len(found) == len(tasks)
    assert {choice for one in found for choice in choices(one)} <= set(known)
    assert all(0 <= one["score"] <= 1 for one in found)

    is_new = dict(zip(DATA.unseen, DATA.truth[NEW].tolist(), strict=True))
    of_new = [task for task in tasks if is_new[task["data"]["text"]]]
    others = [task for task in tasks if not is_new[task["data"]["text"]]]
    say(f"{NEW!r} is no label: {len(of_new)} of {len(tasks)} tasks are about it")
    studio.annotate(others[0], [known[0]])
    studio.patch(f"/api/projects/{project}/", {"label_config": config([*known, NEW])})
    say(f"{NEW!r} was added to the project: {waiting(url, headers)}")
    asked = [*of_new[:4], *others[1:9]]
    seconds = []
    for task in asked:
        begin = time.perf_counter()
        studio.annotate(task, [NEW] if task in of_new else [])
        seconds.append(time.perf_counter() - begin)
    say(f"{len(asked)} answers, {max(seconds):.2f} s at most until Label Studio had taken one")
    begin = time.perf_counter()
    wait_for(lambda: NEW in labels(url, headers) and settled(url, headers))
    say(f"learned {time.perf_counter() - begin:.2f} s after the last answer")
    rest = [task for task in tasks if task not in asked]
    studio.action("delete_tasks_predictions", [task["id"] for task in rest])
    studio.action("retrieve_tasks_predictions", [task["id"] for task in rest])
    found = {one["task"]: one for one in studio.predictions() if one["task"] in {task["id"] for task in rest}}
    suggested = [task for task in rest if NEW in choices(found[task["id"]])]
    right = [task for task in suggested if task in of_new]
    say(
        f"{NEW!r} is suggested for {len(suggested)} of {len(rest)} other tasks, {len(right)} of them rightly; "
        f"{len(of_new) - 4} are about it ({versions(found.values())})"
    )
    assert right, "the new label is suggested for no task that is about it"

    annotation = studio.annotate(rest[-1], [NEW])
    studio.patch(f"/api/annotations/{annotation}/", {"result": result([known[1]])})
    studio.delete(f"/api/annotations/{annotation}/")
    skipped = studio.post(f"/api/tasks/{rest[-2]['id']}/annotations/", {"result": [], "was_cancelled": True})
    assert skipped["was_cancelled"]
    studio.action("predictions_to_annotations", [task["id"] for task in suggested[:2]])
    studio.action("delete_tasks", [rest[-3]["id"]])
    studio.post(f"/api/ml/{back_end['id']}/train", {})
    wait_for(lambda: settled(url, headers))
    what = "answers were changed, deleted, skipped and taken from predictions, a task was deleted"
    say(f"{what}: {waiting(url, headers)}")


def late(studio: Studio, folder: Path) -> None:
    """An answer while the service was away, then ``streamlabel label-studio pull``."""
    project = studio.project
    annotated = {task["id"] for task in studio.tasks() if task["total_annotations"]}
    texts = dict(zip(DATA.unseen, DATA.truth[NEW].tolist(), strict=True))
    task = next(one for one in studio.tasks() if one["id"] not in annotated and texts[one["data"]["text"]])
    studio.annotate(task, [NEW])
    (folder / "pat").write_text(studio.post("/api/token/", {})["token"])
    command = [sys.executable, "-m", "streamlabel", "label-studio", "pull", str(folder / "model"), studio.url]
    for turn in ("first", "second"):
        begin = time.perf_counter()
        done = subprocess.run(
            [*command, str(project), "--token-file", str(folder / "pat")],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        say(f"the {turn} pull, {time.perf_counter() - begin:.1f} s: {done.stdout.strip()}")


def config(names: list[str]) -> str:
    items = "".join(f'<Choice value="{name}"/>' for name in names)
    text = '<Text name="text" value="$text"/>'
    return f'<View>{text}<View><Choices name="topics" toName="text" choice="multiple">{items}</Choices></View></View>'


def result(names: list[str]) -> list[dict[str, Any]]:
    value = {"from_name": "topics", "to_name": "text", "type": "choices", "value": {"choices": names}}
    return [value] if names else []


def choices(prediction: dict[str, Any]) -> list[str]:
    return [name for one in prediction["result"] for name in one["value"]["choices"]]


def versions(predictions: Any) -> str:
    return ", ".join(sorted({one["model_version"] for one in predictions}))


def waiting(url: str, headers: dict[str, str]) -> str:
    time.sleep(2)
    return json.dumps(ask(f"{url}/health", headers=headers)[1])


def settled(url: str, headers: dict[str, str]) -> bool:
    """Whether the revision has not changed for two seconds."""
    before = ask(f"{url}/health", headers=headers)[1]["model_version"]
    time.sleep(2)
    return before == ask(f"{url}/health", headers=headers)[1]["model_version"]


def labels(url: str, headers: dict[str, str]) -> list[str]:
    return [item["value"] for item in ask(f"{url}/taxonomy", headers=headers)[1]["items"]]


def wait_for(done: Callable[[], bool], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.2)


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)  # noqa: T201


def ask(
    url: str, body: Any = None, method: str | None = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **(headers or {})}
    with urllib.request.urlopen(urllib.request.Request(url, content, headers, method=method), timeout=120) as answer:
        found = answer.read()
        return answer.status, json.loads(found) if found else None


class Studio:
    """Label Studio's API."""

    project = 0

    def __init__(self, url: str, token: str) -> None:
        self.url, self._headers = url, {"Authorization": f"Token {token}"}

    def get(self, path: str) -> Any:
        return ask(self.url + path, headers=self._headers)[1]

    def post(self, path: str, body: Any) -> Any:
        return ask(self.url + path, body, headers=self._headers)[1]

    def patch(self, path: str, body: Any) -> Any:
        return ask(self.url + path, body, "PATCH", self._headers)[1]

    def delete(self, path: str) -> None:
        ask(self.url + path, None, "DELETE", self._headers)

    def tasks(self) -> list[dict[str, Any]]:
        return list(self.get(f"/api/tasks?project={self.project}&page_size=200&fields=all")["tasks"])

    def predictions(self) -> list[dict[str, Any]]:
        newest: dict[int, dict[str, Any]] = {}
        for one in self.get(f"/api/predictions/?project={self.project}"):
            if one["id"] > newest.get(one["task"], {"id": 0})["id"]:
                newest[one["task"]] = one
        return list(newest.values())

    def annotate(self, task: dict[str, Any], names: list[str]) -> int:
        return int(self.post(f"/api/tasks/{task['id']}/annotations/", {"result": result(names)})["id"])

    def action(self, name: str, tasks: list[int]) -> Any:
        chosen = {"selectedItems": {"all": False, "included": tasks}}
        return self.post(f"/api/dm/actions?id={name}&project={self.project}", chosen)


@contextmanager
def label_studio(program: str, folder: Path, password: str) -> Iterator[Studio]:
    token, port = secrets.token_hex(20), free_port()
    command = [
        program, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port), "--data-dir",
        str(folder / "label-studio"), "--username", "ann@example.org", "--password", password, "--user-token", token,
        "--enable-legacy-api-token",
    ]  # fmt: skip
    with (folder / "label-studio.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=os.environ | QUIET)
        try:
            studio = Studio(f"http://127.0.0.1:{port}", token)
            say("Label Studio makes its database (about two minutes)")
            wait_for(lambda: process.poll() is None and answers(studio.url), 600)
            yield studio
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def service(model: Path, recorder: Recorder, words: list[str]) -> Iterator[None]:
    command = [sys.executable, "-m", "streamlabel", "serve", str(model), "--port", "0", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        recorder.to = process.stdout.readline().split()[0]
        yield
    finally:
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0


def answers(url: str) -> bool:
    try:
        return ask(f"{url}/api/version")[0] == 200
    except OSError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Recorder:
    """Passes requests on to the service, and keeps one of each kind."""

    def __init__(self, folder: Path | None) -> None:
        self.to, self.kept, self._folder, self._lock = "", set[str](), folder, threading.Lock()
        self.seconds: dict[str, list[float]] = {}
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_all(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {
                    name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")
                }
                request = urllib.request.Request(recorder.to + self.path, body or None, headers, method=self.command)
                begin = time.perf_counter()
                try:
                    with urllib.request.urlopen(request, timeout=120) as answer:
                        status, found = answer.status, answer.read()
                except urllib.error.HTTPError as error:
                    status, found = error.code, error.read()
                except OSError:  # the service is away
                    status, found = 502, b"{}"
                recorder.seconds.setdefault(self.path.rpartition("/")[2], []).append(time.perf_counter() - begin)
                if body:
                    recorder.keep(self.path, json.loads(body))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(found)))
                self.end_headers()
                self.wfile.write(found)

            do_GET = do_POST = handle_all

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def keep(self, path: str, data: Any) -> None:
        name = data.get("action", path.rpartition("/")[2])
        if isinstance(data.get("annotation"), dict) and data["annotation"]["was_cancelled"]:
            name += "-skipped"
        if isinstance(data.get("tasks"), list):
            data["tasks"] = data["tasks"][:3]
        with self._lock:
            if self._folder is None or (name in self.kept and name != "PROJECT_UPDATED"):
                return
            self.kept.add(name)
            self._folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(data, indent=1, ensure_ascii=False)
            for pattern, instead in SCRUBBED:
                text = pattern.sub(instead, text)
            (self._folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")

    def __enter__(self) -> Recorder:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


if __name__ == "__main__":
    main()
