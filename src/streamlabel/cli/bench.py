"""``streamlabel bench``: how fast it is here."""

from __future__ import annotations

import sys

import click

from streamlabel.cli.group import StreamlabelGroup
from streamlabel.cli.output import format_table, json_option, note, write
from streamlabel.data.catalogue import find_entry, load_catalogue_set, locate
from streamlabel.experiments.speed import Step, Timing, time_arrivals, time_batch, time_flatness, time_steps


@click.group(cls=StreamlabelGroup)
def bench() -> None:
    """How fast it is here: ratios within one run, CPU time beside wall time."""


@bench.command("add-label")
@click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="Default: the real sets that are here.")
@click.option("--flatness/--no-flatness", default=True, show_default=True, help="Time against the number of labels.")
@click.option("--steps", is_flag=True, help="Also show where the time of a fully annotated label goes.")
@json_option
def add_label(datasets: tuple[str, ...], flatness: bool, steps: bool, as_json: bool) -> None:
    """Time new labels: the first and later ones, of 100 rows and of all, a batch, and after ever more labels."""
    wanted = datasets or ("bibtex", "delicious", "eurlex57k")
    missing = [name for name in wanted if locate(find_entry(name)) is None]
    if datasets:
        wanted, missing = datasets, []
    timings: list[Timing] = []
    parts: dict[str, list[Step]] = {}
    for name in (name for name in wanted if name not in missing):
        note(f"{name} ...")
        data = load_catalogue_set(name, "train")
        small = data.n_rows < 20_000
        for loss in ("auto", "squared", "logistic") if small else ("auto",):
            timings += time_arrivals(name, data, loss, n_labels=30 if small else 10)
        if small:
            timings += time_batch(name, data)
            if steps:
                parts[name] = time_steps(data)
    if flatness:
        note("growing label sets ...")
        timings += time_flatness()
    peak = _peak_gb()
    data_out = {
        "timings": [timing.as_dict() for timing in timings],
        "steps": {name: [step.as_dict() for step in found] for name, found in parts.items()},
        "peak_gb": peak,
        "not_here": missing,
    }
    write(data_out, as_json=as_json, text=lambda: _as_text(timings, parts, peak, missing))


def _peak_gb() -> float | None:
    """The most memory this process has had; None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)


def _as_text(timings: list[Timing], steps: dict[str, list[Step]], peak: float | None, missing: list[str]) -> str:
    header = ["what", "labels", "CPU ms", "wall ms", "against", "CPU ms", "ratio"]
    rows = [
        [
            timing.what,
            str(timing.n_labels),
            f"{timing.cpu_ms:.1f}",
            f"{timing.wall_ms:.1f}",
            timing.reference,
            "" if timing.reference_cpu_ms is None else f"{timing.reference_cpu_ms:.1f}",
            "" if timing.ratio is None else f"{timing.ratio:.2f}",
        ]
        for timing in timings
    ]
    parts = [format_table(header, rows, right=(1, 2, 3, 5, 6))]
    for name, found in steps.items():
        lines = [[step.what, f"{step.ms:.2f}", f"{step.floor_bytes / 1e6:.2f}"] for step in found]
        title = f"{name}: one label, all rows, under the profiler; steps contain one another"
        parts.append(title + "\n" + format_table(["step", "ms", "floor MB"], lines, right=(1, 2)))
    if peak is not None:
        parts.append(f"peak memory of the run: {peak:.2f} GB")
    if missing:
        parts.append(f"not on this machine, so not timed: {', '.join(missing)}")
    return "\n\n".join(parts)
