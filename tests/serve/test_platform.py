"""What a platform asks for: a document of the routes, tokens with scopes, metrics, a log, several models, rows."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamlabel import ModelStore, StreamingLabelClassifier, Tagger
from streamlabel.serve.access import Gate
from streamlabel.serve.app import create_app
from streamlabel.serve.live_tagger import LivingTagger, open_reader
from streamlabel.serve.requests import MOST_K
from streamlabel.serve.routes import ROUTES
from tagged_texts import NEW, tagged_texts

DATA = tagged_texts(200, 60)
YES = {name: [DATA.texts[i] for i in DATA.rows[name][:5]] for name in NEW}
NO = [DATA.texts[i] for i in range(12) if i not in DATA.rows["football"]]
POOL = [*DATA.unseen, *DATA.texts[100:]]


@pytest.fixture
def serving(loopback: Gate, testclient: Any) -> Any:
    def client(living: Any, **options: Any) -> Any:
        return testclient.TestClient(
            create_app(living, loopback, **options), base_url="http://127.0.0.1:8000", raise_server_exceptions=False
        )

    return client


def test_the_document_has_every_route_and_refers_to_nothing_that_is_not_there(client: Any) -> None:
    found = client.get("/openapi.json").json()
    assert found["openapi"] == "3.1.0"
    operations = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert operations == {(one.method, one.path) for one in ROUTES}
    refs = set(re.findall(r'"\$ref":"#/components/schemas/(\w+)"', client.get("/openapi.json").text))
    assert refs == set(found["components"]["schemas"])
    names = [one["operationId"] for methods in found["paths"].values() for one in methods.values()]
    assert len(set(names)) == len(names)
    limits = found["components"]["schemas"]["SuggestRequest"]["properties"]["k"]
    assert (limits["minimum"], limits["maximum"], limits["default"]) == (1, MOST_K, 5)
    assert "securitySchemes" not in found["components"]


def test_the_document_is_openapi(client: Any) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="the group dev is not installed")
    schemathesis.openapi.from_dict(client.get("/openapi.json").json()).validate()


def test_the_document_says_who_may_ask(guarded: Any, secrets: dict[str, str]) -> None:
    found = guarded.get("/openapi.json", headers={"authorization": f"Bearer {secrets['read']}"}).json()
    assert set(found["components"]["securitySchemes"]) == {"bearer", "basic", "cookie"}
    assert "security" not in found["paths"]["/livez"]["get"]
    assert "admin" in found["paths"]["/undo"]["post"]["description"]
    assert {"401", "403"} <= set(found["paths"]["/labels"]["post"]["responses"])


def test_the_page_names_every_route(client: Any) -> None:
    said = client.get("/docs")
    assert said.headers["content-type"].startswith("text/html")
    for one in ROUTES:
        assert f"<code>{one.method} {one.path}</code>" in said.text
    assert "https://" not in said.text
    targets = set(re.findall(r'href="#([^"]+)"', said.text))
    assert targets <= set(re.findall(r'id="([^"]+)"', said.text))


def test_every_answer_is_of_the_type_that_the_document_has(client: Any) -> None:
    """Read back strictly: a field that is not in the type is an error, too."""
    replies = {(one.method, one.path): one for one in ROUTES}
    label = {"name": "football", "yes": YES["football"], "no": NO, "pool": POOL}
    text = DATA.unseen[0]
    for method, path, place, body in (
        ("GET", "/", "/", None),
        ("GET", "/livez", "/livez", None),
        ("GET", "/readyz", "/readyz", None),
        ("POST", "/suggest", "/suggest", {"texts": [text, ""]}),
        ("POST", "/labels", "/labels", label),
        ("POST", "/batch", "/batch", {"labels": [{"name": "railways", "yes": YES["railways"]}]}),
        ("POST", "/labels/{label}/answers", "/labels/football/answers", {"text": text, "yes": False}),
        ("POST", "/labels/{label}/next", "/labels/football/next", {"pool": POOL}),
        ("POST", "/explain", "/explain", {"text": text, "label": "football"}),
        ("GET", "/labels", "/labels", None),
        ("GET", "/labels/{label}", "/labels/football", None),
        ("PATCH", "/labels/{label}", "/labels/football", {"name": "soccer"}),
        ("DELETE", "/labels/{label}", "/labels/1", None),
        ("GET", "/history", "/history", None),
        ("POST", "/undo", "/undo", {}),
        ("POST", "/rollback", "/rollback", {"revision": 1}),
    ):
        route = replies.pop((method, path))
        said = client.request(method, place, json=body) if body is not None else client.request(method, place)
        assert said.status_code == route.status, said.text
        strict = msgspec.defstruct(
            "Strict",
            [(one.name, one.type, one.default) if not one.required else (one.name, one.type)
             for one in msgspec.structs.fields(route.reply)],
            forbid_unknown_fields=True, kw_only=True,
        )  # fmt: skip
        msgspec.json.decode(said.content, type=strict)
    assert set(replies) == {("GET", "/labels/{label}/next")}  # as POST


def test_scopes_of_routes(guarded: Any, secrets: dict[str, str], model: Path) -> None:
    """Each route with each token: 403 exactly where the token is for less; and the history has the token's name."""
    wanted = {"read": 0, "annotate": 1, "admin": 2}
    for route in ROUTES:
        path = route.path.replace("{label}", "none such")
        for held, level in wanted.items():
            said = guarded.request(
                route.method, path, headers={"authorization": f"Bearer {secrets[held]}"},
                **({} if route.body is None else {"json": {"nothing": 1}}),
            )  # fmt: skip
            refused = route.scope is not None and level < wanted[route.scope]
            assert (said.status_code == 403) is refused, (route, held, said.text)
            assert not refused or f"scope {route.scope}" in said.json()["error"]
    assert ModelStore.open(model).revision == 1
    header = {"authorization": f"Bearer {secrets['annotate']}"}
    guarded.post("/labels", json={"name": "football", "yes": YES["football"]}, headers=header)
    header = {"authorization": f"Bearer {secrets['admin']}"}
    guarded.patch("/labels/football", json={"threshold": 0.5}, headers=header)
    assert [one.actor for one in ModelStore.open(model).history()[:2]] == ["adminer", "annotateer"]


