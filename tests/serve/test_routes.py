"""Each route against the tagger that it drives, and each refusal: its status, one message, nothing changed."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from processes import PATIENCE
from streamlabel import ModelStore, Tagger
from streamlabel.cli import main
from streamlabel.errors import Hint
from streamlabel.serve import app, live_tagger
from streamlabel.serve import routes as answers
from streamlabel.serve.access import BROKEN, BUSY, SERVICE_WORDS, Gate
from streamlabel.serve.app import HEADERS, QUICK, READERS
from streamlabel.serve.live_tagger import LivingTagger, RecentTexts
from streamlabel.serve.requests import MOST_BYTES, MOST_K, MOST_TEXTS
from tagged_texts import tagged_texts

DATA = tagged_texts(200, 60)
YES = [DATA.texts[i] for i in DATA.rows["football"][:5]]
NO = [DATA.texts[i] for i in range(12) if i not in DATA.rows["football"]]
JSON = {"content-type": "application/json"}


def assert_headers(said: Any) -> None:
    """What keeps a browser from guessing, keeping or framing an answer, once each."""
    for name, value in HEADERS:
        assert said.headers.get_list(name.decode()) == [value.decode()]


def test_health_counts(client: Any, model: Path) -> None:
    store = ModelStore.open(model)
    said = client.get("/readyz")
    assert said.status_code == 200
    assert said.json() == {"ok": True, "revision": 1, "n_labels": len(store.label_names), "read_only": False}
    assert {b"cache-control", b"content-security-policy", b"x-content-type-options"} == {name for name, _ in HEADERS}
    assert_headers(said)


def test_the_first_page_and_the_help_list_every_route(client: Any) -> None:
    said = client.get("/")
    assert said.status_code == 200
    assert (said.json()["service"], said.json()["revision"]) == ("streamlabel", 1)
    found = {(one["method"], one["path"]): one["about"] for one in said.json()["routes"]}
    assert {("GET", "/"), ("POST", "/suggest"), ("DELETE", "/labels/{label}"), ("GET", "/docs")} <= set(found)
    assert list(found)[: len(answers.ROUTES)] == [(one.method, one.path) for one in answers.ROUTES]
    lines = [line.split(maxsplit=2) for line in CliRunner().invoke(main, ["serve", "--help"]).stdout.splitlines()]
    assert all([method, path, about] in lines for (method, path), about in found.items())


def test_labels_are_those_of_the_store(client: Any, model: Path) -> None:
    found = client.get("/labels").json()["labels"]
    records = ModelStore.open(model).labels()
    assert [(one["id"], one["name"], one["n_yes"], one["n_no"], one["born"]) for one in found] == [
        (record.id, record.name, record.n_yes, record.n_no, record.born) for record in records
    ]


def test_suggestions_are_those_of_the_tagger(client: Any, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores to the bit, probabilities and decisions as the estimator has them; also where texts come in parts."""
    monkeypatch.setattr(answers, "AT_ONCE", 7)
    tagger = Tagger.open(model)
    found = client.post("/suggest", json={"texts": DATA.unseen[:20], "k": 3}).json()["results"]
    assert [[(one["label"], one["score"]) for one in row] for row in found] == tagger.suggest(DATA.unseen[:20], 3)
    probability = tagger.classifier_.predict_proba(tagger._features(DATA.unseen[:20]))
    number = {name: j for j, name in enumerate(tagger.label_names_)}
    for i, (row, said) in enumerate(zip(found, tagger.predict(DATA.unseen[:20]), strict=True)):
        assert [one["label"] in said for one in row] == [one["yes"] for one in row]
        expected = [probability[i, number[one["label"]]] for one in row]
        np.testing.assert_allclose([one["probability"] for one in row], expected, rtol=1e-12)


def test_no_text_is_no_answer_and_five_labels_are_usual(client: Any) -> None:
    assert client.post("/suggest", json={"texts": []}).json()["results"] == []
    assert len(client.post("/suggest", json={"texts": [""]}).json()["results"][0]) == 5


