"""``import streamlabel`` is cheap, and its classes cost little more than scikit-learn's own linear models."""

from __future__ import annotations

import subprocess
import sys


def seconds(statement: str, rounds: int = 2) -> float:
    """Seconds of the processor that a fresh interpreter takes, the least of some rounds."""
    code = f"import time\n{statement}\nprint(time.process_time())"
    return min(
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(rounds)
    )


def test_importing_takes_less_than_one_and_a_half_times_scikit_learn() -> None:
    """The package is lazy, so its classes are measured too, with some slack for a busy machine."""
    reference = seconds("import sklearn.linear_model")
    assert seconds("import streamlabel") < 0.5 * reference
    assert seconds("from streamlabel import ModelStore, StreamingLabelClassifier, Tagger") < 1.5 * reference + 0.3
