"""The back end of Label Studio, with what Label Studio 1.23.2 really sends (recorded by ``make test-label-studio``)."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("msgspec")

from streamlabel import Tagger
from streamlabel.errors import DataError, Hint
from streamlabel.serve.access import Gate, Refusal, TokenFile, names_of
from streamlabel.serve.label_studio import FEW_NO, WAITS_FOR, LabelStudio, check_secret, parse_config
from streamlabel.serve.ledger import LedgerAnswer
from streamlabel.serve.live_tagger import LivingTagger
from streamlabel.tagging.text_answers import digest
from tagged_texts import tagged_texts

RECORDED = Path(__file__).parent / "label_studio"
DATA = tagged_texts(200, 60)
SECRET = "s" * 24
NEW = "vaccination"
NONSENSE = "zzqx"  # a name without a known word
KNOWN = sorted({name for tags in DATA.tags for name in tags})[:6]
YES = [DATA.texts[row] for row in DATA.rows[NEW]]
NO = [text for row, text in enumerate(DATA.texts) if row not in DATA.rows[NEW]]


def recorded(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text("utf-8"))


def config(*names: str) -> str:
    choices = "".join(f'<Choice value="{name}"/>' for name in names)
    return (
        f'<View><Text name="text" value="$text"/><Choices name="topics" toName="text" choice="multiple">{choices}'
        "</Choices></View>"
    )


def chosen(*names: str) -> list[Any]:
    value = {"choices": list(names)}
    return [{"from_name": "topics", "to_name": "text", "type": "choices", "value": value}] if names else []


class Project:
    """Sends events as Label Studio does, with other labels, texts and answers than those of the recording."""

    def __init__(self, studio: LabelStudio, client: Any, *names: str) -> None:
        self.studio, self.client, self.names, self.n = studio, client, names, 0

    def send(self, event: dict[str, Any]) -> Any:
        event["project"]["label_config"] = config(*self.names)
        return self.client.post(f"/label-studio/{SECRET}/webhook", json=event)

    def answer(self, text: str, *names: str, annotation: int | None = None, **more: Any) -> int:
        event = recorded("ANNOTATION_CREATED" if annotation is None else "ANNOTATION_UPDATED")
        if annotation is None:
            self.n += 1
            annotation = self.n
        task = 1000 + annotation
        at = f"2026-01-01T{self.n // 60 % 24:02}:{self.n % 60:02}:00.000000Z"
        event["annotation"] |= {"id": annotation, "task": task, "result": chosen(*names), "updated_at": at, **more}
        event["task"] |= {"id": task, "data": {"text": text}}
        assert self.send(event).status_code == 201
        return annotation

    def delete(self, *annotations: int) -> None:
        event = recorded("ANNOTATIONS_DELETED")
        event["annotations"] = [{"id": number} for number in annotations]
        assert self.send(event).status_code == 201

    def offer(self, *names: str) -> None:
        self.names = names
        assert self.send(recorded("PROJECT_UPDATED")).status_code == 201

    def wait(self) -> None:
        """Until all is learned."""
        self.studio._learner.submit(int).result(60)


@pytest.fixture
def studio(living: LivingTagger) -> Iterator[LabelStudio]:
    found = LabelStudio(living, secret=SECRET, guarded=True)
    yield found
    found.close()


@pytest.fixture
def client(living: LivingTagger, studio: LabelStudio, secrets: dict[str, str], testclient: Any) -> Iterator[Any]:
    from streamlabel.serve.app import create_app

    gate = Gate(names_of("127.0.0.1", "127.0.0.1"), TokenFile(Path(secrets["file"])))
    app = create_app(living, gate, more=studio.routes, free=studio.free)
    with testclient.TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as found:
        yield found


@pytest.fixture
def project(studio: LabelStudio, client: Any) -> Project:
    return Project(studio, client, *KNOWN)


def kept(living: LivingTagger, label: str) -> dict[bytes, bool]:
    """The answers that a label was learned from, as the stored model has them."""
    known = Tagger.open(living.path).examples(label)
    return {row.tobytes(): bool(yes) for row, yes in zip(known.digests, known.answers, strict=True)}


def ask_predictions(client: Any, label_config: str, texts: list[str]) -> list[dict[str, Any]]:
    body = recorded("predict") | {"label_config": label_config}
    body["tasks"] = [body["tasks"][0] | {"id": at, "data": {"text": text}} for at, text in enumerate(texts)]
    answer = client.post(f"/label-studio/{SECRET}/predict", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


# What it answers


def test_a_recorded_selection_is_answered_task_by_task(client: Any, living: LivingTagger) -> None:
    body = recorded("predict")
    (labels,) = (control.labels for control in parse_config(body["label_config"]).controls)
    results = client.post(f"/label-studio/{SECRET}/predict", json=body).json()["results"]
    assert len(results) == len(body["tasks"])
    assert all(one["model_version"] == "rev-1" and 0 <= one["score"] <= 1 for one in results)
    assert {name for one in results for item in one["result"] for name in item["value"]["choices"]} <= set(
        labels.values()
    )


def test_only_labels_of_the_config_are_suggested_and_they_are_those_of_predict(
    client: Any, living: LivingTagger
) -> None:
    names = [*KNOWN, "unheard of"]
    found = ask_predictions(client, config(*names), DATA.unseen)
    ours = Tagger.open(living.path).predict(DATA.unseen)
    said = [{name for item in one["result"] for name in item["value"]["choices"]} for one in found]
    assert said == [set(names) & set(row) for row in ours]
    assert any(said)


def test_the_score_is_how_unsure_the_least_sure_label_is(client: Any, secrets: dict[str, str]) -> None:
    """By it the free edition sorts: 1 is a probability of one half."""
    found = ask_predictions(client, config(*KNOWN), DATA.unseen[:5])
    answer = client.post("/suggest", json={"texts": DATA.unseen[:5], "k": 100}, headers=bearer(secrets["read"]))
    for one, row in zip(found, answer.json()["results"], strict=True):
        chances = [item["probability"] for item in row if item["label"] in KNOWN]
        assert one["score"] == pytest.approx(max(1 - abs(2 * chance - 1) for chance in chances))


def test_a_single_choice_has_one_suggestion_and_an_unknown_text_none(client: Any) -> None:
    found = ask_predictions(client, config(*KNOWN).replace("multiple", "single"), [*DATA.unseen, "xyzzy"])
    assert max(len(one["result"]) for one in found) == 1
    assert found[-1]["result"] == []


def test_versions_setup_and_health_name_the_revision(client: Any, studio: LabelStudio, living: LivingTagger) -> None:
    assert client.get(f"/label-studio/{SECRET}/versions").json() == {"versions": ["rev-1"]}
    assert client.post(f"/label-studio/{SECRET}/setup", json=recorded("setup")).json() == {"model_version": "rev-1"}
    Project(studio, client).wait()
    assert client.get(f"/label-studio/{SECRET}/health").json()["model_version"] == f"rev-{living.view().revision}"


@pytest.mark.parametrize("project", ["9" * 5000, "9" * 19 + ".1", "\u00b2.1", ""])
def test_a_project_without_a_number_is_none(client: Any, project: str) -> None:
    body = recorded("setup") | {"project": project}
    assert client.post(f"/label-studio/{SECRET}/setup", json=body).status_code == 200


def test_a_body_may_be_larger_here_than_elsewhere(client: Any) -> None:
    body = recorded("predict") | {"label_config": config(*KNOWN)}
    body["tasks"] = [body["tasks"][0] | {"predictions": ["old" * 2_000_000]}]
    assert client.post(f"/label-studio/{SECRET}/predict", json=body).status_code == 200
    assert client.post(f"/label-studio/{SECRET}/setup", json=body).status_code == 413


@pytest.mark.parametrize(
    ("route", "body", "problem"),
    [
        ("predict", {"tasks": [{"data": {}}], "label_config": "<View/>"}, "'id' is missing"),
        ("predict", {"tasks": [], "label_config": "<View>"}, "the label config is no XML"),
        ("webhook", {}, "'action' is missing"),
        ("webhook", [], "send a JSON object"),
        ("webhook", {"action": "X", "project": {"id": 2**63}}, "project.id is too large"),
        ("webhook", {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 2**70}]}, "annotations[0].id is too"),
        (
            "webhook",
            {
                "action": "ANNOTATION_CREATED",
                "project": {"id": 1, "label_config": config(*KNOWN)},
                "task": {"id": 1, "data": {"text": "a"}},
                "annotation": {"id": 1, "result": [{"from_name": "topics", "value": {"choices": 5}}]},
            },
            "choices of 'topics' must be a list",
        ),
    ],
)
def test_what_label_studio_does_not_send_is_refused(client: Any, route: str, body: Any, problem: str) -> None:
    answer = client.post(f"/label-studio/{SECRET}/{route}", json=body)
    assert (answer.status_code, problem in answer.json()["error"]) == (422, True), answer.text


# What it learns


def test_a_label_that_did_not_exist_is_learned_and_suggested(
    project: Project, living: LivingTagger, client: Any
) -> None:
    project.offer(*KNOWN, NEW)
    for text in YES[:5]:
        project.answer(text, NEW)
    for text in NO[:6]:
        project.answer(text)
    project.send(recorded("START_TRAINING"))
    project.wait()
    assert kept(living, NEW) == {digest(text): True for text in YES[:5]} | {digest(text): False for text in NO[:6]}
    (found,) = ask_predictions(client, config(*KNOWN, NEW), [YES[5]])
    assert NEW in found["result"][0]["value"]["choices"]
    assert found["model_version"] == f"rev-{living.view().revision}" != "rev-1"


def test_labels_of_fit_stay_as_they_are(project: Project, living: LivingTagger) -> None:
    for text in NO[:5]:
        project.answer(text, KNOWN[0])
    project.wait()
    assert living.view().revision == 1


def test_a_changed_answer_counts_as_it_is_now(project: Project, living: LivingTagger) -> None:
    project.offer(NEW)
    first, *_ = [project.answer(text, NEW) for text in YES[:5]]
    project.answer(YES[0], annotation=first)
    project.wait()
    assert kept(living, NEW) == {digest(YES[0]): False} | {digest(text): True for text in YES[1:5]}


@pytest.mark.parametrize("how", ["deleted", "skipped", "task"])
def test_a_withdrawn_answer_is_forgotten(how: str, project: Project, living: LivingTagger) -> None:
    """The label is then what the other answers make of it: so says another model that never heard of it."""
    other = Tagger.open(living.path).in_memory()
    project.offer(NONSENSE)
    first, *_ = [project.answer(text, NONSENSE) for text in YES[:5]]
    project.wait()
    if how == "deleted":
        project.delete(first)
    elif how == "skipped":
        project.answer(YES[0], annotation=first, was_cancelled=True)
    else:
        event = recorded("TASKS_DELETED")
        event["tasks"] = [{"id": 1000 + first}]
        project.send(event)
    project.wait()
    assert kept(living, NONSENSE) == {digest(text): True for text in YES[1:5]}
    other.learn(NONSENSE, yes=YES[1:5])
    scores = [tagger.scores_of(DATA.unseen, [NONSENSE])[0] for tagger in (Tagger.open(living.path), other)]
    np.testing.assert_allclose(*scores, atol=1e-6)


def test_a_label_whose_yes_answers_are_all_deleted_is_taken_out(project: Project, living: LivingTagger) -> None:
    project.offer(NONSENSE)
    annotations = [project.answer(text, NONSENSE) for text in YES[:WAITS_FOR]]
    project.wait()
    assert NONSENSE in living.view().labels
    project.delete(*annotations)
    project.wait()
    assert NONSENSE not in living.view().labels


def test_what_is_null_is_missing(project: Project, living: LivingTagger) -> None:
    """An event that is refused is lost, so nothing is refused that says enough."""
    project.offer(NONSENSE)
    for text in YES[:4]:
        project.answer(text, NONSENSE, was_cancelled=None, lead_time=None)
    project.answer(NO[0], result=None)
    project.send(recorded("START_TRAINING"))
    project.wait()
    assert len(kept(living, NONSENSE)) == 5


def test_several_annotations_come_at_once(project: Project, living: LivingTagger) -> None:
    """Predictions that are taken as answers: the plural event, whose annotations and tasks are lists."""
    project.offer(NONSENSE)
    event = recorded("ANNOTATIONS_CREATED")
    one, task = event["annotation"][0], event["task"][0]
    rows = list(enumerate(YES[:4], start=1))
    event["annotation"] = [one | {"id": at, "task": at, "result": chosen(NONSENSE)} for at, _ in rows]
    event["task"] = [task | {"id": at, "data": {"text": text}} for at, text in reversed(rows)]
    project.send(event)
    project.wait()
    assert kept(living, NONSENSE) == {digest(text): True for text in YES[:4]}


def test_a_label_waits_for_enough_answers_where_its_name_says_nothing(project: Project, client: Any) -> None:
    project.offer(*KNOWN, NONSENSE)
    project.wait()
    health = client.get(f"/label-studio/{SECRET}/health").json()
    assert health["waiting"] == {NONSENSE: "0 of 3 yes answers are there, and its name alone says too little"}
    project.answer(YES[0], NONSENSE)
    project.wait()
    assert "1 of 3" in client.get(f"/label-studio/{SECRET}/health").json()["waiting"][NONSENSE]
    for text in YES[1:WAITS_FOR]:
        project.answer(text, NONSENSE)
    project.wait()
    assert client.get(f"/label-studio/{SECRET}/health").json()["waiting"] == {}


def test_a_label_is_born_with_its_name_alone_where_names_work(project: Project, living: LivingTagger) -> None:
    project.offer(*KNOWN, "farm prices")
    project.wait()
    assert "farm prices" in living.view().labels


def test_an_answer_says_nothing_about_labels_that_were_not_offered(project: Project, living: LivingTagger) -> None:
    project.offer(NONSENSE)
    project.answer(NO[0])
    project.offer(NONSENSE, "qqjw")
    for text in YES[:4]:
        project.answer(text, NONSENSE, "qqjw")
    project.wait()
    assert digest(NO[0]) in kept(living, NONSENSE)
    assert digest(NO[0]) not in kept(living, "qqjw")


def test_noes_to_what_is_not_suggested_are_learned_together(project: Project, living: LivingTagger) -> None:
    """Each would cost a revision of every label that a project offers. A no to what is suggested does not wait."""
    project.offer(NONSENSE)
    for text in YES[:5]:
        project.answer(text, NONSENSE)
    project.wait()
    revision = living.view().revision
    scores = dict(zip(NO, living.view().chances(NO, [NONSENSE])[0][:, 0], strict=True))
    quiet = sorted(NO, key=lambda text: scores[text])[:FEW_NO]
    for text in quiet[:-1]:
        project.answer(text)
    project.wait()
    assert living.view().revision == revision
    project.answer(quiet[-1])
    project.wait()
    assert (living.view().revision, len(kept(living, NONSENSE))) == (revision + 1, 5 + FEW_NO)
    project.answer(NO[0] if NO[0] not in quiet else NO[1])
    project.send(recorded("START_TRAINING"))
    project.wait()
    assert len(kept(living, NONSENSE)) == 6 + FEW_NO


def test_a_no_to_what_is_suggested_is_learned_at_once(project: Project, living: LivingTagger) -> None:
    project.offer(NONSENSE)
    for text in YES[:5]:
        project.answer(text, NONSENSE)
    project.wait()
    wrong = next(text for text in YES[5:] if living.view().chances([text], [NONSENSE])[1][0, 0])
    project.answer(wrong)
    project.wait()
    assert kept(living, NONSENSE)[digest(wrong)] is False


def test_the_same_event_again_changes_nothing(project: Project, living: LivingTagger) -> None:
    project.offer(NONSENSE)
    annotations = [project.answer(text, NONSENSE) for text in YES[:4]]
    project.wait()
    revision = living.view().revision
    project.n = annotations[-1]
    project.answer(YES[3], NONSENSE, annotation=annotations[-1])
    project.offer(NONSENSE)
    project.wait()
    assert living.view().revision == revision


def test_an_event_is_answered_at_once_while_a_label_is_learned(project: Project, living: LivingTagger) -> None:
    """Label Studio waits for one second, once; here another change takes as long as we like."""
    project.offer(NONSENSE)
    free, held = threading.Event(), threading.Event()

    def change() -> None:
        with living._writing:
            held.set()
            free.wait(60)

    thread = threading.Thread(target=change)
    thread.start()
    held.wait(60)
    begin = time.perf_counter()
    for text in YES[:4]:
        project.answer(text, NONSENSE)
    seconds = (time.perf_counter() - begin) / 4
    assert NONSENSE not in living.view().labels
    free.set()
    thread.join()
    project.wait()
    assert len(kept(living, NONSENSE)) == 4
    assert seconds < 0.5


def test_an_event_waits_for_no_other_request(
    studio: LabelStudio, living: LivingTagger, loopback: Gate, testclient: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many requests as are let in at once, and as there are threads for, take as long as we like."""
    from streamlabel.serve import app

    free, begun = threading.Event(), threading.Semaphore(0)

    def slowly(*_: Any) -> list[Any]:
        begun.release()
        assert free.wait(60)
        return []

    monkeypatch.setattr("streamlabel.serve.label_studio._predictions", slowly)
    monkeypatch.setattr(app, "MOST_UNDER_WAY", app.READERS)
    made = app.create_app(living, loopback, more=studio.routes, free=studio.free)
    with (
        testclient.TestClient(made, base_url="http://127.0.0.1:8000") as client,
        ThreadPoolExecutor(app.READERS + 1) as pool,
    ):
        try:
            for _ in range(app.READERS):
                pool.submit(client.post, f"/label-studio/{SECRET}/predict", json=recorded("predict"))
                assert begun.acquire(timeout=30)
            event = recorded("ANNOTATION_CREATED")
            said = pool.submit(client.post, f"/label-studio/{SECRET}/webhook", json=event).result(timeout=30)
            assert said.status_code == 201
        finally:
            free.set()


