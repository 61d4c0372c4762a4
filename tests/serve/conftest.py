"""A small tagger on disk, a service over a copy of it, and a client that needs no port."""

from __future__ import annotations

import importlib
import shutil
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from streamlabel import Tagger
from streamlabel.serve.access import Gate, TokenFile, add_token, names_of
from streamlabel.serve.live_tagger import LivingTagger
from tagged_texts import tagged_texts

NEEDED = ("jinja2", "msgspec", "prometheus_client", "starlette", "uvicorn")
collect_ignore_glob = ["test_*.py"] if any(find_spec(name) is None for name in NEEDED) else []  # the extra serve


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
def testclient() -> Any:
    """Starlette's module; it needs httpx2, in its early releases httpx, and these warn about a late anyio."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return importlib.import_module("starlette.testclient")
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"the extra serve or the group dev is not installed: {error}")


@pytest.fixture
def client(living: LivingTagger, loopback: Gate, testclient: Any) -> Iterator[Any]:
    from streamlabel.serve.app import create_app

    with testclient.TestClient(
        create_app(living, loopback), base_url="http://127.0.0.1:8000", raise_server_exceptions=False
    ) as found:
        yield found


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, str]:
    """A token of each scope in a file, the file's name among them."""
    path = tmp_path / "tokens.json"
    return {"file": str(path)} | {
        scope: add_token(path, f"{scope}er", scope)[0] for scope in ("read", "annotate", "admin")
    }


@pytest.fixture
def guarded(living: LivingTagger, secrets: dict[str, str], testclient: Any) -> Iterator[Any]:
    """A client of a service that asks for tokens."""
    from streamlabel.serve.app import create_app

    gate = Gate(names_of("127.0.0.1", "127.0.0.1"), TokenFile(Path(secrets["file"])))
    with testclient.TestClient(
        create_app(living, gate), base_url="http://127.0.0.1:8000", raise_server_exceptions=False
    ) as found:
        yield found