def metrics(client: Any) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def test_metrics_count_what_happened(client: Any, living: LivingTagger) -> None:
    assert client.post("/labels", json={"name": "football", "yes": YES["football"]}).status_code == 201
    for _ in range(3):
        client.post("/suggest", json={"texts": ["x"]})
    client.post("/suggest", json={})
    client.get("/nothing")
    client.request("BREW", "/suggest")
    found = metrics(client)

    def seconds(route: str, method: str, status: int) -> float:
        labels = {"method": method, "model": "model" if route != "other" else "", "route": route, "status": str(status)}
        return found["streamlabel_http_request_seconds_count", tuple(sorted(labels.items()))]

    assert seconds("/suggest", "POST", 200) == 3
    assert seconds("/suggest", "POST", 422) == 1
    assert seconds("other", "GET", 404) == 1
    assert seconds("other", "other", 405) == 1
    of_model = (("model", "model"),)
    assert found["streamlabel_revision", of_model] == 2 == living.view().revision
    assert found["streamlabel_n_labels", of_model] == len(living.view().labels)
    assert found["streamlabel_learn_seconds_count", of_model] == 1
    assert found["streamlabel_ready", of_model] == 1
    assert found["streamlabel_http_requests_under_way", ()] == 1  # this one


def test_series_are_bounded_and_have_no_name_of_a_label(client: Any) -> None:
    for number in range(30):
        client.get(f"/labels/secret-{number}")
        client.get(f"/secret-{number}")
        client.request(f"SECRET{number}", "/labels")
    said = client.get("/metrics").text
    assert "secret" not in said.lower()
    assert said.count("streamlabel_http_request_seconds_count{") == 3


