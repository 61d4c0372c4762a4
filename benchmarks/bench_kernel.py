"""Labels that are not linear in the features: ``features="kernel"`` beside kernel ridge and linear ridge.

The rows are a twin of gene data: 2,417 rows of unit length, 103 features, 14 labels of which neighbours overlap, 4.2 a
row, with a smooth teacher. 1,500 rows are learned from. Half of the labels arrive later, with answers on all rows.
Kernel ridge is scikit-learn's, on standardised rows and centred labels, with alpha and gamma of the best 5-fold squared
error. It and linear ridge say yes where the F1 of 5-fold scores is best, label by label; ours as it comes.
``--arff FOLDER/NAME`` takes a real set in Mulan's form instead (NAME-train.arff, NAME-test.arff, NAME.xml); seeds then
draw the order of its labels alone.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score, label_ranking_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.preprocessing import StandardScaler

from streamlabel import StreamingLabelClassifier
from streamlabel.data.arff import read_arff
from streamlabel.metrics.auc import macro_auc, micro_auc
from streamlabel.metrics.ranking import precision_at_k
from streamlabel.streaming.calibration import best_f1_thresholds
from streamlabel.types import FloatArray

RATES = (0.315, 0.43, 0.41, 0.36, 0.3, 0.25, 0.18, 0.2, 0.07, 0.105, 0.12, 0.75, 0.745, 0.014)
N_TRAIN = 1_500
HEAD = ("micro AUC", "macro AUC", "rank loss", "P@1", "F1 micro", "F1 macro", "F1 rows", "seconds")


def make_gene_twin(seed: int, n_rows: int = 2_417, n_features: int = 103) -> tuple[FloatArray, FloatArray]:
    """Rows (n, d) and labels (n, 14): each label shares a smooth function of eight hidden causes with the next one."""
    rng = np.random.default_rng(seed)
    causes = rng.standard_normal((n_rows, 8)) * np.linspace(1.5, 0.5, 8)
    X = np.tanh(causes @ rng.standard_normal((8, n_features)) / np.sqrt(8)) + 0.45 * rng.standard_normal(
        (n_rows, n_features)
    )
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    waves = np.cos(1.2 * causes @ rng.standard_normal((8, 300)) / np.sqrt(8) + rng.uniform(0, 2 * np.pi, 300))
    count = len(RATES) + 1
    straight, bent = causes @ rng.standard_normal((8, count)), waves @ rng.standard_normal((300, count))
    parts = straight / straight.std(axis=0) + 4.0 * (bent - bent.mean(axis=0)) / bent.std(axis=0)
    noise = rng.standard_normal(parts.shape)
    signal, noise = parts[:, :-1] + parts[:, 1:], noise[:, :-1] + noise[:, 1:]
    scores = signal / signal.std(axis=0) + 1.4 * noise / np.sqrt(2.0)
    cuts = [np.quantile(column, 1.0 - rate) for column, rate in zip(scores.T, RATES, strict=True)]
    return X, (scores > cuts).astype(float)


def figures(truth: FloatArray, scores: FloatArray, said: FloatArray, start: float) -> list[float]:
    f1 = [float(f1_score(truth, said, average=kind, zero_division=0)) for kind in ("micro", "macro", "samples")]
    ranking = [micro_auc(truth, scores), macro_auc(truth, scores), float(label_ranking_loss(truth, scores))]
    return [*ranking, precision_at_k(truth, scores, 1), *f1, time.perf_counter() - start]


def peer(search: GridSearchCV, X: FloatArray, Y: FloatArray, far: FloatArray, truth: FloatArray) -> list[float]:
    """Figures of a scikit-learn model on standardised rows and centred labels."""
    start, scaler, rates = time.perf_counter(), StandardScaler().fit(X), Y.mean(axis=0)
    X, far = scaler.transform(X), scaler.transform(far)
    search.fit(X, Y - rates)
    thresholds = best_f1_thresholds(cross_val_predict(search.best_estimator_, X, Y - rates, cv=5) + rates, Y)
    scores = search.predict(far) + rates
    return figures(truth, scores, scores > thresholds, start)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="how many twins (default: 3)")
    parser.add_argument("--arff", help="the beginning of the names of a real set's files")
    options = parser.parse_args(argv)
    warnings.filterwarnings("ignore", category=UserWarning)
    found: dict[str, list[list[float]]] = {}
    for seed in range(options.seeds):
        if options.arff:
            parts = [read_arff(f"{options.arff}-{part}.arff", f"{options.arff}.xml") for part in ("train", "test")]
            X, far, Y, truth = (
                one.toarray().astype(float) for kind in "XY" for one in (getattr(at, kind) for at in parts)
            )
        else:
            X, Y = make_gene_twin(seed)
            order = np.random.default_rng(seed).permutation(len(X))
            X, Y, far, truth = X[order[:N_TRAIN]], Y[order[:N_TRAIN]], X[order[N_TRAIN:]], Y[order[N_TRAIN:]]
        labels = np.random.default_rng(seed).permutation(Y.shape[1])
        Y, truth = Y[:, labels], truth[:, labels]
        unit = 1.0 / X.shape[1]  # of gamma, for standardised features
        kernel = {"alpha": np.geomspace(0.3, 10.0, 6), "gamma": unit * 2.0 ** np.arange(-3, 3)}
        searches = {
            "linear ridge": GridSearchCV(
                Ridge(), {"alpha": np.geomspace(10, 1e4, 7)}, scoring="neg_mean_squared_error"
            ),
            "kernel ridge": GridSearchCV(KernelRidge(kernel="rbf"), kernel, scoring="neg_mean_squared_error"),
        }
        for name, search in searches.items():
            found.setdefault(name, []).append(peer(search, X, Y, far, truth))
        half = Y.shape[1] // 2
        for name, features in (("ours, linear", StandardScaler()), ("ours, kernel", "kernel")):
            start = time.perf_counter()
            model = StreamingLabelClassifier(features=features).fit(X, Y)
            row = figures(truth, model.decision_function(far), model.predict(far), start)
            found.setdefault(f"{name}, all at once", []).append(row)
            start = time.perf_counter()
            model = StreamingLabelClassifier(features=features).fit(X, Y[:, :half]).add_labels(X, Y[:, half:])
            row = figures(truth, model.decision_function(far), model.predict(far), start)
            found.setdefault(f"{name}, half later", []).append(row)
    print(f"{'mean of ' + str(options.seeds) + ' draws':26}" + "".join(f"{name:>11}" for name in HEAD))
    for name, rows in found.items():
        print(f"{name:26}" + "".join(f"{value:11.4f}" for value in np.mean(rows, axis=0)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