def test_an_explanation_adds_up(client: Any, model: Path) -> None:
    label = Tagger.open(model).label_names_[0]
    why = client.post("/explain", json={"text": DATA.unseen[0], "label": label, "words": 2}).json()
    parts = sum(one["part"] for one in why["words_for"] + why["words_against"])
    assert why["score"] == pytest.approx(why["intercept"] + parts + why["others"])
    assert len(why["words_for"]) <= 2
    (score,) = [s for name, s in Tagger.open(model).suggest(DATA.unseen[0], 1000) if name == label]
    assert why["score"] == score


def test_answers_are_those_of_the_command_line(client: Any, model: Path, tmp_path: Path) -> None:
    """Without a number of words, too."""
    label, text = Tagger.open(model).label_names_[0], " ".join(DATA.texts[:20])

    def ask(*arguments: object) -> Any:
        said = CliRunner().invoke(main, [*map(str, arguments), "--json"])
        assert said.exit_code == 0, said.output
        return json.loads(said.stdout)

    why = client.post("/explain", json={"text": text, "label": label}).json()
    assert len(why["words_for"]) == 10
    assert why == ask("explain", model, text, label) | {"revision": 1}
    (tmp_path / "yes.txt").write_text("\n".join(YES), encoding="utf-8")
    expected = ask("add-label", model, "football", "--yes", tmp_path / "yes.txt", "--dry-run")
    report = client.post("/labels", json={"name": "football", "yes": YES}).json()
    assert report | {"seconds": 0} == expected | {"seconds": 0, "revision": 2}


def test_a_label_is_learned_retired_and_brought_back(client: Any, model: Path) -> None:
    before = Tagger.open(model).suggest(DATA.unseen, 1000)
    said = client.post("/labels", json={"name": "football", "yes": YES, "no": NO})
    assert said.status_code == 201, said.text
    report = said.json()
    assert (report["name"], report["n_yes"], report["n_no"], report["revision"]) == ("football", len(YES), len(NO), 2)
    reference = Tagger().fit(DATA.texts, DATA.tags)
    reference.learn("football", YES, NO)
    asked = {"texts": YES[:1], "k": MOST_K}
    found = {one["label"]: one["score"] for one in client.post("/suggest", json=asked).json()["results"][0]}
    assert found == pytest.approx(dict(reference.suggest(YES[0], MOST_K)), abs=1e-5)
    reopened = Tagger.open(model)
    assert reopened.store.history()[0].actor == "web"
    after = [[pair for pair in row if pair[0] != "football"] for row in reopened.suggest(DATA.unseen, 1000)]
    assert after == before
    (number,) = [one["id"] for one in client.get("/labels").json()["labels"] if one["name"] == "football"]
    assert client.delete(f"/labels/{number}").json() == {"revision": 3}
    assert "football" not in ModelStore.open(model).label_names
    assert client.get("/readyz").json()["n_labels"] == len(reopened.label_names_) - 1
    assert client.post("/rollback", json={"revision": 2}).json() == {"revision": 4}
    again = {one["label"]: one["score"] for one in client.post("/suggest", json=asked).json()["results"][0]}
    assert again == found