def test_the_log_has_a_line_of_json_a_request_and_no_text(
    living: LivingTagger, serving: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streamlabel.serve.access")
    with serving(living, access_log=True) as client:
        client.post("/suggest", json={"texts": ["a secret text"]}, headers={"x-request-id": "abc-1"})
        client.get("/labels/secret", headers={"x-request-id": "not, good"})
    lines = [json.loads(one.getMessage()) for one in caplog.records if one.name == "streamlabel.serve.access"]
    assert [(one["method"], one["route"], one["status"]) for one in lines] == [
        ("POST", "/suggest", 200), ("GET", "/labels/{label}", 404),
    ]  # fmt: skip
    assert set(lines[0]) == {"time", "method", "model", "route", "status", "ms", "bytes", "token", "id"}
    assert lines[0]["id"] == "abc-1"
    assert re.fullmatch("[0-9a-f]{16}", lines[1]["id"])
    assert lines[0]["bytes"] > 100
    assert "secret" not in caplog.text


def test_labels_come_in_pages(client: Any, model: Path) -> None:
    names = ModelStore.open(model).label_names
    found: list[str] = []
    while len(found) < len(names):
        part = client.get("/labels", params={"limit": 7, "offset": len(found)}).json()
        assert part["n_labels"] == len(names)
        found += [one["name"] for one in part["labels"]]
    assert tuple(found) == names
    some = client.get("/labels", params={"q": "FARM"}).json()
    assert [one["name"] for one in some["labels"]] == [name for name in names if "farm" in name.casefold()]
    for query, message in {
        "limit=0": "limit is too small",
        "limit=x": "limit",
        "offset=-1": "offset",
        "x=1": "'x'",
    }.items():
        said = client.get(f"/labels?{query}")
        assert (said.status_code, message in said.json()["error"]) == (422, True), said.text


def test_history_and_undo(client: Any, model: Path) -> None:
    assert client.post("/undo", json={}).status_code == 409
    client.post("/labels", json={"name": "football", "yes": YES["football"]})
    client.patch("/labels/football", json={"name": "soccer"})
    said = client.get("/history", params={"limit": 1}).json()
    assert (said["n_revisions"], said["revisions"][0]["action"]) == (3, "rename")
    assert client.get("/history", params={"label": "football"}).json()["n_revisions"] == 2
    assert client.get("/history", params={"label": "nobody"}).status_code == 404
    undone = client.post("/undo", json={}).json()
    assert (undone["revision"], undone["undone"]["action"]) == (4, "rename")
    assert ModelStore.open(model).label_names[-1] == "football"
    assert client.post("/undo", json={}).json()["undone"]["number"] == 2
    assert client.get("/labels/football").status_code == 404
    assert client.post("/undo", json={}).status_code == 409


def test_a_label_is_renamed_and_its_threshold_moved(client: Any, model: Path) -> None:
    learned = client.post("/labels", json={"name": "football", "yes": YES["football"], "no": NO}).json()
    assert client.patch("/labels/football", json={"name": " soccer "}).json()["name"] == "soccer"
    assert client.patch("/labels/soccer", json={"threshold": 7.5}).json()["threshold"] == 7.5
    back = client.patch("/labels/soccer", json={"threshold": "auto"}).json()
    assert back["threshold"] == pytest.approx(learned["threshold"])
    expected = Tagger.open(model).in_memory().learn_more("soccer", pool=POOL, precision=0.05)
    said = client.patch("/labels/soccer", json={"precision": 0.05, "pool": POOL})
    assert said.status_code == 200, said.text
    assert said.json()["threshold"] == pytest.approx(expected.threshold, abs=1e-5) != learned["threshold"]
    assert Tagger.open(model).classifier_.thresholds_[-1] == said.json()["threshold"]
    for label, body, status, message in (
        ("soccer", {}, 422, "send one of name"),
        ("soccer", {"name": "x", "threshold": 1}, 422, "send one of name"),
        ("soccer", {"threshold": 1, "pool": POOL}, 422, "pool goes with precision"),
        ("soccer", {"precision": 0}, 422, "precision is too small; it must be a number, more than 0"),
        ("soccer", {"precision": 1, "pool": POOL}, 422, "cannot be expected"),
        ("soccer", {"name": "farming"}, 409, "'farming' is known already"),
        ("soccer", {"name": "a\0"}, 422, "control character"),
        ("nobody", {"threshold": 1}, 404, "no label is called 'nobody'"),
        ("nobody", {"precision": 0.5}, 404, "no label is called 'nobody'"),
    ):
        refused = client.patch(f"/labels/{label}", json=body)
        assert (refused.status_code, message in refused.json()["error"]) == (status, True), refused.text
    assert ModelStore.open(model).revision == said.json()["revision"]


def test_the_precision_of_a_label_of_fit(client: Any, model: Path) -> None:
    """Its threshold is the one that the command gives."""
    from click.testing import CliRunner

    from streamlabel.cli import main

    told = CliRunner().invoke(main, ["threshold", str(model), "farming", "--precision", "0.6", "--dry-run", "--json"])
    said = client.patch("/labels/farming", json={"precision": 0.6})
    assert said.status_code == 200, said.text
    assert said.json()["threshold"] == pytest.approx(json.loads(told.stdout)["threshold"])
    assert client.post("/labels", json={"name": "football", "yes": YES["football"]}).status_code == 201


def test_a_batch_is_one_revision_or_nothing(client: Any, model: Path) -> None:
    batch = [{"name": name, "yes": YES[name]} for name in NEW[:3]]
    wrong = client.post("/batch", json={"labels": [*batch, {"name": "a", "yes": ["zzzzz"]}]})
    assert (wrong.status_code, ModelStore.open(model).revision) == (422, 1)
    twice = client.post("/batch", json={"labels": [*batch, batch[0]]})
    assert (twice.status_code, "labels[3]" in twice.json()["error"]) == (422, True)
    taken = client.post("/batch", json={"labels": [*batch, {"name": "farming", "yes": YES["football"]}]})
    assert (taken.status_code, ModelStore.open(model).revision) == (409, 1)
    said = client.post("/batch", json={"labels": batch})
    assert said.status_code == 201, said.text
    assert said.json()["revision"] == 2
    assert [one["name"] for one in said.json()["labels"]] == list(NEW[:3])
    alone = Tagger().fit(DATA.texts, DATA.tags)
    alone.learn_many({name: (YES[name], []) for name in NEW[:3]})
    found, expected = Tagger.open(model).suggest(DATA.unseen[0], 1000), alone.suggest(DATA.unseen[0], 1000)
    assert dict(found) == pytest.approx(dict(expected), abs=1e-5)


@pytest.fixture
def rows(tmp_path: Path) -> tuple[Path, Any, Any]:
    rng = np.random.default_rng(0)
    X, directions = rng.normal(size=(120, 8)), rng.normal(size=(8, 4))
    Y = (X @ directions > 0).astype(int)
    path = tmp_path / "rows"
    ModelStore.create(path, StreamingLabelClassifier().fit(X, Y[:, :3], ["a", "b", "c"])).close()
    return path, X, Y


def test_a_model_of_rows_is_served(rows: tuple[Path, Any, Any], serving: Any) -> None:
    path, X, Y = rows
    with serving(LivingTagger(open_reader(path), actor="web")) as client:
        assert (client.get("/").json()["takes"], client.get("/").json()["n_features"]) == ("rows", 8)
        body = {"name": "d", "yes": X[Y[:, 3] == 1][:20].tolist(), "no": X[Y[:, 3] == 0][:20].tolist()}
        said = client.post("/labels", json=body)
        assert said.status_code == 201, said.text
        assert (said.json()["n_yes"], said.json()["n_no"], said.json()["revision"]) == (20, 20, 2)
        found = client.post("/suggest", json={"rows": X[:10].tolist(), "k": 4}).json()["results"]
        model = ModelStore.open(path).model()
        scores, chances = model.decision_function(X[:10]), model.predict_proba(X[:10])
        for i, row in enumerate(found):
            assert [one["label"] for one in row] == [model.label_names_[j] for j in np.argsort(-scores[i])]
            assert [one["score"] for one in row] == sorted(scores[i].tolist(), reverse=True)
            for one in row:
                j = model.label_names_.index(one["label"])
                assert one["probability"] == pytest.approx(chances[i, j])
                assert one["yes"] == bool(model.predict(X[i : i + 1])[0, j])
        assert client.post("/suggest", json={"rows": []}).json()["results"] == []
        for place, body, status, message in (
            ("/suggest", {"texts": ["x"]}, 422, "'texts' is not known; there are k, rows"),
            ("/suggest", {"rows": [[1.0] * 8, [1.0]]}, 422, "rows[1] has 1 numbers; the model takes 8"),
            ("/suggest", {"rows": [["x"]]}, 422, "rows[0][0] is of type str; it must be a number"),
            ("/labels", {"name": "e", "yes": [[1.0] * 8], "no": []}, 422, "no has too few entries"),
            ("/labels", {"name": "a", "yes": [[1.0] * 8], "no": [[0.0] * 8]}, 409, "known already"),
            ("/explain", {"text": "x", "label": "a"}, 409, "rows of numbers"),
            ("/labels/a/answers", {"text": "x", "yes": True}, 409, "rows of numbers"),
        ):
            refused = client.post(place, json=body)
            assert (refused.status_code, message in refused.json()["error"]) == (status, True), refused.text
        assert client.patch("/labels/d", json={"threshold": 0.3}).json()["threshold"] == 0.3
        assert client.get("/labels/d").json()["estimate"] is None
        paths = client.get("/openapi.json").json()["paths"]
        assert "/explain" not in paths
        assert client.post("/undo", json={}).json()["undone"]["action"] == "threshold"


def test_a_model_whose_names_need_an_encoder_that_is_not_there_is_refused_at_the_start(tmp_path: Path) -> None:
    from streamlabel.errors import DataError

    class Encoder:
        version = "my encoder 1"

        def encode(self, texts: list[str]) -> Any:
            return np.array([[len(text), 1.0] for text in texts])

    Tagger(names=Encoder()).fit(DATA.texts, DATA.tags).save(tmp_path / "model")
    with pytest.raises(DataError, match="my encoder 1"):
        LivingTagger(open_reader(tmp_path / "model"))
    assert LivingTagger(open_reader(tmp_path / "model"), read_only=True).view().labels


@pytest.fixture
def several(made_once: Path, rows: tuple[Path, Any, Any], tmp_path: Path, serving: Any) -> Iterator[Any]:
    news = Path(shutil.copytree(made_once, tmp_path / "news"))
    living = {path.name: LivingTagger(open_reader(path)) for path in (news, rows[0])}
    with serving(living) as client:
        yield client


def test_several_models_in_one_process(several: Any, tmp_path: Path) -> None:
    found = several.get("/").json()["models"]
    assert [(one["name"], one["path"], one["revision"]) for one in found] == [
        ("news", "/models/news/", 1), ("rows", "/models/rows/", 1),
    ]  # fmt: skip
    said = several.post("/models/news/suggest", json={"texts": [DATA.unseen[0]], "k": 2})
    expected = Tagger.open(tmp_path / "news").suggest(DATA.unseen[0], 2)
    assert [(one["label"], one["score"]) for one in said.json()["results"][0]] == expected
    assert several.post("/models/rows/suggest", json={"rows": [[0.0] * 8]}).status_code == 200
    assert several.post("/models/news/labels", json={"name": "football", "yes": YES["football"]}).status_code == 201
    assert [one["revision"] for one in several.get("/").json()["models"]] == [2, 1]
    for path in ("/livez", "/readyz", "/models/news/readyz", "/models/rows/docs", "/models/news/"):
        assert several.get(path).status_code == 200, path
    assert several.get("/models/rows/openapi.json").json()["servers"] == [{"url": "/models/rows"}]
    assert several.get("/models/nobody/labels").status_code == 404
    wrong = several.put("/models/news/labels")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD, POST")
    counted = metrics(several)
    assert counted["streamlabel_revision", (("model", "news"),)] == 2
    assert counted["streamlabel_revision", (("model", "rows"),)] == 1


def test_one_model_that_is_gone_makes_all_not_ready(
    several: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamlabel.serve.live_tagger.LOOK_EVERY", 0.0)
    shutil.move(tmp_path / "news", tmp_path / "elsewhere")
    said = several.get("/readyz")
    assert (said.status_code, said.json()) == (503, {"ok": False, "not_ready": ["news"]})
    assert several.get("/models/rows/readyz").status_code == 200
    assert several.get("/livez").status_code == 200


def test_several_models_are_found_without_a_slash_and_by_their_pages(model: Path, tmp_path: Path, serving: Any) -> None:
    other = Path(shutil.copytree(model, tmp_path / "other"))
    with serving({one.name: LivingTagger(Tagger.open(one)) for one in (model, other)}) as client:
        for path, place in {
            "/models/other": "/models/other/", "/docs": "/", "/openapi.json": "/", "/ui": "/", "/ui/labels": "/",
        }.items():  # fmt: skip
            said = client.get(path, follow_redirects=False)
            assert (said.status_code, said.headers.get("location")) == (303, place), path
        assert client.get("/models/other").json()["service"] == "streamlabel"
        said = client.get("/models/other/nope", headers={"accept": "text/html"})
        assert (said.status_code, 'href="/models/other/ui/labels"' in said.text) == (404, True)
        assert 'href="/ui/static/pages.css' in said.text
        assert client.get("/ui/login").status_code == 200


def test_a_pool_that_does_not_fit_into_what_is_remembered_is_refused(model: Path, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from streamlabel.cli.serve import serve

    pool = tmp_path / "pool.txt"
    pool.write_text("".join(f"text {number}\n" for number in range(101)))
    said = CliRunner().invoke(serve, [str(model), "--pool", str(pool), "--remember", "100"])
    assert said.exit_code == 2
    assert "the pool has 101 texts, and --remember keeps 100" in said.output
