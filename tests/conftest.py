"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest


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