def test_labels_learned_in_two_requests_are_those_of_one_tagger(client: Any, model: Path) -> None:
    """What the learner keeps between requests does not change what it learns."""
    for name in ("football", "hospitals"):
        yes = [DATA.texts[i] for i in DATA.rows[name][:5]]
        assert client.post("/labels", json={"name": name, "yes": yes}).status_code == 201
    reference = Tagger().fit(DATA.texts, DATA.tags)
    for name in ("football", "hospitals"):
        reference.learn(name, [DATA.texts[i] for i in DATA.rows[name][:5]])
    one, two = Tagger.open(model).suggest(DATA.unseen, 1000), reference.suggest(DATA.unseen, 1000)
    for row, expected in zip(one, two, strict=True):
        assert dict(row) == pytest.approx(dict(expected), abs=1e-5)


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/suggest", {}, 422, "send either texts, a list, or text"),
        ("/suggest", {"texts": "one"}, 422, "texts is of type str; it must be a list"),
        ("/suggest", {"texts": [1]}, 422, "texts[0] is of type int; it must be a string"),
        ("/suggest", {"texts": ["x"], "k": 0}, 422, "k is too small; it must be a whole number, at least 1"),
        ("/suggest", {"texts": ["x"], "k": True}, 422, "k is of type bool; it must be a whole number"),
        (
            "/suggest",
            {"texts": ["x"], "k": MOST_K + 1},
            422,
            f"k is too large; it must be a whole number, at most {MOST_K}",
        ),
        ("/suggest", {"texts": ["x"], "top": 3}, 422, "'top' is not known; there are k, text, texts"),
        ("/suggest", {"texts": ["x"] * (MOST_TEXTS + 1)}, 422, "at most 1,000"),
        ("/suggest", {"texts": ["x"] * 201, "k": MOST_K}, 422, "201 texts with k 100 are too many; at most 20,000"),
        ("/suggest", [], 422, "JSON object"),
        ("/suggest", {"texts": ["\ud800"]}, 400, "not JSON"),
        ("/explain", {"text": "x", "label": "no such"}, 404, "'no such'"),
        ("/labels", {"name": "a", "yes": []}, 422, "no word of its name is known here"),
        ("/labels", {"name": "a", "yes": ["zzzzz"]}, 422, "nothing can be learned"),
        ("/labels", {"name": "a", "yes": YES, "no": YES}, 422, "keep one of the two"),
        ("/labels", {"name": "", "yes": YES}, 422, "name has too few characters; at least 1"),
        ("/labels", {"name": "a\0b", "yes": YES}, 422, "control character"),
        ("/labels", {"name": "farming", "yes": YES}, 409, "known already; choose another name, send answers"),
        ("/labels", {"name": " farming\t", "yes": YES}, 409, "'farming' is known already"),
        ("/labels", {"name": " \u00a0", "yes": YES}, 422, "the name of the label is empty"),
        ("/rollback", {"revision": 99}, 404, "no revision 99"),
        ("/rollback", {"revision": "1"}, 422, "revision is of type str; it must be a whole number"),
        ("/nothing", {}, 404, "Not Found"),
        ("/readyz", {}, 405, "Not Allowed"),
    ],
)
def test_what_is_refused(client: Any, model: Path, path: str, body: Any, status: int, message: str) -> None:
    said = client.post(path, content=json.dumps(body), headers=JSON)
    assert said.status_code == status, said.text
    assert list(said.json()) == ["error"]
    assert message in said.json()["error"]
    assert not any(inside in said.text for inside in ("Traceback", str(model.parent), "relearn", "mode=", "refresh("))
    assert_headers(said)
    assert ModelStore.open(model).revision == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b'{"texts": [NaN]}', b"[" * 100_000, b'{"texts": [1], ', b'{"texts": ["\xed\xa0\x80"]}'],
)
def test_a_body_that_is_not_json(client: Any, content: bytes) -> None:
    said = client.post("/suggest", content=content, headers=JSON)
    assert said.status_code == 400
    assert "not JSON" in said.json()["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {},
        {**JSON, "content-encoding": "gzip"},
    ],
)
def test_a_form_of_another_site_is_not_taken(client: Any, headers: dict[str, str]) -> None:
    said = client.post("/labels", content=json.dumps({"name": "a", "yes": YES}), headers=headers)
    assert said.status_code == 415
    assert client.options("/labels", headers={"origin": "http://evil.example"}).status_code == 405


def test_a_body_is_bounded_whether_it_says_its_size_or_not(client: Any) -> None:
    whole = b'{"texts": ["' + b"x" * MOST_BYTES + b'"]}'
    for content in (whole, iter([whole[:100], whole[100:]])):
        said = client.post("/suggest", content=content, headers=JSON)
        assert said.status_code == 413
        assert "4 MiB" in said.json()["error"]


def test_an_error_does_not_repeat_all_that_was_asked(client: Any) -> None:
    said = client.post("/explain", json={"text": "x", "label": "\0" * 10**5})
    assert said.status_code == 404
    assert len(said.content) < 10**4


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/labels", "GET, HEAD, POST"), ("/labels/3", "DELETE, GET, HEAD, PATCH"), ("/readyz", "GET, HEAD")],
)
def test_a_path_names_all_its_methods(client: Any, path: str, allowed: str) -> None:
    said = client.put(path)
    assert (said.status_code, said.headers["allow"]) == (405, allowed)


def test_a_label_without_an_id_here_is_not_retired(client: Any) -> None:
    assert client.delete("/labels/99999").status_code == 404
    for number in ("farming", "-1", "9" * 5000, "²", "1/2", ""):
        said = client.delete(f"/labels/{number}")
        assert said.status_code == 404
        assert "error" in said.json()


