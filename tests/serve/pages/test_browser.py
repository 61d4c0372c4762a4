"""The pages in a real browser: from an empty demo to a learned label by keys, its correction and its undo.

Needs Debian's package chromium and the Python package playwright. STREAMLABEL_SCREENSHOTS names a folder for pictures.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

import processes
from streamlabel.data.news import HELD_BACK, POOL, make_news_corpus

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
sync_api = pytest.importorskip("playwright.sync_api", reason="the package playwright of the group dev is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium")

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results.md"
LOOKS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
SECONDS = 30_000  # milliseconds until the browser gives up; never reached by what is only slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield found
        found.close()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[str]:
    """The URL of a demo that was started as a person does it; it leaves nothing behind."""
    command = [sys.executable, "-m", "streamlabel", "serve", "--demo", "--port", "0", "--results", str(RESULTS)]
    with processes.started(command, env=os.environ | {"TMPDIR": str(tmp_path)}) as service:
        assert service.stdout is not None
        yield service.stdout.readline().decode().partition(" serves the demo")[0]
        service.terminate()
        assert service.wait(processes.PATIENCE) == 0
        assert service.stderr is not None
        assert (service.stderr.read(), list(tmp_path.iterdir())) == (b"", [])


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("STREAMLABEL_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def watched(browser: Any, url: str, width: int = 1280, scheme: str = "light") -> Iterator[Any]:
    """A page that nothing goes wrong on: no complaint in the console (the policy's, too), no request elsewhere."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(SECONDS)
    page = context.new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    context.on("request", lambda asked: None if asked.url.startswith(f"{url}/") else complaints.append(asked.url))
    yield page
    context.close()
    assert complaints == []


def ask(url: str) -> tuple[int, Any]:
    """The JSON interface's own answer: what the model is, whatever the page says."""
    try:
        with urllib.request.urlopen(url, timeout=processes.PATIENCE) as said:
            return said.status, json.load(said)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def faults(page: Any) -> list[str]:
    """The serious faults that axe-core finds."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run()")["violations"]
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def test_from_an_empty_demo_to_a_label_its_correction_and_its_undo(browser: Any, demo: str, pictures: Path) -> None:
    corpus = make_news_corpus(POOL, random_state=1)
    applies = dict(zip(corpus.texts, corpus.Y[:, [corpus.label_names.index(HELD_BACK)]].toarray()[:, 0], strict=True))
    label, expect = f"{demo}/labels/{quote(HELD_BACK, safe='')}", sync_api.expect
    expect.set_options(timeout=SECONDS)
    scores = ask(f"{demo}/labels")[1]["labels"]
    with watched(browser, demo) as page:
        page.goto(demo)
        assert urlsplit(page.url).path == "/ui/"
        page.get_by_role("link", name="New label").click()
        expect(page.get_by_label("Name", exact=True)).to_be_focused()
        page.keyboard.type(HELD_BACK)
        page.keyboard.press("Tab")
        page.keyboard.type("bird flu in flocks of poultry")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text(HELD_BACK)
        assert ask(label)[1]["n_yes"] == ask(label)[1]["n_no"] == 0
        counts = {True: 0, False: 0}
        for number in range(10):
            text = page.locator("blockquote").inner_text()
            if number == 4:
                page.keyboard.press("s")
                expect(page.locator("blockquote")).not_to_have_text(text)
                text = page.locator("blockquote").inner_text()
            yes = bool(applies[text])
            counts[yes] += 1
            page.keyboard.press("y" if yes else "n")
            expect(page.locator(".tally")).to_contain_text(f"{counts[True]} yes {counts[False]} no")
            card = ask(label)[1]
            assert (card["n_yes"], card["n_no"]) == (counts[True], counts[False])
            expect(page.locator(".interval").first).to_contain_text(
                f"{100 * card['estimate']['precision']['value']:.0f}%"
            )
        expect(page.get_by_role("status").filter(has_text="Ten answers.")).to_contain_text("you can stop here")
        expect(page.locator(".unmoved")).to_contain_text("No old label moved. 102 labels compared with revision 1")
        assert ask(f"{demo}/labels")[1]["labels"][:-1] == scores

        page.get_by_role("link", name="Done").click()
        page.get_by_role("button", name="Correct this: yes").first.click()
        expect(page.locator(".texts.given .said.no")).to_have_count(counts[False] - 1)
        expect(page.get_by_role("status").filter(has_text="Corrected")).to_be_in_viewport()
        assert ask(label)[1]["n_yes"] == counts[True] + 1
        look_at_all(browser, demo, pictures)

        page.get_by_role("link", name="History").click()
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Undo revision 13").click()
        expect(page.locator(".history li").first).to_contain_text("Undone, back to what it was in revision 12")
        assert ask(label)[1]["n_yes"] == counts[True]
        page.once("dialog", lambda dialog: dialog.dismiss())
        page.get_by_role("button", name="Undo revision 12").click()
        assert ask(label)[1]["n_yes"] == counts[True]
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name=re.compile("to revision 1$")).click()
        expect(page.locator("footer")).to_contain_text("102 labels · revision 15")
        assert ask(label)[0] == 404
        assert ask(f"{demo}/labels")[1]["labels"] == scores


def test_errors_are_told_in_place_and_the_slider_is_live(browser: Any, demo: str) -> None:
    expect = sync_api.expect
    expect.set_options(timeout=SECONDS)
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{demo}/ui/new")
    page.get_by_label("Name", exact=True).fill("zzzz qqqq")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("no word of its name is known here")
    assert page.get_by_label("Name", exact=True).input_value() == "zzzz qqqq"
    expect(page.get_by_label("One such text")).to_be_visible()

    page.goto(f"{demo}/ui/labels")
    page.keyboard.press("/")
    page.keyboard.type("health")
    expect(page.locator("tbody tr")).to_have_count(len([one for one in labels(demo) if "health" in one]))
    page.get_by_role("link", name="health", exact=True).click()
    before = page.locator("#at").inner_text()
    page.locator("#threshold").press("End")
    expect(page.locator("#at")).to_contain_text("0 of 1,200")
    assert page.locator("#at").inner_text() != before

    page.route(re.compile("/ui/at"), lambda route: route.abort())  # as if the service had gone
    page.locator("#threshold").press("Home")
    expect(page.get_by_role("alert")).to_contain_text("The service cannot be reached")

    page.unroute(re.compile("/ui/at"))
    for body, told in (('{"error": "too many at once"}', "too many at once"), ("<h1>Bad Gateway</h1>", "(502)")):
        page.route(re.compile("/ui/at"), answering(body))
        page.locator("#threshold").press("ArrowRight")
        expect(page.get_by_role("alert")).to_contain_text(told)
        page.unroute(re.compile("/ui/at"))
    context.close()


def test_the_buttons_are_on_the_screen_of_a_phone_and_a_message_covers_none(browser: Any, demo: str) -> None:
    sync_api.expect.set_options(timeout=SECONDS)
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(f"{demo}/ui/new")
    page.get_by_label("Name", exact=True).fill("bird flu")
    page.keyboard.press("Enter")
    page.locator("blockquote").wait_for()
    page.evaluate("document.querySelector('blockquote').textContent = 'a long text '.repeat(500)")
    for name in ("Yes", "No", "Skip"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert 0 <= box["y"] <= 844 - box["height"], name
    page.evaluate("window.scrollTo(0, 2000)")
    page.get_by_role("button", name="No", exact=True).click()
    sync_api.expect(page.locator(".eyebrow")).to_contain_text("1 answer")
    sync_api.expect(page.locator("#question")).to_be_in_viewport()

    page.goto(f"{demo}/ui/new")
    page.get_by_label("Name", exact=True).fill("bird flu")
    page.keyboard.press("Enter")
    message = page.get_by_role("alert")
    sync_api.expect(message).to_contain_text("there is a label")
    over = message.bounding_box()
    for button in page.locator("#page .button").all():
        box = button.bounding_box()
        assert box["y"] >= over["y"] + over["height"]
    message.get_by_role("link").click()
    sync_api.expect(page.get_by_role("heading", level=1)).to_have_text("bird flu")
    context.close()


def answering(body: str) -> Any:
    """As if a proxy, or the service that has too much to do, answered with an error that is no page."""
    return lambda route: route.fulfill(status=502, body=body)


def labels(url: str) -> list[str]:
    return [one["name"] for one in ask(f"{url}/labels")[1]["labels"]]


def look_at_all(browser: Any, url: str, pictures: Path) -> None:
    """Every page as people see it, wide and narrow, light and dark: no serious fault, nothing wider than the screen."""
    name = quote(HELD_BACK, safe="")
    pages = {
        "try": "", "new": "new", "ask": f"ask?label={name}", "labels": "labels", "none": "labels?q=zzz",
        "label": f"label?name={name}", "fitted": "label?name=health", "history": "history",
        "login": "login", "docs": "../docs", "results": "results",
    }  # fmt: skip
    for width, scheme in LOOKS:
        with watched(browser, url, width, scheme) as page:
            for title, path in pages.items():
                page.goto(f"{url}/ui/{path}")
                if title == "try":
                    page.locator(".offer").first.click()
                    page.locator(".suggestions summary").first.click()
                    page.locator(".words").first.wait_for()
                if title == "history":
                    page.get_by_text("What changed").first.click()
                    page.locator(".history .plain").first.wait_for()
                page.screenshot(path=pictures / f"{title}-{width}-{scheme}.png", full_page=True)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, title
                assert faults(page) == [], (title, width, scheme)
