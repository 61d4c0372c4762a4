"""Each page and its JSON twin against the model that it shows; hostile names, strangers' requests, empty states."""

from __future__ import annotations

import html
import re
import shutil
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import expit

from streamlabel import ModelStore, StreamingLabelClassifier, Tagger
from streamlabel.cli import main
from streamlabel.cli.serve import pool_texts
from streamlabel.data.text import TextVectorizer
from streamlabel.errors import DataError, NotFoundError
from streamlabel.serve.access import Gate, TokenFile
from streamlabel.serve.live_tagger import LivingTagger, RecentTexts, open_reader
from tagged_texts import tagged_texts

pytest.importorskip("jinja2", reason="the extra serve is not installed")

from streamlabel.serve import live_tagger, pages
from streamlabel.serve.page_data import PAGES, more_answers
from streamlabel.serve.pages import Page

DATA = tagged_texts(200, 160)
YES = [DATA.texts[i] for i in DATA.rows["football"][:5]]
NO = [DATA.texts[i] for i in range(12) if i not in DATA.rows["football"]]
HTMX = {"HX-Request": "true"}
JSON = {"Accept": "application/json"}
HTMX_SHA256 = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
AXE_SHA256 = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"
HOSTILE = [
    "it's \"quoted\"", "<script>alert(1)</script>", "a/b//c/", "50%2Foff?&#", "..", ".", "עברית", "مرحبا", "🦆 birds",
    "x" * 200, "{{ 7 * 7 }}", "a+b c", "\\", "ask?label=x",
]  # fmt: skip


@pytest.fixture
def open_pages(model: Path, loopback: Gate, testclient: Any) -> Iterator[Callable[..., Any]]:
    """A function that makes a client of a service with these texts as its pool."""
    from streamlabel.serve.app import create_app

    made: list[Any] = []

    def make(texts: list[str] = DATA.unseen, *, read_only: bool = False, remember: int = 0, results: Any = None) -> Any:
        recent = RecentTexts(texts, remember)
        living = LivingTagger(Tagger.open(model), actor="web", read_only=read_only, recent=recent)
        app = create_app(living, loopback, results=results)
        client = testclient.TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
        made.append(client.__enter__())
        return made[-1]

    yield make
    for client in made:
        client.__exit__(None, None, None)


@pytest.fixture
def web(open_pages: Callable[..., Any]) -> Any:
    return open_pages()


def learned(client: Any, name: str = "football") -> Any:
    assert client.post("/labels", json={"name": name, "yes": YES, "no": NO}).status_code == 201
    return client.get(f"/ui/ask?label={quote(name, safe='')}", headers=JSON).json()


def visible(page: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)))


def test_vendored_scripts_are_as_they_were_published() -> None:
    static = files("streamlabel.serve") / "web" / "static"
    assert sha256((static / "htmx.min.js").read_bytes()).hexdigest() == HTMX_SHA256
    assert "Zero-Clause BSD" in (static / "htmx.LICENSE.txt").read_text(encoding="utf-8")
    axe = Path(__file__).parent / "axe"
    assert sha256((axe / "axe.min.js").read_bytes()).hexdigest() == AXE_SHA256
    assert "Mozilla Public License" in (axe / "LICENSE").read_text(encoding="utf-8")


def test_a_browser_is_sent_to_the_pages_and_a_program_is_not(web: Any) -> None:
    said = web.get("/", headers={"Accept": "text/html,*/*"}, follow_redirects=False)
    assert (said.status_code, said.headers["location"]) == (303, "/ui/")
    assert web.get("/").json()["service"] == "streamlabel"
    assert web.get("/ui", follow_redirects=False).headers["location"] == "/ui/"
    assert (web.put("/ui/labels").status_code, web.get("/ui/nothing").status_code) == (405, 404)
    assert [one["path"] for one in web.get("/").json()["routes"] if one["path"].startswith("/ui")] == ["/ui/"]


def test_every_page_has_a_strict_policy_and_nothing_inline(web: Any) -> None:
    learned(web)
    for path in (
        "",
        "new",
        "labels",
        "labels?q=zzz",
        "history",
        "ask?label=football",
        "label?name=football",
        "nothing",
        "../docs",
    ):
        said = web.get(f"/ui/{path}")
        assert said.headers.get_list("content-security-policy") == [pages.POLICY]
        assert said.headers.get_list("cache-control") == ["no-store"]
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|https?://|<script(?! defer src)", said.text), path
        for address in re.findall(r'(?:href|src)="([^"]+)"', said.text):
            assert address.startswith(("/ui/", "#", "/docs", "/openapi.json")), address
            assert web.get(html.unescape(address)).status_code == 200, address


@pytest.mark.parametrize("page", [page for page in PAGES if page.method == "GET"], ids=lambda page: page.path)
def test_every_page_has_a_twin(web: Any, page: Page) -> None:
    learned(web)
    fields = {"label": "football", "name": "football", "revision": "2", "threshold": "0.1"}
    address = f"/ui{page.path}"
    assert web.get(address, params=fields).headers["content-type"] == "text/html; charset=utf-8"
    said = web.get(address, params=fields, headers=JSON)
    assert (said.status_code, said.headers["content-type"], said.json()["revision"]) == (200, "application/json", 2)