def test_an_event_that_another_process_keeps_waiting_is_answered_in_time_and_written_later(
    project: Project, living: LivingTagger
) -> None:
    project.answer(YES[0], KNOWN[0])
    event = recorded("ANNOTATION_CREATED")
    event["annotation"] |= {"id": 77, "result": chosen(KNOWN[0])}
    event["task"]["data"] = {"text": YES[1]}
    with closing(sqlite3.connect(living.path / "label-studio.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        begin = time.perf_counter()
        assert project.send(event).status_code == 202
        assert time.perf_counter() - begin < 1
        connection.execute("ROLLBACK")
    assert wait_until(lambda: set(project.studio._ledger.said(KNOWN[0]).yes.values()) == set(YES[:2]))


def test_an_event_that_cannot_be_written_is_told_as_lost(
    project: Project, client: Any, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def full(*_: Any, **__: Any) -> None:
        raise DataError("cannot be read or written: disk I/O error", hint=Hint.DOCTOR)

    monkeypatch.setattr(project.studio._ledger, "record", full)
    said = project.send(recorded("ANNOTATION_CREATED"))
    assert (said.status_code, "'streamlabel label-studio pull' fetches" in said.json()["error"]) == (503, True)
    (line,) = [one.getMessage() for one in caplog.records]
    assert "an event of Label Studio was lost (cannot be read or written: disk I/O error)" in line
    assert "doctor" not in line
    assert client.get(f"/label-studio/{SECRET}/health").json()["lost"] == 1
    metrics = client.get("/metrics", headers=bearer(secrets["read"])).text
    assert 'streamlabel_lost_events{model="model"} 1.0' in metrics


def test_labels_of_fit_delay_no_new_one(project: Project, living: LivingTagger) -> None:
    """Nothing is due for them; and what has come while a label was learned may be the next one."""
    learned: list[str] = []
    project.studio._ending.set()  # nobody learns yet
    project.offer(*KNOWN, "aa qqjw", NONSENSE)
    assert {one.label for one in project.studio._ledger.due()} == {"aa qqjw", NONSENSE}
    project.studio._ending.clear()
    learn = project.studio._learn

    def noted(one: Any) -> str:
        if not learned:
            for number, text in enumerate(YES[:WAITS_FOR]):
                answer = LedgerAnswer(1, number, number, "text", text, (NONSENSE,), (NONSENSE,), "2026")
                project.studio._ledger.record([answer])
        learned.append(one.label)
        return learn(one)

    project.studio._learn = noted
    project.studio._nameless |= {"aa qqjw", NONSENSE}
    project.studio._ledger.record([])
    assert project.studio.learn_due().keys() == {"aa qqjw", NONSENSE}
    assert learned[:2] == ["aa qqjw", NONSENSE]


def test_what_was_not_learned_when_the_service_ended_is_learned_when_it_begins(
    project: Project, studio: LabelStudio, living: LivingTagger
) -> None:
    studio._ending.set()  # as if it were killed after the answer
    project.offer(NONSENSE)
    for text in YES[:4]:
        project.answer(text, NONSENSE)
    project.wait()
    assert NONSENSE not in living.view().labels
    again = LabelStudio(LivingTagger(Tagger.open(living.path)))
    again.start()
    again._learner.submit(int).result(60)
    again.close()
    assert len(kept(living, NONSENSE)) == 4


def test_after_an_undo_the_next_answer_brings_all_back(project: Project, living: LivingTagger) -> None:
    project.offer(NONSENSE)
    for text in YES[:4]:
        project.answer(text, NONSENSE)
    project.wait()
    living.rollback(1)
    assert NONSENSE not in living.view().labels
    project.answer(YES[4], NONSENSE)
    project.wait()
    assert len(kept(living, NONSENSE)) == 5


def test_texts_are_kept_while_an_answer_stands(project: Project, living: LivingTagger) -> None:
    words = "quite unusual words that nobody else says"
    first = project.answer(words, KNOWN[0])
    ledger = living.path / "label-studio.db"
    assert words.encode() in ledger.read_bytes()
    assert ledger.stat().st_mode & 0o077 == 0
    project.delete(first)
    assert not project.studio._ledger.said(KNOWN[0]).yes
    with project.studio._ledger._transaction() as run:
        assert run("SELECT count(*) FROM text").fetchone() == (0,)


# Who may ask


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_or_the_secret_path_lets_in(client: Any, secrets: dict[str, str]) -> None:
    assert client.get("/label-studio/health").status_code == 401
    assert client.get("/label-studio/health", headers=bearer(secrets["read"])).status_code == 200
    assert client.get(f"/label-studio/{SECRET}/health").status_code == 200
    assert client.get(f"/label-studio/{SECRET[:-1]}x/health").status_code == 401
    assert client.get(f"/label-studio/{SECRET}/../../labels").status_code == 401
    assert client.get("/labels").status_code == 401
    bad = client.get(f"/label-studio/{SECRET}/health", headers={"Host": "evil.example"})
    assert bad.status_code == 421


def test_the_secret_is_shown_nowhere(client: Any, secrets: dict[str, str]) -> None:
    client.get(f"/label-studio/{SECRET}/health")
    for path in ("/", "/openapi.json", "/docs", "/metrics"):
        found = client.get(path, headers=bearer(secrets["admin"]))
        assert (found.status_code, SECRET in found.text) == (200, False)


def test_a_ledger_of_another_origin_is_not_opened(project: Project, living: LivingTagger) -> None:
    """It might hold triggers, which run when something is written."""
    project.answer(YES[0], KNOWN[0])
    ledger = living.path / "label-studio.db"
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute("CREATE TRIGGER t AFTER INSERT ON text BEGIN DELETE FROM answer; END")
    with pytest.raises(DataError, match="no ledger that streamlabel made"):
        project.studio._ledger.due()
    ledger.unlink()
    ledger.symlink_to(living.path / "catalogue.db")
    with pytest.raises(DataError, match="is a link"):
        project.studio._ledger.due()


def test_userinfo_in_the_address_is_a_token_and_answers_take_its_scope(client: Any, secrets: dict[str, str]) -> None:
    """Label Studio makes HTTP Basic of it, for webhooks, too; the password is the token."""
    event = recorded("ANNOTATION_CREATED")
    asked = {scope: client.post("/label-studio/webhook", json=event, auth=("ann", token)).status_code
             for scope, token in secrets.items() if scope != "file"}  # fmt: skip
    assert asked == {"read": 403, "annotate": 201, "admin": 201}
    predicted = client.post("/label-studio/predict", json=recorded("predict"), auth=("ann", secrets["read"]))
    assert predicted.status_code == 200
    assert client.post("/label-studio/webhook", json=event).status_code == 401


@pytest.mark.parametrize("word", ["short", "has/slash" * 3, "{word}" * 5])
def test_a_secret_is_long_and_plain(word: str) -> None:
    with pytest.raises(DataError, match="20 to 200 letters"):
        check_secret(word)


def test_read_only_suggests_and_learns_nothing(model: Path, testclient: Any) -> None:
    from streamlabel.serve.app import create_app

    living = LivingTagger(Tagger.open(model), read_only=True)
    studio = LabelStudio(living)
    app = create_app(living, Gate(names_of("127.0.0.1", "127.0.0.1")), more=studio.routes, free=studio.free)
    with testclient.TestClient(app, base_url="http://127.0.0.1:8000") as client:
        assert client.post("/label-studio/webhook", json=recorded("ANNOTATION_CREATED")).status_code == 503
        assert client.post("/label-studio/setup", json=recorded("setup")).status_code == 200
        assert client.post("/label-studio/predict", json=recorded("predict")).status_code == 200
    studio.close()
    assert not (model / "label-studio.db").exists()


def test_the_feed_is_readable_by_pages_that_know_the_secret(client: Any, living: LivingTagger) -> None:
    url = f"/label-studio/{SECRET}/taxonomy"
    asked = client.options(
        "/label-studio/taxonomy", headers={"Origin": "http://ls", "Access-Control-Request-Method": "GET"}
    )
    assert asked.status_code == 200
    assert asked.headers["access-control-allow-headers"] == "Authorization"
    found = client.get(url, headers={"Origin": "http://ls"})
    assert found.headers["access-control-allow-origin"] == "*"
    ids = {str(record.id): name for name, record in living.view().labels.items()}
    assert {item["alias"]: item["value"] for item in found.json()["items"]} == ids


def test_pages_that_know_no_secret_cannot_read_the_feed_where_there_is_one(model: Path, testclient: Any) -> None:
    """Without tokens any program of this machine may ask, and so may a browser on it, for any page."""
    from streamlabel.serve.app import create_app

    living = LivingTagger(Tagger.open(model))
    studio = LabelStudio(living, secret=SECRET)
    app = create_app(living, Gate(names_of("127.0.0.1", "127.0.0.1")), more=studio.routes, free=studio.free)
    with testclient.TestClient(app, base_url="http://127.0.0.1:8000") as client:
        for ask in (client.get, client.options):
            assert "access-control-allow-origin" not in ask("/label-studio/taxonomy").headers
            behind = ask(f"/label-studio/{SECRET}/taxonomy")
            assert behind.headers["access-control-allow-origin"] == "*"
    studio.close()


def test_without_a_secret_only_pages_of_label_studio_read_the_feed(model: Path, testclient: Any) -> None:
    from streamlabel.serve.app import create_app

    living = LivingTagger(Tagger.open(model))
    studio = LabelStudio(living)
    app = create_app(living, Gate(names_of("127.0.0.1", "127.0.0.1")), more=studio.routes, free=studio.free)
    with testclient.TestClient(app, base_url="http://127.0.0.1:8000") as client:
        assert "access-control-allow-origin" not in client.get("/label-studio/taxonomy").headers
        client.post("/label-studio/setup", json=recorded("setup"))
        found = client.get("/label-studio/taxonomy").headers
    studio.close()
    assert found["access-control-allow-origin"] == recorded("setup")["hostname"]


# Label configs


def test_a_config_of_many_kinds_is_read() -> None:
    read = parse_config(
        """<View><!-- a comment --><Header value="What is it about?"/>
        <Text name="title" value="$title"/><View><Text name="body" value="$body"/></View>
        <View><Choices name="topics" toName="body" choice="multiple">
          <View><Choice value="bird flu" alias="H5N1"/></View><Choice value="caf&#233;"/></Choices></View>
        <Choices name="mood" toName="title"><Choice value="good"/></Choices>
        <View visibleWhen="choice-selected"><Choices name="why" toName="body"><Choice value="x"/></Choices></View>
        <Choices name="part" toName="body" perRegion="true"><Choice value="not this"/></Choices>
        <Taxonomy name="tree" toName="body"><Choice value="food" alias="f"><Choice value="wheat"/></Choice></Taxonomy>
        <Rating name="stars" toName="body"/></View>"""
    )
    assert [(one.name, one.single, one.conditional) for one in read.controls] == [
        ("topics", False, False), ("mood", True, False), ("why", True, True), ("tree", False, False),
    ]  # fmt: skip
    assert read.controls[0].labels == {("H5N1",): "bird flu", ("café",): "café"}
    assert read.controls[3].labels == {("f",): "food", ("f", "wheat"): "food / wheat"}
    assert read.text(read.controls[1], {"title": "a", "body": "b"}) == ("title", "a")
    assert read.text(read.controls[0], {"$undefined$": "a line"}) == ("body", "a line")


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;&a;">]><View>&c;</View>',
        '<!DOCTYPE x SYSTEM "file:///etc/passwd"><View/>',
        "<View>",
        "",
    ],
)
def test_a_bad_config_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="label config"):
        parse_config(text)


