"""What `import streamlabel` promises, and what it must not load."""

from __future__ import annotations

import subprocess
import sys

import streamlabel


def test_all_is_sorted_and_true():
    assert list(streamlabel.__all__) == sorted(streamlabel.__all__)
    for name in streamlabel.__all__:
        assert getattr(streamlabel, name) is not None


def test_the_core_loads_no_optional_package():
    script = (
        "import sys, streamlabel; streamlabel.StreamingLabelClassifier;"
        "print(sorted({'pandas', 'pyarrow', 'torch', 'dask', 'matplotlib', 'rich', 'click'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[]"
