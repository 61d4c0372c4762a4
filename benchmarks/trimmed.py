"""What it is worth to trim small weights: both ends of a ranking by one plane, beside what else was tried for that.

    python benchmarks/trimmed.py SET ROWS [SET ROWS ...] [--seeds 3]

New labels are learned alone from so many rows: by ridge, by logistic regression, by a mixture of both (one plane), and

- trimmed: ridge without its small weights (`classifier.penalty.trim`), and the same mixed with the logistic classifier,
  or with a ridge that is thirty times as strong (firm);
- two planes: ``mix u + (1 - mix) max(t - c, 0)``, with t the ridge scores and u the logistic ones on their scale, so
  that low ridge scores, which are mostly noise, no longer count; c is one deviation of t above its mean.

No test row of a set is read: of its training rows a quarter (at most 2,500) is held back. By half of it each way's
strengths, mix and lines are found, the best by the mean of P@k, AUC and average precision; the other half is judged.
What a way is ahead of the better of ridge and logistic, measure by measure, is in the second half of a table, with the
standard error over seeds of the mean of all.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from streamlabel.classifier.coordinates import Coordinates, minimise
from streamlabel.classifier.penalty import trim
from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.stats.threads import one_thread
from streamlabel.streaming.trials import measure, overall_of, own_lines
from streamlabel.types import Dataset, FloatArray

RIDGE, LOGISTIC, FIRM = (0.1, 0.3, 1.0, 3.0), (0.1, 0.03, 0.01, 0.003), 30.0
MIXES, LEVELS = (0.3, 0.5), (1.5, 3.0)
MOST_ROWS, MOST_HELD, MOST_LABELS = 12_000, 2_500, 300
WAYS = ("ridge", "logistic", "one plane", "two planes", "trimmed", "trimmed, logistic", "trimmed, firm")


def mixed(ridge: FloatArray, kept: FloatArray, other: FloatArray, known: slice) -> Iterator[FloatArray]:
    """Scores (e, k) of two classifiers on the scale of ridge put together; lines are found by the known rows."""
    on_line = [scale * one + shift for one in (kept, other) for scale, shift in [own_lines(one[known], ridge[known])]]
    for mix in MIXES:
        yield (1.0 - mix) * on_line[0] + mix * on_line[1]


def judge(data: Dataset, n_rows: int, seed: int) -> FloatArray:
    """P@1, P@3, P@5, AUC and average precision (in %) of each of `WAYS`, (7, 5)."""
    rng, (n_all, n_labels) = np.random.default_rng(seed), data.Y.shape
    order, labels = rng.permutation(n_all), rng.permutation(n_labels)[n_labels // 2 :]
    n_held = min(MOST_HELD, n_all // 4)
    rows, held = rng.permutation(order[n_held:][:MOST_ROWS])[:n_rows], order[:n_held]
    X, Y = sparse.csr_array(data.X.astype(np.float64)), sparse.csr_array(data.Y)[:, labels]
    answers, truth = (Y[part].toarray().astype(np.float64) for part in (rows, held))
    halves = slice(0, n_held // 2), slice(n_held // 2, n_held)
    able = np.all([np.ptp(part, axis=0) > 0 for part in (answers, truth[halves[0]], truth[halves[1]])], axis=0)
    answers, truth = answers[:, able][:, :MOST_LABELS], truth[:, able][:, :MOST_LABELS]
    at, rates = Coordinates(X[rows]), answers.mean(axis=0)
    found, known = list[tuple[str, FloatArray]](), halves[0]

    def scores(weights: FloatArray, level: FloatArray) -> FloatArray:
        return np.asarray(X[held] @ weights) - at.mean @ weights + level

    ridges = {
        step: at.weights(at.ridge(answers - rates, step * at.unit)) for step in (*RIDGE, *(FIRM * s for s in RIDGE))
    }
    other, start = [], None
    for strength in LOGISTIC:
        start = minimise(at.Z, at.squares, answers, strength * at.unit, "logistic", None, start)
        other.append(scores(at.weights(start[0]), start[1]))
    found += [("logistic", one) for one in other]
    for step in RIDGE:
        ridge = scores(ridges[step], rates)
        found.append(("ridge", ridge))
        kept = [scores(trim(ridges[step], level), rates) for level in LEVELS]
        found += [
            ("trimmed", scale * one + shift) for one in kept for scale, shift in [own_lines(one[known], ridge[known])]
        ]
        firm = scores(ridges[FIRM * step], rates)
        found += [("trimmed, firm", one) for part in kept for one in mixed(ridge, part, firm, known)]
        least = ridge[known].mean(axis=0) + ridge[known].std(axis=0)
        for one in other:
            found += [("one plane", both) for both in mixed(ridge, ridge, one, known)]
            found += [("trimmed, logistic", both) for part in kept for both in mixed(ridge, part, one, known)]
            scale, shift = own_lines(one[known], ridge[known])
            tops = np.maximum(ridge - least, 0.0)
            found += [("two planes", (1.0 - mix) * tops + mix * (scale * one + shift)) for mix in MIXES]
    values = [float(overall_of(np.array(measure(truth[known], one[known])))) for _, one in found]
    best = [max((i for i in range(len(found)) if found[i][0] == way), key=values.__getitem__) for way in WAYS]
    return np.array([measure(truth[halves[1]], found[i][1][halves[1]]) for i in best])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", help="names of sets, each followed by a number of rows")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if len(options.what) % 2 or not all(size.isdecimal() for size in options.what[1::2]):
        parser.error("give sets and numbers of rows by turns, as in: bibtex 500 delicious 100")
    for name, n_rows in zip(options.what[::2], map(int, options.what[1::2]), strict=True):
        data = load_catalogue_set(name, "train")
        with one_thread():
            values = np.stack([judge(data, n_rows, seed) for seed in range(options.seeds)])
        means = values.mean(axis=0)
        ahead = values - np.take_along_axis(values[:, :2], means[:2].argmax(axis=0)[None, None], axis=1)
        error = overall_of(ahead).std(axis=0, ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else np.zeros(len(WAYS))
        measures = " P@1 | P@3 | P@5 | AUC | AP |"
        print(f"\n| {name}, {n_rows:,} rows |{measures}{measures} mean |\n|---{'|--:' * 11}|")
        for place, way in enumerate(WAYS):
            gains = [f"{gain:+.1f}" for gain in ahead[:, place].mean(axis=0)]
            mean = f"{overall_of(ahead[:, place]).mean():+.2f} ({error[place]:.2f})"
            print(f"| {way} | {' | '.join([*(f'{value:.1f}' for value in means[place]), *gains, mean])} |", flush=True)


if __name__ == "__main__":
    main()
