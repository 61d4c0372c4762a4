"""SLL, whose labels arrived, against every other method, which had all of them at the start: as comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamlabel.experiments.comparisons import Comparison, paired, unpaired
from streamlabel.experiments.figure1 import Figure1Record
from streamlabel.experiments.method_tables import by_method
from streamlabel.experiments.methods import METHODS, OWN, PEERS, SLL

__all__ = ["MEASURES", "compare"]

MEASURES = {"p1": "P@1", "p3": "P@3", "p5": "P@5", "auc": "average AUC"}


def compare(records: Sequence[Figure1Record]) -> tuple[Comparison, ...]:
    """SLL at half of the labels against the others with all of them: an arrival against training from scratch."""
    found = []
    for dataset in dict.fromkeys(record.dataset for record in records):
        here = [record for record in records if record.dataset == dataset]
        shares = sorted({r.share for r in here if r.method == SLL and r.share < 100}, key=lambda share: abs(share - 50))
        ours = [r for r in here if r.method == SLL and shares and r.share == shares[0]]
        for method, own in by_method([r for r in here if r.share == 100 and r.method != SLL], (*OWN, *PEERS)):
            for field, title in MEASURES.items() if ours else ():
                at, theirs = ({r.seed: getattr(r, field) for r in side} for side in (ours, own))
                gain = _gain(at, theirs, METHODS[method].random)
                where = f"{shares[0]}% of the labels at the start against all"
                quick = not all(r.tuned for r in (*ours, *own))
                found.append(Comparison(dataset, where, title, method, *gain, quick=quick))
    return tuple(found)


def _gain(ours: Mapping[int, float], theirs: Mapping[int, float], random: bool) -> tuple[float, float | None, float]:
    """Over the seeds of both; where these are fewer than two (a method that draws nothing is run once), over all."""
    both = sorted(ours.keys() & theirs.keys())
    if len(both) > 1:
        return paired([ours[seed] - theirs[seed] for seed in both])
    gain, error, freedom = unpaired([*ours.values()], [*theirs.values()])
    known = len(ours) > 1 and (len(theirs) > 1 or not random)
    return gain, error if known else None, freedom
