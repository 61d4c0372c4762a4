"""``import streamlabel`` is cheap, and its classes load little more than scikit-learn's own linear models do."""

from __future__ import annotations

import subprocess
import sys


def loaded(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(found.stdout.split())


def test_importing_the_package_loads_no_library() -> None:
    heavy = {"click", "joblib", "numpy", "rich", "scipy", "sklearn", "sqlite3"}
    assert not heavy & loaded("import streamlabel")


def test_its_classes_load_little_more_than_scikit_learn() -> None:
    reference = loaded("import sklearn.linear_model")
    found = loaded("from streamlabel import ModelStore, StreamingLabelClassifier, Tagger")
    others = {name for name in found - reference if not name.startswith("streamlabel")}
    assert len(others) < 0.2 * len(reference), sorted(others)
    assert len(found) < 1.5 * len(reference)
