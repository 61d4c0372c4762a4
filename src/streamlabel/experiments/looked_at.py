"""The sets whose test rows were looked at while the learner was designed, and what follows for a reader."""

from __future__ import annotations

from collections.abc import Iterable

from streamlabel.experiments.sets import used_name

__all__ = ["LEAST_GAIN_RAISED_ON", "LOOKED_AT", "disclosure"]

LOOKED_AT = {  # a set, and that whose test rows were looked at: itself, or one that shares rows with it
    "bibtex": "bibtex",
    "delicious": "delicious",
    "mediamill_reduced": "mediamill_reduced",
    "mediamill": "mediamill_reduced",
    "eurlex57k": "eurlex57k",
    "eurlex-4k": "eurlex57k",
    "citeulike-t": "citeulike-t",
    "citeulike-t-min5": "citeulike-t",
}
LEAST_GAIN_RAISED_ON = "eurlex57k"  # after a loss on its later rows had been seen (`streaming.trials`)


def disclosure(datasets: Iterable[str]) -> str:
    """What was looked at, of these sets (as records name them), and which of them were not."""
    names = list(dict.fromkeys(used_name(name) for name in datasets))
    looked_at = list(dict.fromkeys(LOOKED_AT[name] for name in names if name in LOOKED_AT))
    others = ", ".join(name for name in names if name not in LOOKED_AT)
    if not looked_at:
        return f"No test row of {others} was looked at while the learner was designed."
    raised = (
        f", and the least gain was raised after a loss on the later laws of {LEAST_GAIN_RAISED_ON} had been seen"
        if LEAST_GAIN_RAISED_ON in looked_at
        else ""
    )
    said = (
        "The design of the learner (its candidate penalties and shares, the rule of choice, the least gain) was "
        f"settled while looking at test rows of {', '.join(looked_at)}{raised}. No run reads a test row to learn or "
        "choose, but the figures on these sets flatter the design, and the competitors had no such pass."
    )
    trusted = f"**Not looked at, so the ones to trust: {others}.**" if others else "No other set is compared here."
    return f"{said} {trusted}"
