"""What `import streamlabel` promises, and what it must not load."""

from __future__ import annotations

import subprocess
import sys

import streamlabel


def test_all_is_sorted_and_true():
    assert list(streamlabel.__all__) == sorted(streamlabel.__all__)
    for name in streamlabel.__all__:
        assert getattr(streamlabel, name) is not None


def loaded(statement: str) -> set[str]:
    script = f"{statement}; import sys; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600)
    return {name.partition(".")[0] for name in found.stdout.split()}


def test_the_core_loads_no_optional_package():
    """Beyond what scikit-learn loads by itself (its newest releases load rich)."""
    ours = loaded("import streamlabel; streamlabel.StreamingLabelClassifier") - loaded("import sklearn.linear_model")
    assert "streamlabel" in ours
    assert not ours & {"pandas", "pyarrow", "torch", "dask", "matplotlib", "rich", "click"}
