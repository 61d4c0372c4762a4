"""What Annif and doccano ask and expect, and, where their Pythons are named, the real packages against a real service.

``STREAMLABEL_ANNIF`` and ``STREAMLABEL_DOCCANO`` are Pythons that have ``annif`` and ``auto-labeling-pipeline``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("msgspec")

from processes import PATIENCE, started
from streamlabel import Tagger
from streamlabel.errors import DataError
from streamlabel.serve.access import Gate
from streamlabel.serve.annif import annif_routes, read_vocabulary
from streamlabel.serve.live_tagger import LivingTagger
from tagged_texts import tagged_texts

DATA = tagged_texts(200, 60)
NAMES = sorted({name for tags in DATA.tags for name in tags})
URI = "http://example.org/s"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
USE_DOCCANO = """
import json, sys
from auto_labeling_pipeline.labels import ClassificationLabels
from auto_labeling_pipeline.mappings import MappingTemplate
from auto_labeling_pipeline.models import RequestModelFactory
from auto_labeling_pipeline.pipeline import pipeline
from auto_labeling_pipeline.postprocessing import PostProcessor

url, text, template = sys.argv[1:]
attributes = {"url": url, "method": "POST", "params": {}, "headers": {}, "body": {"text": "{{ text }}", "k": 100}}
request = RequestModelFactory.create("Custom REST Request", attributes)
print(json.dumps(pipeline(text, request, MappingTemplate(ClassificationLabels, template), PostProcessor({})).dict()))
"""
TEMPLATE = """[{% for one in input.results[0] if one.yes %}{"label": {{ one.label | tojson }}}
{%- if not loop.last %},{% endif %}{% endfor %}]"""


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    """All labels of the model but for the first three."""
    path = tmp_path / "vocabulary.tsv"
    path.write_text(
        "".join(f"<{URI}{at}>\t{name}\n" for at, name in enumerate(NAMES) if at >= 3) + f"<{URI}900>\tnew\n"
    )
    return path


@pytest.fixture
def annif(living: LivingTagger, loopback: Gate, vocabulary: Path, testclient: Any) -> Iterator[Any]:
    from streamlabel.serve.app import create_app

    app = create_app(living, loopback, more=annif_routes(read_vocabulary(vocabulary)))
    with testclient.TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as found:
        yield found


def test_annif_gets_the_best_subjects_of_its_vocabulary(annif: Any, living: LivingTagger) -> None:
    text = DATA.unseen[0]
    body = urlencode({"text": text, "limit": "5", "metadata_title": "x"})
    found = annif.post("/annif/suggest", content=body, headers=FORM).json()["results"]
    row = annif.post("/suggest", json={"texts": [text], "k": 100}).json()["results"][0]
    chances = {one["label"]: one["probability"] for one in row if one["label"] not in NAMES[:3]}
    best = sorted(chances, key=lambda name: -chances[name])[:5]
    assert [(one["uri"], one["label"]) for one in found] == [(f"{URI}{NAMES.index(name)}", name) for name in best]
    assert [one["score"] for one in found] == pytest.approx([chances[name] for name in best])
    assert annif.get("/annif").json()["is_trained"] is True


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ({"limit": "5"}, FORM, 422),
        ({"text": "a", "limit": "0"}, FORM, 422),
        ({"text": "a", "limit": "many"}, FORM, 422),
        ({"text": "a"}, {"Content-Type": "application/json"}, 415),
    ],
)
def test_what_annif_does_not_send_is_refused(annif: Any, body: Any, kind: Any, status: int) -> None:
    assert annif.post("/annif/suggest", content=urlencode(body), headers=kind).status_code == status


def test_a_form_is_taken_here_only_and_nothing_of_it_is_remembered(annif: Any, living: LivingTagger) -> None:
    """Pages of other sites can send forms."""
    living.recent.most = 100
    annif.post("/annif/suggest", content=urlencode({"text": "from a page"}), headers=FORM)
    assert len(living.recent) == 0
    assert annif.post("/suggest", content=urlencode({"text": "from a page"}), headers=FORM).status_code == 415


def test_vocabularies_are_tsv_or_csv(tmp_path: Path) -> None:
    table = tmp_path / "v.csv"
    table.write_text(f"uri,label_en,label_fi\n{URI}1,bird flu,lintuinfluenssa\n{URI}2,hens,\n")
    assert read_vocabulary(table) == {
        f"{URI}1": (f"{URI}1", "bird flu"), "bird flu": (f"{URI}1", "bird flu"),
        "lintuinfluenssa": (f"{URI}1", "bird flu"), f"{URI}2": (f"{URI}2", "hens"), "hens": (f"{URI}2", "hens"),
    }  # fmt: skip
    table.write_text("name\nbird flu\n")
    with pytest.raises(DataError, match="line 1: needs the columns uri and label_en"):
        read_vocabulary(table)
    (tmp_path / "v.tsv").write_text("\n")
    with pytest.raises(DataError, match="has no subjects"):
        read_vocabulary(tmp_path / "v.tsv")


def test_one_text_is_answered_as_a_list_of_one(annif: Any) -> None:
    """doccano fills a text into a body, and cannot make a list of it."""
    one, several = ({"text": DATA.unseen[0]}, {"texts": [DATA.unseen[0]]})
    assert annif.post("/suggest", json=one).json() == annif.post("/suggest", json=several).json()
    both = annif.post("/suggest", json=one | several)
    assert (both.status_code, "texts" in both.json()["error"]) == (422, True)


def use(python: str | None, code: str, *words: str) -> Any:
    if not python:
        pytest.skip("no Python with this package is named")
    done = subprocess.run([python, "-c", code, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def url(model: Path, vocabulary: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "streamlabel", "serve", str(model), "--port", "0", "--annif", str(vocabulary)]
    with started(command, text=True) as process:
        yield process.stdout.readline().split()[0]


def test_the_real_annif(url: str, model: Path, vocabulary: Path, tmp_path: Path) -> None:
    """A project with the back end http; suggestions outside of the vocabulary would be an error there."""
    python = os.environ.get("STREAMLABEL_ANNIF")
    if not python:
        pytest.skip("no Python with this package is named")
    (tmp_path / "projects.cfg").write_text(
        f"[ours]\nname=ours\nlanguage=en\nbackend=http\nvocab=news\nendpoint={url}/annif/suggest\nlimit=5\n"
    )

    def annif(*words: str, **more: Any) -> str:
        command = [str(Path(python).with_name("annif")), *words]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False, **more
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    annif("load-vocab", "news", str(vocabulary), "--language", "en")
    lines = [line.split("\t") for line in annif("suggest", "ours", input=DATA.unseen[0]).splitlines()]
    tagger = Tagger.open(model)
    chances = LivingTagger(tagger).view().chances([DATA.unseen[0]], NAMES[3:])[0][0]
    best = sorted(zip(NAMES[3:], chances, strict=True), key=lambda one: -one[1])[:5]
    assert [(label, float(score)) for _, label, score in lines] == [
        (name, pytest.approx(chance, abs=1e-3)) for name, chance in best
    ]


def test_the_real_doccano(url: str, model: Path) -> None:
    words = (f"{url}/suggest", DATA.unseen[0], TEMPLATE)
    found = use(os.environ.get("STREAMLABEL_DOCCANO"), USE_DOCCANO, *words)
    ours = Tagger.open(model).predict([DATA.unseen[0]])[0]
    assert sorted(one["label"] for one in found) == sorted(ours)