def test_aliases_are_what_is_sent_and_what_comes_back(project: Project, client: Any, living: LivingTagger) -> None:
    aliased = config(*KNOWN).replace(f'value="{KNOWN[0]}"', f'value="{KNOWN[0]}" alias="first"')
    texts = [text for text, tags in zip(DATA.texts, DATA.tags, strict=True) if KNOWN[0] in tags]
    found = ask_predictions(client, aliased, texts)
    assert any("first" in item["value"]["choices"] for one in found for item in one["result"])
    event = recorded("ANNOTATION_CREATED")
    event["annotation"]["result"] = chosen("first")
    event["project"]["label_config"] = aliased
    assert client.post(f"/label-studio/{SECRET}/webhook", json=event).status_code == 201
    assert list(project.studio._ledger.said(KNOWN[0]).yes.values()) == [event["task"]["data"]["text"]]


def test_a_taxonomy_of_our_feed_carries_ids_so_that_names_may_change(client: Any, living: LivingTagger) -> None:
    living.learn("farm / hens", YES[:3], [])
    living.learn("farm", YES[3:6], [])
    items = client.get(f"/label-studio/{SECRET}/taxonomy").json()["items"]
    (farm,) = [item for item in items if item["value"] == "farm"]
    hens, whole = (living.view().labels[name].id for name in ("farm / hens", "farm"))
    assert (farm["alias"], farm["children"]) == (str(whole), [{"value": "hens", "alias": str(hens)}])
    remote = (
        '<View><Text name="text" value="$text"/><Taxonomy name="t" toName="text" apiUrl="http://h/taxonomy"/></View>'
    )
    found = ask_predictions(client, remote, YES[:3])
    paths = [path for one in found for item in one["result"] for path in item["value"]["taxonomy"]]
    assert [str(whole), str(hens)] in paths
    event = recorded("ANNOTATION_CREATED")
    said = {"from_name": "t", "to_name": "text", "type": "taxonomy", "value": {"taxonomy": [[str(whole), str(hens)]]}}
    event["annotation"]["result"] = [said]
    event["task"]["data"] = {"text": YES[4]}
    event["project"]["label_config"] = remote
    client.post(f"/label-studio/{SECRET}/webhook", json=event)
    time.sleep(0)
    assert wait_until(lambda: kept(living, "farm / hens").get(digest(YES[4])) is True)


def wait_until(done: Callable[[], bool]) -> bool:
    end = time.monotonic() + 60
    while not done() and time.monotonic() < end:
        time.sleep(0.05)
    return done()
