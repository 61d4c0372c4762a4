"""The learner with its choice switched off: what the past, used for every label, would have given over own ridge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streamlabel.experiments.comparisons import LOSES, UNDECIDED, WINS, Comparison, mean_and_error, paired
from streamlabel.experiments.looked_at import LEAST_GAIN_RAISED_ON
from streamlabel.experiments.sets import used_name
from streamlabel.experiments.timeline_records import ALWAYS_USED, COMPARED, EVER, METHODS, OWN_RIDGE, BirthRecord
from streamlabel.experiments.timeline_values import MEASURES, signed, values
from streamlabel.streaming.trials import LAM, LEAST_GAIN, RECIPES

__all__ = ["NOTE", "PAIR", "SETTING", "change", "complete_ages", "pair_ages", "refusal", "seen_before", "was_run"]

SETTING = {"lam": LAM, "metric": max(share for share, _, _ in RECIPES)}
PAIR = (ALWAYS_USED, OWN_RIDGE)
NOTE = (
    f"*{ALWAYS_USED.capitalize()}* is the same learner with its choice switched off, a variant that counts in no "
    f"comparison: every label is pulled toward its code, with the usual penalty ({SETTING['lam']:g}), and takes the "
    f"largest share of the metric that the trials know ({SETTING['metric']:g}), at the ridge strength that the trials "
    "give. That is one setting, the same for all labels; another may do better or worse. A second table has it "
    "beside own ridge, over the labels that both have learned."
)


def was_run(records: Iterable[BirthRecord]) -> bool:
    return any(record.method == ALWAYS_USED for record in records)


def pair_ages(records: Sequence[BirthRecord]) -> list[int]:
    """Those at which some label was judged by both."""
    found = sorted({record.age for record in records if record.method == ALWAYS_USED})
    return [age for age in found if len(values(records, "auc", age, PAIR)[OWN_RIDGE])]


def complete_ages(records: Sequence[BirthRecord], among: Iterable[int]) -> list[int]:
    """Those at which the variant has learned every label that the others have: its points may stand beside theirs."""
    n_labels = {
        age: [len(values(records, "auc", age, methods)[OWN_RIDGE]) for methods in (METHODS, COMPARED)] for age in among
    }
    return [age for age, (n_learned, n_all) in n_labels.items() if n_learned == n_all]


def refusal(runs: Sequence[Sequence[BirthRecord]]) -> list[str]:
    """Of runs in which the learner left the past alone: whether that was right, measure by measure."""
    both = [records for records in runs if EVER in pair_ages(records)]
    if not both:
        return []
    found = [one for records in both for one in _compared(records)]
    only = "" if len(both) == len(runs) else f", run at {len(both)} of {len(runs)} starts"
    reached: dict[str, list[str]] = {}
    judged: dict[str, list[str]] = {}
    for measure in MEASURES.values():
        verdicts = [one.verdict for one in found if one.measure == measure]
        n_better, n_worse = verdicts.count(WINS), verdicts.count(LOSES)
        counts = [f"{how} at {n}" for how, n in (("better", n_better), ("worse", n_worse)) if n]
        level = "undecided" if set(verdicts) == {UNDECIDED} else "level"
        where = f"{' and '.join(counts)} of {len(verdicts)} starts" if counts else level
        reached.setdefault(where, []).append(measure)
        how = "right" if n_worse > n_better else "wrong" if n_better > n_worse else "without a sure effect"
        judged.setdefault(how, []).append(measure)
    return [
        f"Used for every label at a fixed setting ('{ALWAYS_USED}'{only}), it would have been {_by_measure(reached)} "
        f"against {OWN_RIDGE}: to leave it alone was {_by_measure(judged)}."
    ]


def _by_measure(found: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{said} in {' and '.join(measures)}" for said, measures in found.items())


def _compared(records: Sequence[BirthRecord]) -> list[Comparison]:
    """The variant against own ridge, on all rows after the annotation; for the words alone, never counted."""
    found = []
    for measure, said in MEASURES.items():
        here = values(records, measure, EVER, PAIR)
        gains = paired(here[ALWAYS_USED] - here[OWN_RIDGE])
        found.append(Comparison(records[0].dataset, f"born from {records[0].start} on", said, OWN_RIDGE, *gains))
    return found


def change(records: Sequence[BirthRecord]) -> list[str]:
    """One sentence for one run, where the variant has learned a label; with their number where these are not all."""
    if EVER not in pair_ages(records):
        return []
    parts = []
    for measure, said in MEASURES.items():
        here = values(records, measure, EVER, PAIR)
        parts.append(f"{said} by {signed(*mean_and_error(here[ALWAYS_USED] - here[OWN_RIDGE]))}")
    n_labels, n_all = len(here[OWN_RIDGE]), len(values(records, measure, EVER)[OWN_RIDGE])
    where = "" if n_labels == n_all else f" ({n_labels} of {n_all} labels)"
    return [f"Used for every label, the past changes {' and '.join(parts)} against {OWN_RIDGE}{where}."]


def seen_before(records: Iterable[BirthRecord]) -> list[str]:
    """What had been seen of the set when the rule of choice was made; nothing for other sets."""
    if not any(used_name(record.dataset) == LEAST_GAIN_RAISED_ON for record in records):
        return []
    return [
        f"The least gain for which the learner uses the past, now {LEAST_GAIN:g} points in its trials, was raised "
        f"after a loss on the later laws of {LEAST_GAIN_RAISED_ON} had been seen, so its choice on this set is no "
        "independent evidence for the rule."
    ]
