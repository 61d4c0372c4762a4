"""A small tagger on disk, a service over a copy of it, and a client that needs no port."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamlabel import Tagger
from streamlabel.serve.access import Gate, names_of
from streamlabel.serve.live_tagger import LivingTagger
from tagged_texts import tagged_texts


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tagged_texts(200, 60)
    path = tmp_path_factory.mktemp("serve") / "model"
    Tagger().fit(data.texts, data.tags).save(path)
    return path


@pytest.fixture
def model(made_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made_once, tmp_path / "model"))


@pytest.fixture
def living(model: Path) -> LivingTagger:
    return LivingTagger(Tagger.open(model), actor="web")


@pytest.fixture
def loopback() -> Gate:
    return Gate(names_of("127.0.0.1", "127.0.0.1"))


@pytest.fixture
def client(living: LivingTagger, loopback: Gate) -> Iterator[Any]:
    pytest.importorskip("httpx2", reason="the group dev is not installed")
    testclient = pytest.importorskip("starlette.testclient", reason="the extra serve is not installed")
    from streamlabel.serve.app import create_app

    with testclient.TestClient(
        create_app(living, loopback), base_url="http://127.0.0.1:8000", raise_server_exceptions=False
    ) as found:
        yield found