def test_links_begin_where_the_service_is_mounted(open_pages: Callable[..., Any], testclient: Any) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    inner = open_pages().app
    client = testclient.TestClient(
        Starlette(routes=[Mount("/models/news", app=inner)]), base_url="http://127.0.0.1:8000"
    )
    page = client.get("/models/news/ui/labels").text
    found = [html.unescape(address) for address in re.findall(r'(?:href|src|hx-get|hx-post|action)="([^"]+)"', page)]
    assert all(address.startswith(("/models/news/ui/", "/models/news/docs", "#")) for address in found)
    assert client.get(next(address for address in found if "/label?" in address)).status_code == 200
    said = client.get("/models/news/", headers={"Accept": "text/html"}, follow_redirects=False)
    assert said.headers["location"] == "/models/news/ui/"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_work_in_every_link(web: Any, name: str) -> None:
    said = web.post("/ui/new", data={"name": name, "yes": YES[0]}, headers=HTMX)
    assert said.status_code == 200, visible(said.text)
    assert name in visible(said.text)
    assert "<script>alert" not in said.text
    assert web.get(said.headers["hx-push-url"]).status_code == 200
    rows = re.findall(r'href="(/ui/label\?name=[^"]+)"', web.get("/ui/labels?sort=new").text)
    card = web.get(html.unescape(rows[0]))
    assert name in re.sub(r"\s+", " ", html.unescape(re.search(r"<h1[^>]*>(.*?)</h1>", card.text, re.S)[1]))
    (ask,) = re.findall(r'class="button primary" href="(/ui/ask[^"]+)"', card.text)
    question = web.get(html.unescape(ask), headers=JSON).json()
    assert question["label"] == name
    said = web.post(
        "/ui/ask", data={"label": name, "answer": "no", "digest": question["question"]["digest"]}, headers=HTMX
    )
    assert said.status_code == 200, visible(said.text)
    assert web.get("/ui/history").status_code == web.get(f"/ui/labels?q={quote(name, safe='')}").status_code == 200


def test_questions_are_those_of_the_model_and_answers_are_learned(web: Any, model: Path) -> None:
    data = learned(web)
    (expected,) = Tagger.open(model).next("football", DATA.unseen, 1)
    question = data["question"]
    assert (question["text"], question["score"], question["why"]) == (expected.text, expected.score, expected.why)
    said = web.post("/ui/ask", data={"label": "football", "answer": "yes", "digest": question["digest"]}, headers=HTMX)
    assert said.status_code == 200
    tagger = Tagger.open(model)
    assert (tagger.examples("football").answers.sum(), tagger.examples("football").asked.sum()) == (len(YES) + 1, 1)
    estimate = tagger.estimate("football")
    assert f"{100 * estimate.precision[0]:.0f}%" in visible(said.text)
    assert expected.text not in visible(said.text).split("Highest in the pool")[0]


def test_the_last_answer_is_undone_where_it_was_given(web: Any, model: Path) -> None:
    data = learned(web)
    assert data["undo"] is None  # the label itself came last
    form = {"label": "football", "answer": "no", "digest": data["question"]["digest"]}
    after = web.post("/ui/ask", data=form, headers=HTMX | JSON).json()
    assert after["undo"] == after["revision"] == 3
    again = web.post("/ui/undo", data={"revision": "3", "label": "football"}, headers=HTMX | JSON).json()
    assert (again["question"], again["n_no"], again["undo"]) == (data["question"], len(NO), None)
    assert len(Tagger.open(model).examples("football").answers) == len(YES) + len(NO)
    assert [one["revision"] for one in after["curve"]] == [2, 3]
    assert [one["revision"] for one in again["curve"]] == [2]
    web.post("/ui/rollback", data={"revision": "3"}, headers=HTMX)
    card = web.get("/ui/label?name=football", headers=JSON).json()
    assert [one["revision"] for one in card["curve"]] == [2, 3], "brought back, and drawn again"


def test_ten_answers_end_with_a_sentence(web: Any) -> None:
    assert web.post("/labels", json={"name": "football", "yes": YES[:1]}).status_code == 201
    data = web.get("/ui/ask?label=football", headers=JSON).json()
    for n in range(2, 12):
        form = {"label": "football", "answer": "no", "digest": data["question"]["digest"]}
        assert data["question"]["text"] in [one["text"] for one in data["ranking"]] or n > 4
        said = visible(web.post("/ui/ask", data=form, headers=HTMX).text)
        asked, data = data["question"]["text"], web.get("/ui/ask?label=football", headers=JSON).json()
        assert asked not in [one["text"] for one in data["ranking"]]
        assert (f"{n} answers of 10" in said, "Ten answers." in said) == (n < 10, n == 10)
        precision = data["estimate"]["precision"]
        if n == 10 and precision:
            assert f"about {100 * precision['value']:.0f}% are right" in said.replace(".0%", "%")