def test_a_read_only_service_changes_nothing(client: Any, living: LivingTagger, model: Path) -> None:
    living.read_only = True
    for said in (
        client.post("/labels", json={"name": "football", "yes": YES}),
        client.delete("/labels/1"),
        client.post("/rollback", json={"revision": 1}),
    ):
        assert said.status_code == 503
        assert "read-only" in said.json()["error"]
    assert client.post("/suggest", json={"texts": ["x"]}).status_code == 200
    assert client.get("/readyz").json()["read_only"]
    assert ModelStore.open(model).revision == 1


def test_a_second_writer_is_a_conflict(client: Any, model: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Who that is stands in the log, and not in the answer."""
    with Tagger.open(model, "a", actor="ann"):
        said = client.post("/labels", json={"name": "football", "yes": YES})
    assert (said.status_code, said.json(), said.headers["retry-after"]) == (409, {"error": BUSY}, "1")
    assert "(ann)" in caplog.text
    assert str(model) in caplog.text
    assert client.post("/labels", json={"name": "football", "yes": YES}).status_code == 201


def test_a_damaged_model_is_told_without_its_path(client: Any, model: Path, caplog: pytest.LogCaptureFixture) -> None:
    (model / "catalogue.db").write_bytes(b"no catalogue")
    said = client.post("/labels", json={"name": "football", "yes": YES})
    assert (said.status_code, said.json()) == (500, {"error": f"{BROKEN}; {SERVICE_WORDS[Hint.BACKUP]}"})
    assert "is not a catalogue" in caplog.text


def test_spaces_around_a_name_make_no_twin(client: Any, model: Path) -> None:
    assert client.post("/labels", json={"name": " football\n", "yes": YES}).json()["name"] == "football"
    assert client.post("/labels", json={"name": "football ", "yes": YES}).status_code == 409
    assert ModelStore.open(model).label_names[-1] == "football"


def test_a_fault_of_ours_shows_no_inside(client: Any, living: LivingTagger, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(living, "view", fail)
    said = client.get("/labels")
    assert said.status_code == 500
    assert said.json() == {"error": "the service failed; its log says why"}
    assert_headers(said)


def test_the_gate_refuses_with_the_same_headers(client: Any) -> None:
    said = client.get("/readyz", headers={"host": "evil.example"})
    assert said.status_code == 421
    assert_headers(said)


def test_health_waits_for_nobody(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """More suggestions are under way than there are threads for; they end after it has answered."""
    go_on, busy = threading.Event(), threading.Semaphore(0)

    def slowly(*_: Any) -> list[Any]:
        busy.release()
        assert go_on.wait(PATIENCE)
        return [([], True)]

    monkeypatch.setattr(Tagger, "suggest_known", slowly)
    with ThreadPoolExecutor(READERS + 1) as pool:
        asking = [pool.submit(client.post, "/suggest", json={"texts": ["x" * QUICK]}) for _ in range(READERS + 1)]
        try:
            for _ in range(READERS):
                assert busy.acquire(timeout=PATIENCE)
            with ThreadPoolExecutor(1) as other:
                watching = other.submit(client.get, "/readyz")
                assert watching.result(timeout=PATIENCE).status_code == 200
        finally:
            go_on.set()
        assert [one.result().status_code for one in asking] == [200] * len(asking)


def test_a_health_check_that_takes_long_stops_nobody(
    client: Any, living: LivingTagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, begun, view = threading.Event(), threading.Event(), living.view

    def slowly() -> Any:
        if "apart" in threading.current_thread().name:
            begun.set()
            assert go_on.wait(PATIENCE)
        return view()

    monkeypatch.setattr(living, "view", slowly)
    with ThreadPoolExecutor(2) as pool:
        watching = pool.submit(client.get, "/readyz")
        try:
            assert begun.wait(PATIENCE)
            assert pool.submit(client.get, "/labels").result(timeout=PATIENCE).status_code == 200
        finally:
            go_on.set()
        assert watching.result().status_code == 200


def test_no_more_bodies_are_taken_than_there_is_room_for(
    living: LivingTagger, loopback: Gate, testclient: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def slowly(*_: Any) -> list[Any]:
        begun.set()
        assert go_on.wait(PATIENCE)
        return [([], True)]

    monkeypatch.setattr(app, "MOST_UNDER_WAY", 1)
    monkeypatch.setattr(Tagger, "suggest_known", slowly)
    with (
        testclient.TestClient(app.create_app(living, loopback), base_url="http://127.0.0.1:8000") as client,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(client.post, "/suggest", json={"texts": ["x"]})
        try:
            assert begun.wait(PATIENCE)
            refused = client.post("/suggest", json={"texts": ["x"]})
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert client.get("/readyz").status_code == 200
        finally:
            go_on.set()
        assert first.result().status_code == 200
        assert client.post("/suggest", json={"texts": ["x"]}).status_code == 200


def test_a_large_body_counts_as_several_requests(
    living: LivingTagger, loopback: Gate, testclient: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_UNDER_WAY", 2)
    monkeypatch.setattr(app, "USUAL_BYTES", 1000)
    with testclient.TestClient(app.create_app(living, loopback), base_url="http://127.0.0.1:8000") as client:
        for size, status in ((500, 200), (1500, 200), (2500, 429)):
            assert client.post("/suggest", json={"texts": ["x" * size]}).status_code == status
        body = json.dumps({"texts": ["x"]}).encode()
        parts = client.post("/suggest", content=iter([body]), headers={"Content-Type": "application/json"})
        assert parts.status_code == 429, "of unknown length: as much as the route takes"


POOL = [*DATA.unseen, *DATA.texts[100:]]


def test_a_label_is_learned_from_its_name_and_answered_further(client: Any, model: Path) -> None:
    said = client.post("/labels", json={"name": "football", "about": "teams and goals", "pool": POOL})
    assert said.status_code == 201, said.text
    assert (said.json()["n_yes"], said.json()["pool"]) == (0, "given")
    (asked,) = client.post("/labels/football/next", json={"n": 1, "pool": POOL}).json()["questions"]
    assert asked["text"] in POOL
    assert 0 <= asked["probability"] <= 1
    report = client.post("/labels/football/answers", json={"text": asked["text"], "yes": True, "pool": POOL}).json()
    assert (report["revision"], report["n_yes"], report["estimate"]["n_asked"]) == (3, 1, 1)
    left = client.post("/labels/football/next", json={"n": 100, "pool": POOL}).json()
    assert (left["revision"], left["n_pool"]) == (3, len(set(POOL)))
    assert asked["text"] not in [one["text"] for one in left["questions"]]
    several = [{"text": text, "yes": i < 2} for i, text in enumerate([*YES[:2], *NO[:3]])]
    report = client.post("/labels/football/answers", json={"answers": several, "asked": False}).json()
    assert (report["n_yes"], report["n_no"], report["estimate"]["n_asked"], report["pool"]) == (3, 3, 1, "fit")
    card = client.get("/labels/football").json()
    assert card["estimate"] == report["estimate"]
    assert (card["name"], card["threshold"], card["revision"]) == ("football", report["threshold"], 4)
    assert Tagger.open(model).estimate("football") is not None


def test_a_label_of_fit_has_no_estimate_and_takes_no_answers(client: Any, model: Path) -> None:
    assert client.get("/labels/farming").json()["estimate"] is None
    said = client.post("/labels/farming/answers", json={"text": YES[0], "yes": False})
    assert (said.status_code, "not kept" in said.json()["error"]) == (409, True)
    assert ModelStore.open(model).revision == 1


def test_a_name_with_a_slash_is_a_label_like_others(client: Any) -> None:
    assert client.post("/labels", json={"name": "sport/football", "yes": YES}).status_code == 201
    assert client.get("/labels/sport%2Ffootball").json()["name"] == "sport/football"
    assert client.post("/labels/sport%2ffootball/answers", json={"text": NO[0], "yes": False}).status_code == 200
    assert client.post("/labels", json={"name": "a/next", "yes": YES}).status_code == 201
    assert client.get("/labels/a%2Fnext").json()["name"] == "a/next"
    assert client.patch("/labels/a/next", json={"threshold": 1}).status_code == 405


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/labels/nobody/next", {"pool": YES}, 404, "no label is called 'nobody'"),
        ("/labels/nobody/answers", {"text": "x", "yes": True}, 404, "no label is called 'nobody'"),
        ("/labels/farming/next", {}, 422, "remembers none; send some as pool"),
        ("/labels/farming/next", {"n": 0, "pool": YES}, 422, "n is too small"),
        ("/labels/farming/next", {"pool": ["x"] * (MOST_TEXTS + 1)}, 422, "at most 1,000"),
        ("/labels/farming/next", {"label": "x"}, 422, "'label' is not known; there are n, pool"),
        ("/labels/farming/answers", {"text": "x"}, 422, "'yes' is missing"),
        ("/labels/farming/answers", {"text": "x", "yes": 1}, 422, "yes is of type int; it must be true or false"),
        ("/labels/farming/answers", {"answers": []}, 422, "answers has too few entries; at least 1"),
        ("/labels/farming/answers", {"answers": [{"text": "x", "yes": True}] * (MOST_TEXTS + 1)}, 422, "1,000"),
        ("/labels/farming/answers", {"answers": ["x"]}, 422, "answers[0] is of type str; it must be an object"),
        ("/labels/farming/answers", {"answers": [{"text": 1, "yes": True}]}, 422, "answers[0].text is of type int"),
        (
            "/labels/farming/answers",
            {"text": "x", "yes": True, "asked": "no"},
            422,
            "asked is of type str; it must be true or false",
        ),
        ("/labels", {"name": "football", "about": 1}, 422, "about is of type int"),
        ("/labels", {"name": "football", "pool": "x"}, 422, "pool is of type str"),
        ("/labels", {"name": "football", "yes": YES, "pool": YES}, 422, "no text that is not answered"),
    ],
)
def test_what_is_refused_of_questions(
    client: Any, model: Path, path: str, body: Any, status: int, message: str
) -> None:
    said = client.post(path, json=body)
    assert (said.status_code, message in said.json()["error"]) == (status, True), said.text
    assert ModelStore.open(model).revision == 1


def test_texts_are_remembered_only_if_asked_to(
    client: Any, living: LivingTagger, model: Path, loopback: Gate, testclient: Any
) -> None:
    client.post("/suggest", json={"texts": POOL[:5]})
    assert client.get("/").json()["pool"] == {"n_texts": 0, "remembers": 0}
    with Tagger.open(model, "a") as tagger:
        tagger.learn("football", YES)
    living = LivingTagger(Tagger.open(model), recent=RecentTexts(POOL[:50], 120))
    with testclient.TestClient(app.create_app(living, loopback), base_url="http://127.0.0.1:8000") as other:
        assert other.get("/").json()["pool"] == {"n_texts": 50, "remembers": 120}
        assert other.get("/labels/football/next").json()["n_pool"] == 50
        assert other.post("/labels/football/answers", json={"text": NO[0], "yes": False}).json()["pool"] == "fit"
        other.post("/suggest", json={"texts": POOL[40:]})
        found = other.get("/labels/football/next").json()
        assert found["n_pool"] == 120
        assert {one["text"] for one in found["questions"]} <= set(POOL[-120:])
        report = other.post("/labels/football/answers", json={"text": NO[1], "yes": False}).json()
        assert (report["pool"], report["n_no"]) == ("given", 2)
        assert other.post("/labels", json={"name": "hospitals", "yes": NO[:1]}).json()["pool"] == "given"


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_tagger, "MOST_CHARACTERS", 10)
    recent = RecentTexts((), 100)
    recent.add(["aaaa", "bbbb", "aaaa", "cccc"])
    assert list(recent._texts) == ["aaaa", "cccc"]
    recent.add(["d" * 11])
    assert len(recent) == 0


def test_a_text_without_a_known_word_gets_no_yes(client: Any, model: Path) -> None:
    with ModelStore.open(model, "a") as store:
        store.set_threshold("farming", -5.0)
    time.sleep(live_tagger.LOOK_EVERY)
    client.get("/labels")
    known, unknown = client.post("/suggest", json={"texts": [YES[0], "zzzz"], "k": MOST_K}).json()["results"]
    assert [one["yes"] for one in known if one["label"] == "farming"] == [True]
    assert not any(one["yes"] for one in unknown)
    assert not client.post("/explain", json={"text": "zzzz", "label": "farming"}).json()["yes"]


def test_small_requests_that_wait_too_long_are_answered_by_others(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread answers them; where it is held up, not all of them are."""
    go_on, begun, suggest = threading.Event(), threading.Event(), Tagger.suggest_known

    def slowly(tagger: Tagger, texts: Any, k: int = 5) -> Any:
        if "quick" in threading.current_thread().name:
            begun.set()
            assert go_on.wait(PATIENCE)
        return suggest(tagger, texts, k)

    monkeypatch.setattr(app, "MOST_QUICK", 1)
    monkeypatch.setattr(Tagger, "suggest_known", slowly)
    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(client.post, "/suggest", json={"texts": ["x"]})
        try:
            assert begun.wait(PATIENCE)
            other = pool.submit(client.post, "/suggest", json={"texts": ["x"]})
            assert other.result(timeout=PATIENCE).status_code == 200
        finally:
            go_on.set()
        assert held.result().json() == other.result().json()


def test_whether_the_process_answers_waits_for_nothing(
    client: Any, living: LivingTagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, begun, view = threading.Event(), threading.Event(), living.view

    def slowly() -> Any:
        begun.set()
        assert go_on.wait(PATIENCE)
        return view()

    monkeypatch.setattr(living, "view", slowly)
    with ThreadPoolExecutor(2) as pool:
        watching = pool.submit(client.get, "/readyz")
        try:
            assert begun.wait(PATIENCE)
            assert pool.submit(client.get, "/livez").result(timeout=PATIENCE).json() == {"ok": True}
        finally:
            go_on.set()
        assert watching.result().status_code == 200


BROWSER = {"accept": "text/html"}


def test_a_page_that_there_is_no_room_for_is_refused_as_a_page(
    living: LivingTagger, loopback: Gate, testclient: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_UNDER_WAY", 0)
    with testclient.TestClient(app.create_app(living, loopback), base_url="http://127.0.0.1:8000") as client:
        for more, part in (({}, "<h1>"), ({"hx-request": "true"}, '<div id="error">')):
            said = client.get("/ui/labels", headers=BROWSER | more)
            assert (said.status_code, said.headers["retry-after"]) == (429, "1")
            assert part in said.text
            assert "too many requests are under way" in said.text
        assert client.get("/labels").json() == {"error": "too many requests are under way; try again in a moment"}


def test_a_page_that_fails_says_so_as_a_page_and_the_log_says_why(
    client: Any, living: LivingTagger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(living, "reading", fails)
    said = client.get("/ui/label?name=farming", headers=BROWSER)
    assert (said.status_code, said.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert app.FAILED in said.text
    assert "a bug" not in said.text
    assert "RuntimeError: a bug" in caplog.text


def test_a_browser_is_told_in_a_page_that_there_is_none(client: Any) -> None:
    said = client.get("/nope", headers=BROWSER)
    assert (said.status_code, said.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "there is no such page" in said.text
    assert "content-security-policy" in said.headers
    assert client.get("/nope").json() == {"error": "Not Found"}
    assert client.delete("/labels", headers=BROWSER).headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("number", ["1e400", "-1e999"])
def test_a_number_that_is_too_large_is_json(client: Any, number: str) -> None:
    body, kind = f'{{"threshold": {number}}}', {"content-type": "application/json"}
    said = client.patch("/labels/farming", content=body, headers=kind)
    assert (said.status_code, "threshold" in said.json()["error"]) == (422, True), said.text


def test_a_text_that_is_kept_already_changes_nothing_about_the_pool(living: LivingTagger) -> None:
    recent, tagger = RecentTexts(POOL[:3], 100), living.view().tagger
    first = recent.pool(tagger)
    recent.add(POOL[:2])
    assert recent.pool(tagger) is first
    recent.add(POOL[3:4])
    assert recent.pool(tagger).texts == (POOL[2], POOL[0], POOL[1], POOL[3])


def test_texts_that_were_answered_are_bounded_by_their_length_too(
    living: LivingTagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_tagger, "MOST_CHARACTERS", len(NO[0]) + len(NO[1]))
    living.learn("football", YES[:2], [])
    living.learn("hospitals", NO[:1], NO[1:2])
    assert set(living._answered.values()) == set(NO[:2])
