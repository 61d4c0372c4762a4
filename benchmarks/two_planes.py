"""What a second plane a label would bring: one for the top of a ranking, one for its tail.

    python benchmarks/two_planes.py SET ROWS [SET ROWS ...] [--seeds 3] [--mixed LINE]

New labels are learned alone from so many rows: by ridge, by logistic regression, by their mixture (one plane), and as
``mix u + (1 - mix) max(t - c, 0)``, with t the ridge scores and u the logistic ones on their scale: low ridge scores,
which are mostly noise, no longer count. c is a label's own, one deviation of t above its mean. No test row of a set is
read: of its training rows a quarter (at most 2,500) is held back. By half of it each way's strengths (and mix), lines
and c are found, the best by the mean of P@k, AUC and average precision; the other half is judged. The last row of a
table is two planes minus the better of ridge and logistic, measure by measure, with the standard error over seeds.
With ``--mixed`` every second label stays with ridge in all ways, and the scores of the others are brought to the scale
of ridge, by one line for all labels (common) or each by its own (own): are they comparable?
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product

import numpy as np
from scipy import sparse

from streamlabel.classifier.coordinates import Coordinates, minimise
from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.stats.threads import one_thread
from streamlabel.streaming.trials import common_line, measure, overall_of, own_lines
from streamlabel.types import Dataset, FloatArray

RIDGE, LOGISTIC, MIXES = (0.1, 0.3, 1.0, 3.0), (0.1, 0.03, 0.01, 0.003), (0.2, 0.3, 0.5)
MOST_ROWS, MOST_HELD, MOST_LABELS = 12_000, 2_500, 300
WAYS = ("ridge", "logistic", "one plane", "two planes")


def planes(ridge: FloatArray, other: FloatArray, known: slice) -> Iterator[tuple[str, FloatArray]]:
    """The scores (e, k) of both losses put together, for every mix: ("one plane" or "two planes", (e, k)).

    known : the rows by whose scores lines and c are found
    """
    scale, shift = own_lines(other[known], ridge[known])
    u, least = scale * other + shift, ridge[known].mean(axis=0) + ridge[known].std(axis=0)
    for mix in MIXES:
        yield "one plane", (1.0 - mix) * ridge + mix * u
        yield "two planes", (1.0 - mix) * np.maximum(ridge - least, 0.0) + mix * u


def judge(data: Dataset, n_rows: int, seed: int, mixed: str | None) -> FloatArray:
    """P@1, P@3, P@5, AUC and average precision (in %) of each of `WAYS`, (4, 5)."""
    rng, (n_all, n_labels) = np.random.default_rng(seed), data.Y.shape
    order, labels = rng.permutation(n_all), rng.permutation(n_labels)[n_labels // 2 :]
    n_held = min(MOST_HELD, n_all // 4)
    rows, held = rng.permutation(order[n_held:][:MOST_ROWS])[:n_rows], order[:n_held]
    X, Y = sparse.csr_array(data.X.astype(np.float64)), sparse.csr_array(data.Y)[:, labels]
    answers, truth = (Y[part].toarray().astype(np.float64) for part in (rows, held))
    halves = slice(0, n_held // 2), slice(n_held // 2, n_held)
    able = (
        (np.ptp(answers, axis=0) > 0) & (np.ptp(truth[halves[0]], axis=0) > 0) & (np.ptp(truth[halves[1]], axis=0) > 0)
    )
    answers, truth = answers[:, able][:, :MOST_LABELS], truth[:, able][:, :MOST_LABELS]
    at, rates = Coordinates(X[rows]), answers.mean(axis=0)
    far, found = at.across(X[held]), list[tuple[str, FloatArray]]()
    squared = [rates + far @ at.ridge(answers - rates, step * at.unit) for step in RIDGE]
    other, start = [], None
    for strength in LOGISTIC:
        start = minimise(at.Z, at.squares, answers, strength * at.unit, "logistic", None, start)
        other.append(far @ start[0] + start[1])
    found += [("ridge", scores) for scores in squared] + [("logistic", scores) for scores in other]
    for both in product(squared, other):
        found += planes(*both, halves[0])
    values = [float(overall_of(np.array(measure(truth[halves[0]], scores[halves[0]])))) for _, scores in found]
    best = [max((i for i in range(len(found)) if found[i][0] == way), key=values.__getitem__) for way in WAYS]
    chosen = [found[i][1] for i in best]
    if mixed:
        line = common_line if mixed == "common" else own_lines
        lines = [line(scores[halves[0]], chosen[0][halves[0]]) for scores in chosen]
        stays = np.arange(truth.shape[1]) % 2 == 0
        chosen = [np.where(stays, chosen[0], a * scores + b) for scores, (a, b) in zip(chosen, lines, strict=True)]
    return np.array([measure(truth[halves[1]], scores[halves[1]]) for scores in chosen])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", help="names of sets, each followed by a number of rows")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--mixed", choices=("common", "own"))
    options = parser.parse_args()
    if len(options.what) % 2 or not all(size.isdecimal() for size in options.what[1::2]):
        parser.error("give sets and numbers of rows by turns, as in: bibtex 500 delicious 100")
    for name, n_rows in zip(options.what[::2], map(int, options.what[1::2]), strict=True):
        data = load_catalogue_set(name, "train")
        with one_thread():
            values = np.stack([judge(data, n_rows, seed, options.mixed) for seed in range(options.seeds)])
        means = values.mean(axis=0)
        print(f"\n| {name}, {n_rows:,} rows | P@1 | P@3 | P@5 | AUC | AP |\n|---{'|--:' * 5}|")
        for way, row in zip(WAYS, means, strict=True):
            print(f"| {way} | {' | '.join(f'{value:.1f}' for value in row)} |")
        better = means[:2].argmax(axis=0)
        ahead = values[:, 3] - np.take_along_axis(values[:, :2], better[None, None], axis=1)[:, 0]
        errors = ahead.std(axis=0, ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else np.zeros(5)
        shown = (f"{gain:+.2f} ({error:.2f})" for gain, error in zip(ahead.mean(axis=0), errors, strict=True))
        print(f"| ahead | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