def test_history_says_which_answers_came_and_of_which_text(web: Any, open_pages: Any) -> None:
    data = learned(web)
    form = {"label": "football", "answer": "yes", "digest": data["question"]["digest"]}
    web.post("/ui/ask", data=form, headers=HTMX)
    web.post("/ui/threshold", data={"name": "football", "threshold": "0.25"}, headers=HTMX)
    said = visible(web.get("/ui/history").text)
    assert f"Learned further football : yes for “{data['question']['text'][:30]}" in said
    assert "Threshold of football set to 0.2500" in said
    found = open_pages([]).get("/ui/history", headers=JSON).json()["revisions"][1]
    assert found["answers"] == [{"yes": True, "text": None}], "another service has no texts"
    assert "Learned further football : 1 answer, yes" in visible(open_pages([]).get("/ui/history").text)


def test_a_name_that_differs_by_case_or_is_known_in_part_is_told(web: Any) -> None:
    learned(web)
    word = YES[0].split()[0]
    said = visible(web.post("/ui/new", data={"name": "FootBall", "yes": YES[0]}, headers=HTMX).text)
    assert "There is a label 'football', too, which differs only by case; History can undo this one." in said
    said = visible(web.post("/ui/new", data={"name": "soccer", "yes": f"zebrafoo {YES[0]}"}, headers=HTMX).text)
    assert ("Not known to the model, and ignored until it is fitted again: " in said, "zebrafoo" in said) == (
        True,
        True,
    )
    assert "differs only by case" not in said, word
    assert "if its words occur in the texts; otherwise paste one" in visible(web.get("/ui/new").text)


def test_one_precision_stands_on_the_card_until_the_slider_moves(web: Any) -> None:
    learned(web)
    page = visible(web.get("/ui/label?name=football").text)
    assert len(re.findall(r"Precision (?:of its yes|\d)", page)) == 1
    assert "Precision" in visible(web.get("/ui/at?name=football&threshold=0.2").text)
    assert "it says " in page.split("Texts next to its threshold")[1]


def test_a_skipped_question_is_not_asked_again_and_nothing_is_learned(web: Any, model: Path) -> None:
    data, seen = learned(web), []
    revision = ModelStore.open(model).revision
    for _ in range(4):
        seen.append(data["question"]["digest"])
        form = {"label": "football", "answer": "skip", "digest": seen[-1], "skipped": ",".join(data["skipped"])}
        data = web.post("/ui/ask", data=form, headers=HTMX | JSON).json()
    assert len({*seen, data["question"]["digest"]}) == 5
    assert ModelStore.open(model).revision == revision


