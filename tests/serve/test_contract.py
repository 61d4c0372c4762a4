"""The service against its own document: schemathesis makes requests, right and wrong, and checks every answer."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from processes import started
from streamlabel import ModelStore, StreamingLabelClassifier, Tagger
from tagged_texts import tagged_texts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("schemathesis") is None, reason="the group dev is not installed"),
]
LEFT_OUT = "positive_data_acceptance"  # an unknown label, and texts that nothing is learned from, fit the document, too
N_EXAMPLES = 12


def check(model: Path, secrets: dict[str, str], folder: Path, *options: str) -> None:
    serve = [sys.executable, "-m", "streamlabel", "serve", str(model), "--port", "0", "--tokens", secrets["file"]]
    with started([*serve, *options], text=True) as process:
        url = process.stdout.readline().split()[0]
        command = [
            sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--checks", "all",
            "--exclude-checks", LEFT_OUT, "--max-examples", str(N_EXAMPLES), "--seed", "1", "--continue-on-failure",
            "--header", f"Authorization: Bearer {secrets['admin']}", "--no-color", "--generation-database", "none",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-8000:]
    (n_cases,) = re.findall(r"(\d+) generated", done.stdout)
    assert int(n_cases) > 500
    assert ModelStore.doctor(model) == []


def test_a_service_of_texts_keeps_its_document(model: Path, secrets: dict[str, str], tmp_path: Path) -> None:
    data = tagged_texts(200, 60)
    (tmp_path / "pool.txt").write_text("\n".join(data.unseen), encoding="utf-8")
    with Tagger.open(model, "a") as tagger:
        tagger.learn("football", [data.texts[i] for i in data.rows["football"][:5]])
    check(model, secrets, tmp_path, "--pool", str(tmp_path / "pool.txt"))


def test_a_service_of_rows_keeps_its_document(secrets: dict[str, str], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    ModelStore.create(
        tmp_path / "rows", StreamingLabelClassifier().fit(X, (X > 0).astype(int), ["a", "b", "c"])
    ).close()
    check(tmp_path / "rows", secrets, tmp_path)
