"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from processes import children, take_default_signals

settings.register_profile("streamlabel", deadline=None)  # nothing depends on how fast the machine is
settings.load_profile("streamlabel")
take_default_signals()


def pytest_collection_finish() -> None:
    """What the tests' modules hold stays for good: without it in their way, collections of garbage take a tenth."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _leaves_no_process() -> Iterator[None]:
    before = children()
    yield
    left = {pid: command for pid, command in children().items() if pid not in before}
    assert not left, f"the test left processes behind: {left}"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real data sets; a test that needs it is skipped, with the reason, where there is none."""
    root = os.environ.get("STREAMLABEL_DATA", "")
    if not root or not Path(root).is_dir():
        pytest.skip("STREAMLABEL_DATA does not name a folder of data sets")
    return Path(root).resolve()
