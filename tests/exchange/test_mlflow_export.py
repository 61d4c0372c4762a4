"""MLflow directories, loaded and run by MLflow in a process of their own."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

from streamlabel.errors import ConflictError, DataError
from streamlabel.exchange.export import export
from streamlabel.tagging.tagger import Tagger

needs_mlflow = pytest.mark.skipif(find_spec("mlflow") is None, reason="the extra mlflow is not installed")

# MLflow takes seconds to import: one process loads and runs both models.
RUN = """
import json, sys
sys.modules["streamlabel"] = None  # it cannot be imported there
import numpy as np, mlflow.pyfunc

def run(folder, rows):
    model = mlflow.pyfunc.load_model(folder)
    scores, best = model.predict(rows, params={"k": 0}), model.predict(rows, params={"k": 2})
    return {"scores": scores.tolist(), "best": best, "usual": len(model.predict(rows)[0])}

cases = json.load(open("cases.json"))
found = {"classifier": run("moved/classifier", np.array(cases["rows"]))}
found["tagger"] = run("moved/tagger", cases["texts"])
found["hashing"] = run("moved/hashing", cases["texts"])
json.dump(found, open("found.json", "w"))
"""


@needs_mlflow
@pytest.mark.filterwarnings(
    "ignore:.min_items. is deprecated:DeprecationWarning"
)  # MLflow 2 to pydantic, at its import
def test_directories_are_loaded_and_run(classifier, rows, tagger, news, tmp_path):
    with warnings.catch_warnings(action="ignore"):  # of early MLflow about itself, with a late pydantic
        importlib.import_module("mlflow.pyfunc")
    texts = [*news.texts[300:310], "nothing of this is known: xyzzy", ""]
    (tmp_path / "moved").mkdir()
    hashing = Tagger("hashing").fit(news.texts[:100], [["a"] if "flu" in text else ["b"] for text in news.texts[:100]])
    for name, model in (("classifier", classifier), ("tagger", tagger), ("hashing", hashing)):
        export(model, tmp_path / name, "mlflow").rename(tmp_path / "moved" / name)
    assert [path.name for path in tmp_path.iterdir()] == ["moved"]
    assert not [p for p in tmp_path.rglob("*") if p.suffix in (".pkl", ".pickle", ".joblib")]
    (tmp_path / "cases.json").write_text(json.dumps({"rows": rows.tolist(), "texts": texts}))
    environment = {**os.environ, "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db"}
    command = [sys.executable, "-W", "ignore", "-c", RUN]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    wanted = (tmp_path / "moved" / "tagger" / "requirements.txt").read_text()
    assert "scikit-learn==" in wanted
    assert "streamlabel" not in wanted
    assert found["classifier"]["usual"] == 5
    np.testing.assert_allclose(found["classifier"]["scores"], classifier.decision_function(rows), atol=1e-12)
    columns, _ = classifier.predict_top_k(rows, 2)
    names = [[classifier.label_names_[j] for j in row] for row in columns]
    assert [[entry["label"] for entry in best] for best in found["classifier"]["best"]] == names
    for name, model in (("tagger", tagger), ("hashing", hashing)):
        ours = model.scores_of(texts, model.label_names_)[0]
        np.testing.assert_allclose(found[name]["scores"], ours, atol=1e-12)
    ours = [
        [{"label": name, "score": pytest.approx(score)} for name, score in best] for best in tagger.suggest(texts, 2)
    ]
    assert found["tagger"]["best"] == ours


def test_what_is_there_is_not_overwritten(classifier, tmp_path):
    (tmp_path / "model").mkdir()
    with pytest.raises(ConflictError, match="is there already"):
        export(classifier, tmp_path / "model", "mlflow")


def test_a_vectoriser_of_ones_own_is_refused(tmp_path):
    def lengths(texts):
        return [[len(text), text.count(" ")] for text in texts]

    tagger = Tagger(lengths).fit(["a", "b c", "d e f", "gg"], [["x"], ["y"], ["y"], ["x"]])
    with pytest.raises(DataError, match="cannot be written without pickle"):
        export(tagger, tmp_path / "tagger", "mlflow")
    assert not list(tmp_path.iterdir())
