"""What the learner chooses does not hang on the machine: threads, BLAS kernels, processor extensions, rounding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("choices.py")
# Kernels that every x86-64 processor of the last ten years runs; elsewhere the variable changes nothing.
KERNELS = ("Prescott", "Nehalem", "Sandybridge")


def no_extensions() -> str:
    """The processor extensions that NumPy found here beyond its baseline, for NPY_DISABLE_CPU_FEATURES."""
    inner = "numpy._core" if find_spec("numpy._core") else "numpy.core"
    core = import_module(f"{inner}._multiarray_umath")
    return " ".join(name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name))


MACHINES: dict[str, tuple[dict[str, str], float]] = {
    "one thread": ({"OPENBLAS_NUM_THREADS": "1"}, 0.0),
    "two threads": ({"OPENBLAS_NUM_THREADS": "2"}, 0.0),
    **{kernel: ({"OPENBLAS_CORETYPE": kernel}, 0.0) for kernel in KERNELS},
    "an old processor": ({"NPY_DISABLE_CPU_FEATURES": no_extensions()}, 0.0),
    "features moved": ({}, 1e-12),
}


def choices_on(machine: str) -> Any:
    environ, moved = MACHINES[machine]
    found = subprocess.run(
        [sys.executable, str(SCRIPT), str(moved)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_the_choice_is_the_same_on_every_machine() -> None:
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(MACHINES, pool.map(choices_on, MACHINES), strict=True))
    expected = found["one thread"]
    assert len(expected) == 6
    assert len({str(choice[:4]) for choice in expected.values()}) > 2  # the problems are not all alike
    for machine, choices in found.items():
        for problem, choice in choices.items():
            assert choice[:-1] == expected[problem][:-1], f"{problem} on {machine}"
            assert choice[-1] == pytest.approx(expected[problem][-1], abs=0.02), f"{problem} on {machine}"