def test_the_page_says_which_other_labels_moved(web: Any, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_labels = len(ModelStore.open(model).label_names)
    assert learned(web)["others"] == {"since": 1, "n_compared": n_labels, "changed": []}
    other = ModelStore.open(model).label_names[0]
    with ModelStore.open(model, "a") as store:
        store.set_threshold(other, 0.123)
    monkeypatch.setattr(live_tagger, "LOOK_EVERY", 0.0)
    assert web.get("/ui/ask?label=football", headers=JSON).json()["others"]["changed"] == [other]
    assert f"1 other label changed since revision 1, by somebody else: {other}" in visible(
        web.get("/ui/ask?label=football").text
    )


def test_suggestions_and_reasons_are_those_of_the_interface(web: Any) -> None:
    text = DATA.unseen[0]
    found = web.post("/ui/", data={"text": text}, headers=HTMX | JSON).json()["results"]
    said = web.post("/suggest", json={"texts": [text], "k": 8}).json()["results"][0]
    assert {(one["label"], one["score"], one["probability"], one["yes"]) for one in found} == {
        (one["label"], one["score"], one["probability"], one["yes"]) for one in said
    }
    assert [one["probability"] for one in found] == sorted((one["probability"] for one in found), reverse=True)
    why = web.post("/ui/why", data={"text": text, "label": found[0]["label"]}, headers=HTMX | JSON).json()
    expected = web.post("/explain", json={"text": text, "label": found[0]["label"], "words": 6}).json()
    assert why == expected


def test_labels_are_searched_sorted_and_paged(web: Any, model: Path) -> None:
    learned(web)
    names = [record.name for record in ModelStore.open(model).labels()]
    found = web.get("/ui/labels?sort=name", headers=JSON).json()
    assert [one["name"] for one in found["labels"]] == sorted(names, key=str.casefold)[:50]
    assert web.get("/ui/labels?sort=new", headers=JSON).json()["labels"][0]["name"] == "football"
    assert web.get("/ui/labels?sort=precision", headers=JSON).json()["labels"][0]["name"] == "football"
    (one,) = web.get("/ui/labels?q=FOOT", headers=JSON).json()["labels"]
    estimate, tagger = Tagger.open(model).estimate("football"), Tagger.open(model)
    assert one["estimate"]["precision"]["value"] == pytest.approx(estimate.precision[0], abs=1e-4)
    assert one["rate_then"] == estimate.fires
    assert one["rate_now"] == pytest.approx(np.mean(["football" in said for said in tagger.predict(DATA.unseen)]))
    assert web.get("/ui/labels?sort=nonsense").status_code == 422
    assert web.get("/ui/labels?page=99999", headers=JSON).json()["page"] == found["n_pages"]


@pytest.mark.slow
def test_a_page_of_many_labels_takes_less_than_a_second(tmp_path: Path, loopback: Gate, testclient: Any) -> None:
    """Of 50,000, whatever the order; counted in the time of the processor, as others may be at work."""
    from streamlabel.serve.app import create_app

    words = TextVectorizer(max_features=300).fit(DATA.texts)
    coef = np.random.default_rng(0).normal(0.0, 0.1, (50_000, 300)).astype(np.float32)
    names = [f"label {number:05d}" for number in range(len(coef))]
    classifier = StreamingLabelClassifier.from_coef(coef, np.full(len(coef), -0.3), label_names=names)
    Tagger.from_parts(words, classifier).save(tmp_path / "many")
    living = LivingTagger(Tagger.open(tmp_path / "many"), recent=RecentTexts(DATA.unseen))
    client = testclient.TestClient(create_app(living, loopback), base_url="http://127.0.0.1:8000")
    for query in ("", "q=123&sort=name", "sort=precision", "sort=answers&page=700"):
        begin = time.process_time()
        assert len(client.get(f"/ui/labels?{query}", headers=JSON).json()["labels"]) == 50
        assert time.process_time() - begin < 1.0


def test_the_slider_tells_what_the_probabilities_say(web: Any, model: Path) -> None:
    learned(web)
    tagger = Tagger.open(model)
    scores = np.array([dict(row)["football"] for row in tagger.suggest(DATA.unseen, k=1000)])
    record = next(one for one in tagger.store.labels() if one.name == "football")
    chances, value = expit(record.slope * scores + record.shift), float(np.quantile(scores, 0.8))
    at = web.get(f"/ui/at?name=football&threshold={value!r}", headers=JSON).json()["at"]
    assert at["n_fires"] == (scores > value).sum()
    assert at["precision"] == pytest.approx(chances[scores > value].mean())
    assert at["recall"] == pytest.approx(chances[scores > value].sum() / chances.sum())
    said = web.post("/ui/threshold", data={"name": "football", "threshold": repr(value)}, headers=HTMX)
    assert said.status_code == 200
    assert {one.name: one.threshold for one in ModelStore.open(model).labels()}["football"] == value
    for wrong in ("nan", "inf", "x", ""):
        assert web.get(f"/ui/at?name=football&threshold={wrong}").status_code == 422


def test_a_moved_threshold_is_not_shown_with_the_estimate_of_the_learned_one(
    web: Any, model: Path, open_pages: Any
) -> None:
    learned(web)
    tagger = Tagger.open(model)
    estimate, before = tagger.estimate("football"), web.get("/labels/football").json()
    stated = f"{100 * estimate.precision[1]:.0f}% to {100 * estimate.precision[2]:.0f}%"
    assert (before["threshold_moved"], stated in visible(web.get("/ui/label?name=football").text)) == (False, True)
    scores = np.array([dict(row)["football"] for row in tagger.suggest(DATA.unseen, k=1000)])
    value = float(np.quantile(scores, 0.99))
    said = visible(web.post("/ui/threshold", data={"name": "football", "threshold": repr(value)}, headers=HTMX).text)
    assert f"The threshold is set: yes is a score above {value:.3f} now." in said
    at = web.get("/ui/label?name=football", headers=JSON).json()["at"]
    good = said.split("How good it is")[1].split("What it was learned from")[0]
    assert f"Precision {100 * at['precision']:.0f}%" in good
    assert ("You moved the threshold; expected on the pool" in good, stated in good) == (True, False)
    without = visible(open_pages([]).get("/ui/label?name=football").text).split("How good it is")[1]
    assert ("the estimate of the one that it was learned with" in without, stated in without) == (True, True)
    assert web.get("/labels/football").json()["threshold_moved"]
    back = web.patch("/labels/football", json={"threshold": "auto"}).json()
    assert (back["threshold"], back["threshold_moved"]) == (before["threshold"], False)
    assert web.patch("/labels/football", json={"threshold": value}).json()["threshold_moved"]
    web.post("/labels/football/answers", json={"text": YES[0], "yes": True})
    assert not web.get("/labels/football").json()["threshold_moved"]


def test_a_correction_counts_and_the_card_shows_what_it_can(web: Any, model: Path, open_pages: Any) -> None:
    learned(web)
    card = web.get("/ui/label?name=football", headers=JSON).json()
    assert {(one["text"], one["yes"]) for one in card["answers"]} == {(t, True) for t in YES} | {(t, False) for t in NO}
    digest = next(one["digest"] for one in card["answers"] if one["text"] == YES[0])
    said = web.post("/ui/correct", data={"name": "football", "digest": digest, "answer": "no"}, headers=HTMX)
    assert (said.status_code, "Corrected: that text is a no now" in visible(said.text)) == (200, True)
    known = Tagger.open(model).examples("football")
    assert (known.answers.sum(), len(known.answers), known.asked.sum()) == (len(YES) - 1, len(YES) + len(NO), 0)
    later = open_pages().get("/ui/label?name=football", headers=JSON).json()  # a service that has not seen the texts
    assert (later["answers"], later["n_hidden"]) == ([], len(YES) + len(NO))
    assert [one["revision"] for one in later["curve"]] == [2, 3]


def test_undo_is_of_what_the_person_saw(web: Any, model: Path) -> None:
    learned(web)
    data = web.get("/ui/history", headers=JSON).json()
    assert (data["undo"], [one["number"] for one in data["revisions"]]) == (2, [2, 1])
    assert web.get("/ui/changes?revision=2", headers=JSON).json()["changes"][0]["name"] == "football"
    said = web.post("/ui/undo", data={"revision": "1"}, headers=HTMX)
    assert (said.status_code, "the last change is revision 2" in said.text) == (409, True)
    assert web.post("/ui/undo", data={"revision": "2"}, headers=HTMX).status_code == 200
    assert "football" not in ModelStore.open(model).label_names
    assert web.post("/ui/rollback", data={"revision": "2"}, headers=HTMX).status_code == 200
    assert "football" in ModelStore.open(model).label_names
    assert web.post("/ui/rollback", data={"revision": "99"}, headers=HTMX).status_code == 404


def test_nothing_to_undo_is_said(web: Any) -> None:
    assert web.get("/ui/history", headers=JSON).json()["undo"] is None
    said = web.post("/ui/undo", data={"revision": "1"}, headers=HTMX)
    assert (said.status_code, "there is no change to undo" in said.text) == (409, True)


@pytest.mark.parametrize(
    "headers", [{}, HTMX | {"Sec-Fetch-Site": "cross-site"}, HTMX | {"Sec-Fetch-Site": "same-site"}]
)
def test_what_another_site_sends_changes_nothing(web: Any, model: Path, headers: dict[str, str]) -> None:
    for page in PAGES:
        if page.method == "POST":
            said = web.post(
                f"/ui{page.path}", data={"name": "football", "yes": YES[0], "revision": "1"}, headers=headers
            )
            assert said.status_code == 403, page.path
    assert ModelStore.open(model).revision == 1


def test_a_read_only_service_has_no_buttons_and_changes_nothing(open_pages: Callable[..., Any], model: Path) -> None:
    with Tagger.open(model, "a") as tagger:
        tagger.learn("football", YES, NO)
    client = open_pages(read_only=True)
    for path in ("", "labels", "history", "label?name=football", "ask?label=football"):
        page = client.get(f"/ui/{path}").text
        assert not re.search(r'hx-post="/ui/(?!"|why)', page), path
        assert "New label" not in page
    for page in PAGES:
        if page.writes:
            assert client.post(f"/ui{page.path}", data={"name": "x"}, headers=HTMX).status_code == 503


def test_without_a_pool_the_page_says_how_to_have_one(open_pages: Callable[..., Any]) -> None:
    client = open_pages([])
    new = client.get("/ui/new").text
    assert ("--remember" in new, "answer ten questions" in new) == (True, False)
    page = client.post("/ui/new", data={"name": "football", "yes": YES[0]}, headers=HTMX)
    assert ("--pool" in page.text, "of the texts of fit" in page.text, "of the pool." in page.text) == (
        True,
        True,
        False,
    )
    assert client.get("/ui/label?name=football").status_code == 200
    assert client.get("/ui/labels", headers=JSON).json()["labels"][0]["rate_now"] is None


def test_what_is_tried_is_remembered_where_that_was_asked_for(open_pages: Callable[..., Any]) -> None:
    for remember, expected in ((0, 0), (100, 1)):
        client = open_pages([], remember=remember)
        client.post("/ui/", data={"text": YES[0]}, headers=HTMX)
        assert client.get("/").json()["pool"]["n_texts"] == expected


def test_a_name_that_says_nothing_is_refused_in_place(web: Any, model: Path) -> None:
    said = web.post("/ui/new", data={"name": "zzzz qqqq"}, headers=HTMX)
    assert (said.status_code, said.text.count("<div"), 'id="error"' in said.text) == (422, 1, True)
    assert "give at least one example" in visible(said.text)
    for name in ("", "   ", "a\x00b", "x" * 201):
        assert web.post("/ui/new", data={"name": name}, headers=HTMX).status_code == 422
    assert ModelStore.open(model).revision == 1


def test_a_label_of_fit_is_not_asked_about(web: Any, model: Path) -> None:
    name = ModelStore.open(model).label_names[0]
    said = web.get(f"/ui/ask?label={quote(name, safe='')}")
    assert (said.status_code, "was learned by fit, from all of its texts; fit again" in said.text) == (409, True)
    assert "Answer questions" not in web.get(f"/ui/label?name={quote(name, safe='')}").text


def test_five_no_and_no_yes_are_called_a_guess_and_a_pasted_text_helps(web: Any, model: Path) -> None:
    no = [text for at, text in enumerate(DATA.texts[:60]) if at not in DATA.rows["football"]]
    assert web.post("/labels", json={"name": "football", "about": YES[0]}).status_code == 201
    for n in range(1, 6):
        web.post("/labels/football/answers", json={"text": no[n], "yes": False})
        page = web.get("/ui/ask?label=football").text
        assert ("So far a guess" in page, f"Questions about · {n} answer" in visible(page)) == (n == 5, True)
    said = web.post("/ui/ask", data={"label": "football", "answer": "found", "text": YES[0]}, headers=HTMX)
    assert (said.status_code, "So far a guess" in said.text) == (200, False)
    known = Tagger.open(model).examples("football")
    assert (int(known.answers.sum()), int(known.asked.sum())) == (1, 5)
    empty = web.post("/ui/ask", data={"label": "football", "answer": "found", "text": " "}, headers=HTMX)
    assert empty.status_code == 422


def test_a_higher_threshold_is_offered_as_setting_the_precision_would_choose_it(web: Any) -> None:
    data, n_answers = learned(web), 0
    while (raised := data["more"]["raised"]) is None and n_answers < 20:
        assert web.patch("/labels/football", json={"precision": 0.9}).status_code == 422
        form = {"label": "football", "answer": "yes", "digest": data["question"]["digest"]}
        data, n_answers = web.post("/ui/ask", data=form, headers=HTMX | JSON).json(), n_answers + 1
    assert raised["precision"] >= 0.9
    assert web.patch("/labels/football", json={"precision": 0.9}).status_code == 200
    assert web.get("/labels/football").json()["threshold"] == pytest.approx(raised["threshold"])
    web.patch("/labels/football", json={"threshold": raised["threshold"] + 0.1})
    assert web.get("/ui/ask?label=football", headers=JSON).json()["more"]["raised"] is None


def test_texts_that_were_answered_do_not_tell_what_a_threshold_would_do(web: Any) -> None:
    data = learned(web)
    before = web.get("/ui/at?name=football&threshold=0.2", headers=JSON).json()["at"]["n_pool"]
    form = {"label": "football", "answer": "yes", "digest": data["question"]["digest"]}
    assert web.post("/ui/ask", data=form, headers=HTMX).status_code == 200
    assert web.get("/ui/at?name=football&threshold=0.2", headers=JSON).json()["at"]["n_pool"] == before - 1
    assert web.get("/ui/label?name=football", headers=JSON).json()["at"]["n_pool"] == before - 1


def test_the_history_says_what_a_number_is(web: Any) -> None:
    learned(web)
    web.patch("/labels/football", json={"threshold": 0.2174})
    web.post("/undo", json={})
    said = visible(web.get("/ui/history").text)
    assert "Threshold of football set to 0.2174" in said
    assert "Undone, back to what it was in revision 2" in said


def test_missing_answers_are_reckoned_or_not_promised() -> None:
    """Against the interval of as many answers: at n + missing, Wald's lower end is at the precision that is wanted."""

    def said(value: float, low: float, high: float) -> Any:
        return more_answers({"precision": {"value": value, "low": low, "high": high}, "raised": None}, 0.5)

    assert said(0.97, 0.92, 1.0)["n"] == 0
    p, n = 0.95, 30
    half = 1.6448536 * np.sqrt(p * (1 - p) / n)
    total = n + said(p, p - half, p + half)["n"]
    assert 1.6448536 * np.sqrt(p * (1 - p) / total) <= 0.05 < 1.6448536 * np.sqrt(p * (1 - p) / (total - 1.5))
    assert said(0.6, 0.4, 0.8)["n"] is None
    assert more_answers(None, 0.5)["n"] is None


def test_forms_that_are_wrong_are_refused(web: Any) -> None:
    assert web.post("/ui/new", json={"name": "x"}, headers=HTMX).status_code == 415
    assert web.post("/ui/new", data={"name": "x", "about": "y" * (1 << 20)}, headers=HTMX).status_code == 413
    assert web.post("/ui/ask", data={"label": "x"}, headers=HTMX).status_code == 422
    assert web.get("/ui/static/nothing.js").status_code == web.get("/ui/static/..%2Fpages.py").status_code == 404


def test_a_browser_types_the_token_once(guarded: Any, secrets: dict[str, str]) -> None:
    client, token, browser = guarded, secrets["read"], {"Accept": "text/html,*/*"}
    for path in ("/ui/labels?q=x", "/", "/docs"):
        said = client.get(path, headers=browser, follow_redirects=False)
        assert (said.status_code, said.headers["location"]) == (303, "/ui/login")
        assert client.get(path).status_code == 401
    for path in (
        "/labels",
        "/labels/x/ui/login",
        "/labels/ui/static/x",
        "/x/ui/login",
        "/ui/static/x",
        "/models/x/ui/login",
    ):
        assert client.get(path).status_code == 401, path
    said = client.post("/ui/new", data={"name": "x"}, headers=HTMX)
    assert (said.status_code, said.headers["hx-redirect"]) == (401, "/ui/login")
    page = client.get("/ui/login")
    assert (page.status_code, "revision" in visible(page.text)) == (200, False)
    assert client.get(re.search(r'href="([^"]+css[^"]+)"', page.text)[1]).status_code == 200
    said = client.post("/ui/login", data={"token": token})
    assert (said.status_code, "revision" in visible(said.text)) == (403, False)
    for wrong in ("wrong", "", f"{token}; x=y"):
        said = client.post("/ui/login", data={"token": wrong}, headers=HTMX)
        assert (said.status_code, "that is no token" in said.text, client.cookies) == (401, True, {})
    said = client.post("/ui/login", data={"token": token}, headers=HTMX)
    assert (said.status_code, said.headers["hx-redirect"]) == (204, "/")
    assert set(said.headers["set-cookie"].split("; ")[1:]) == {"HttpOnly", "SameSite=Strict", "Path=/"}
    assert client.get("/ui/labels").status_code == client.get("/labels").status_code == 200
    behind = client.post("/ui/login", data={"token": token}, headers=HTMX | {"X-Forwarded-Proto": "https"})
    assert "; Secure" in behind.headers["set-cookie"]


BUTTONS = {
    "read": set(),
    "annotate": {"new", "ask", "correct", "back"},
    "admin": {"new", "ask", "correct", "threshold", "undo", "rollback", "back"},
}


@pytest.mark.parametrize("scope", BUTTONS)
def test_a_token_changes_what_its_scope_allows_in_its_name(
    model: Path, secrets: dict[str, str], testclient: Any, scope: str
) -> None:
    from streamlabel.serve.app import create_app

    with Tagger.open(model, "a") as tagger:
        tagger.learn("football", YES, NO)
    living = LivingTagger(Tagger.open(model), actor="service", recent=RecentTexts([*YES, *DATA.unseen]))
    gate = Gate(frozenset({"127.0.0.1"}), TokenFile(Path(secrets["file"])))
    cookies = {"streamlabel_token": secrets[scope]}
    client = testclient.TestClient(create_app(living, gate), base_url="http://127.0.0.1:8000", cookies=cookies)
    seen = "".join(
        client.get(f"/ui/{path}").text for path in ("new", "ask?label=football", "label?name=football", "history")
    )
    assert set(re.findall(r'hx-post="/ui/(\w+)"', seen)) == BUTTONS[scope] - {"back"}  # there is no answer yet
    assert f"token {scope}er, {scope}" in visible(seen)
    for page in PAGES:
        if page.writes:
            said = client.post(f"/ui{page.path}", data={}, headers=HTMX)
            allowed = page.path.removeprefix("/") in BUTTONS[scope]
            assert (said.status_code == 403) == (not allowed), page.path
            assert allowed or f"scope {page.scope}, and &#39;{scope}er&#39; has {scope}" in said.text
    if scope != "read":
        assert client.post("/ui/new", data={"name": "soccer", "yes": YES[0]}, headers=HTMX).status_code == 200
        assert ModelStore.open(model).history()[0].actor == f"{scope}er"
    if scope == "annotate":
        ask = "/ui/ask?label=football"
        digest = client.get(ask, headers=JSON).json()["question"]["digest"]
        form = {"label": "football", "digest": digest, "answer": "no"}
        mine = client.post("/ui/ask", data=form, headers=HTMX)
        (revision,) = re.findall(r'hx-post="/ui/back".*?name="revision" value="(\d+)"', mine.text)
        form = {"label": "football", "revision": revision}
        assert client.post("/ui/back", data=form, headers=HTMX).status_code == 200
        assert len(Tagger.open(model).examples("football").answers) == len(YES) + len(NO)
        with living.acting("somebody"):
            living.learn("football", [], [NO[0]], more=True)
        assert "/ui/back" not in client.get(ask).text
        form["revision"] = str(ModelStore.open(model).revision)
        assert client.post("/ui/back", data=form, headers=HTMX).status_code == 409


def test_pages_of_several_models_and_of_one_that_takes_rows(
    model: Path, loopback: Gate, tmp_path: Path, testclient: Any
) -> None:
    from streamlabel.serve.app import create_app

    rows = np.random.default_rng(0).normal(size=(40, 3))
    ModelStore.create(tmp_path / "rows", StreamingLabelClassifier().fit(rows, (rows[:, :2] > 0).astype(int))).close()
    living = {name: LivingTagger(open_reader(path)) for name, path in (("news", model), ("rows", tmp_path / "rows"))}
    client = testclient.TestClient(create_app(living, loopback), base_url="http://127.0.0.1:8000")
    assert [one["name"] for one in client.get("/").json()["models"]] == ["news", "rows"]
    page, browser = client.get("/", headers={"Accept": "text/html"}), {"Accept": "text/html"}
    for path in ("/ui", "/ui/"):
        assert client.get(path, headers=browser, follow_redirects=False).headers["location"] == "/"
    assert page.headers["content-security-policy"] == pages.POLICY
    assert re.findall(r'href="(/models/[^"]+)"', page.text) == ["/models/news/ui/", "/models/rows/ui/"]
    for path in ("/models/news/ui/", "/models/news/ui/labels", "/models/rows/ui/", "/models/rows/docs"):
        for address in re.findall(r'(?:href|src)="(/[^"]+)"', client.get(path).text):
            assert client.get(html.unescape(address), headers=browser).status_code == 200, address
    for path in ("/models/rows/ui/", "/models/rows/ui/labels", "/models/rows/"):
        said = visible(client.get(path, headers=browser).text)
        assert "Web pages are for models of texts" in said, path
        assert "New label" not in said
    assert client.post("/models/rows/suggest", json={"rows": [[1.0, 2.0, 3.0]]}).status_code == 200


def test_pages_are_counted_by_their_routes_and_the_label_is_not_told(web: Any) -> None:
    learned(web)
    web.post("/ui/new", data={"name": "soccer", "yes": YES[0]}, headers=HTMX)
    web.get("/ui/label?name=football")
    web.get("/ui/nothing/football")
    counted = web.get("/metrics").text
    for route, status in (("/ui/label", 200), ("/ui/ask", 200), ("/ui/new", 200), ("/ui/{rest:path}", 404)):
        assert re.search(rf'request_seconds_count{{.*route="{re.escape(route)}",status="{status}"}} 1.0', counted), (
            route
        )
    assert re.search(r'learn_seconds_count{model="model"} 2.0', counted)
    assert "football" not in counted


def test_an_unknown_or_a_known_label_is_told_in_the_words_of_who_asks(web: Any, model: Path) -> None:
    for path in ("label?name=nobody", "ask?label=nobody", "at?name=nobody&threshold=1"):
        said = web.get(f"/ui/{path}")
        assert (said.status_code, "the page Labels has all" in said.text, "GET /" in said.text) == (404, True, False)
    assert "GET /labels lists all" in web.get("/labels/nobody").json()["error"]
    learned(web)
    said = web.post("/ui/new", data={"name": "football"}, headers=HTMX)
    assert (said.status_code, "DELETE" in said.text) == (409, False)
    said = web.get(f"/ui/label?name={'x' * 200}").text
    assert (f"{'x' * 40}…" in said, "x" * 50 in said) == (True, False)
    fitted = ModelStore.open(model).label_names[0]
    for name, kept in (("football", True), (fitted, False)):
        said = web.post("/ui/new", data={"name": name}, headers=HTMX)
        assert ("or answer questions about it" in said.text) == kept
        (address,) = re.findall(r'href="([^"]+)"', said.text)
        assert f'<h1 dir="auto">{name}</h1>' in web.get(html.unescape(address)).text


def test_a_pool_may_be_a_folder_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.jsonl").write_text('{"text": "third"}\n')
    (tmp_path / "a.txt").write_text("first\nsecond\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    assert pool_texts(str(tmp_path)) == ["first", "second", "third"]
    assert "override" not in capsys.readouterr().err  # serve has no option for that
    shutil.rmtree(tmp_path / "b")
    (tmp_path / "a.txt").unlink()
    with pytest.raises(DataError, match="a folder without texts"):
        pool_texts(str(tmp_path))


def test_a_model_or_the_demo_is_served(tmp_path: Path) -> None:
    for arguments in ([], ["--demo", str(tmp_path)]):
        said = CliRunner().invoke(main, ["serve", *arguments], prog_name="streamlabel")
        assert (said.exit_code, "--demo" in said.output) == (2, True)


def test_a_page_of_experiments_is_shown_with_its_pictures_and_nothing_else(open_pages: Any, tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(b"picture")
    (tmp_path / "secret.png").write_bytes(b"not linked")
    page = tmp_path / "results.md"
    page.write_text(
        "# What came out\n\n|set|AUC|\n|---|---:|\n|news|1.5|\n\n![a curve](pictures/a.png) ![gone](pictures/b.png)\n\n"
        "[a file](other.md), [elsewhere](https://example.org/) <script>alert(1)</script> [bad](javascript:alert(1))\n"
    )
    client = open_pages(results=pages.ResultsPage(page))
    found = client.get("/ui/results", headers={"Accept": "text/html"})
    assert found.status_code == 200
    assert all(one in found.text for one in ("<h1>What came out</h1>", '<td class="number">1.5</td>', ">Results</a>"))
    assert 'src="results/a.png"' in found.text
    assert "a file" in found.text
    assert 'href="https://example.org/"' in found.text
    assert not any(one in found.text for one in ("other.md", "<script>alert", 'href="javascript', "style="))
    assert client.get("/ui/results/a.png").content == b"picture"
    assert [client.get(f"/ui/results/{one}").status_code for one in ("b.png", "secret.png", "..%2Fsecret.png")] == [
        404
    ] * 3
    assert client.get("/ui/results", headers=JSON).json()["markdown"] == page.read_text()
    plain = open_pages()
    assert plain.get("/ui/results").status_code == 404
    assert "Results</a>" not in plain.get("/ui/", headers={"Accept": "text/html"}).text


def test_a_page_of_experiments_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="reproduce report"):
        pages.ResultsPage(tmp_path / "none.md")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="no page in Markdown"):
        pages.ResultsPage(tmp_path / "bad.md")
