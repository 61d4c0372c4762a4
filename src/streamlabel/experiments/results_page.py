"""All experiments of a folder as one page: where figures come from, the honest reading, and every table."""

from __future__ import annotations

import dataclasses
import datetime
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamlabel.errors import MissingExtraError, NotFoundError
from streamlabel.experiments.comparisons import Comparison
from streamlabel.experiments.experiment import Experiment, Page
from streamlabel.experiments.glossary import glossary
from streamlabel.experiments.method_tables import counted
from streamlabel.experiments.opening import WHAT_THIS_IS, set_table
from streamlabel.experiments.outline import outline
from streamlabel.experiments.pictures import draw
from streamlabel.experiments.provenance import Origin, read_origin
from streamlabel.experiments.reading import is_counted, reading
from streamlabel.experiments.records import read_records, write_whole
from streamlabel.experiments.registry import EXPERIMENTS, Registered
from streamlabel.experiments.standings import standings

__all__ = ["ORDER", "ResultsPage", "write_results_page"]

ORDER = ("budget", "table2", "figure1", "figure2", "timeline", "table3", "bounds")  # what matters most to a user first


@dataclass(frozen=True)
class ResultsPage:
    """What was written, and what is missing: experiments without records, and why there are no pictures."""

    text: str
    data: dict[str, Any]
    not_run: tuple[str, ...]
    no_pictures: str = ""


@dataclass(frozen=True, eq=False)
class _Found:
    """An experiment with records, its page, and where the records come from (empty where nobody kept it)."""

    experiment: Experiment[Any, Any]
    page: Page
    n_records: int
    origin: Origin
    sets: tuple[str, ...]
    pictures: dict[str, str] = field(default_factory=dict)  # title to link

    @property
    def points(self) -> list[str]:
        """Its sentence as lines of a list; a single one where there is nothing to divide."""
        lines = []
        for sentence, parts in outline(self.page.sentence, self.sets):
            lines += [f"- {sentence}", *(f"  - {part}" for part in parts)]
        return lines


def write_results_page(
    folder: Path, out: Path, picture_folder: Path, experiments: Mapping[str, Registered] = EXPERIMENTS
) -> ResultsPage:
    """Make the page ``out`` from the records in the folder, with pictures in a folder of their own.

    Nothing is run and nothing is fetched; records are only read. Tables and pictures are made anew from them.

    Raises
    ------
    NotFoundError : no experiment has records in the folder
    """
    found: list[_Found] = []
    not_run, missing = [], ""
    for name, registered in sorted(experiments.items(), key=lambda item: _place(item[0])):
        path = folder / f"{name}.jsonl"
        if not path.is_file():
            not_run.append(name)
            continue
        experiment = registered.load()
        records = read_records(path, experiment.record, experiment.key)
        if not records:
            not_run.append(name)
            continue
        origin, sets = read_origin(folder / f"{name}.run.json"), _sets(records)
        one = _Found(experiment, experiment.page(records), len(records), origin, sets)
        try:
            for picture in experiment.pictures(records):
                (path,) = draw(picture, picture_folder, name, ("png",))
                one.pictures[picture.title] = Path(os.path.relpath(path, out.parent)).as_posix()
        except MissingExtraError as error:
            missing = f"no pictures: {error}"
        found.append(one)
    if not found:
        raise NotFoundError(
            f"{folder} has no records of any experiment; run one, as 'streamlabel reproduce {not_run[0]}'"
        )
    text = _text(found, not_run)
    write_whole(out, text)
    return ResultsPage(text, _data(found, not_run), tuple(not_run), missing)


def _place(name: str) -> int:
    """On the page; an experiment that is not in the order comes last."""
    return ORDER.index(name) if name in ORDER else len(ORDER)


def _sets(records: Sequence[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(record.dataset for record in records if hasattr(record, "dataset")))


def _comparisons(found: list[_Found], counts: bool) -> dict[str, list[Comparison]]:
    """Those that count in the reading, or the others."""
    return {one.experiment.name: [c for c in one.page.comparisons if is_counted(c) == counts] for one in found}


def _data(found: list[_Found], not_run: list[str]) -> dict[str, Any]:
    return {
        "experiments": {
            one.experiment.name: one.origin.as_data() | {"sentence": one.page.sentence, "n_records": one.n_records}
            for one in found
        },
        "not_run": not_run,
        "standings": [
            {"experiment": experiment, "dataset": dataset, "competitor": competitor, "counted": counts}
            | dataclasses.asdict(standing)
            for counts in (True, False)
            for (experiment, dataset, competitor), standing in standings(_comparisons(found, counts)).items()
        ],
    }


def _text(found: list[_Found], not_run: list[str]) -> str:
    sets = [name for one in found for name in one.sets]
    parts = [
        "# Results",
        WHAT_THIS_IS,
        "Made from the records of the experiments by `streamlabel reproduce report`; [Experiments](experiments.md) "
        f"says how to run them. This page was made on {datetime.date.today().isoformat()}. In short: [where the "
        "learner wins, ties and loses, and what to do then](#where-the-learner-wins-ties-and-loses).",
        *(["## The data sets", set_table(sets)] if sets else []),
        "## What the words mean",
        glossary(),
        "## What the experiments show",
        _overview(found, not_run),
    ]
    compared = {one.experiment.name: one.page.comparisons for one in found}
    parts += [*_machines(found), *_commits(found), "## Where the learner wins, ties and loses", reading(compared)]
    for one in found:
        shown = "\n".join(one.points) if len(one.points) > 1 else one.page.sentence
        parts += [f"## {one.experiment.title}", _commands(one), shown]
        parts += [f"![{title}]({link})" for title, link in one.pictures.items()]
        parts.append(re.sub(r"^(#+ )", r"#\1", one.page.body.strip(), flags=re.MULTILINE))
    return "\n\n".join(parts) + "\n"


def _commands(one: _Found) -> str:
    """All that wrote records, each on a line of its own."""
    commands = one.origin.commands or (f"streamlabel reproduce {one.experiment.name}",)
    return "\\\n".join(f"`{command}`" for command in commands)


def _overview(found: list[_Found], not_run: list[str]) -> str:
    lines = []
    for one in found:
        first = f"- {one.experiment.name} ({one.origin.date or 'date unknown'}, {counted(one.n_records, 'record')}):"
        if len(one.points) > 1:
            lines += [first, *(f"  {line}" for line in one.points)]
        else:
            lines.append(f"{first} {one.page.sentence}")
    return "\n".join([*lines, *(f"- {name}: not run." for name in not_run)])


def _machines(found: list[_Found]) -> list[str]:
    """One line for every machine and set of versions, with the experiments that ran there."""
    groups: dict[str, list[str]] = {}
    for one in found:
        for where in one.origin.places or ("machine and versions were not kept",):
            groups.setdefault(where, []).append(one.experiment.name)
    return [f"{', '.join(names)}: {where}." for where, names in groups.items()]


def _commits(found: list[_Found]) -> list[str]:
    """A line of the commits of the source, each with the experiments that ran at it; none where no commit was kept."""
    groups: dict[str, list[str]] = {}
    for one in found:
        for commit in dict.fromkeys([run.commit for run in one.origin.runs] or [""]):
            groups.setdefault(commit or "not kept", []).append(one.experiment.name)
    shown = "; ".join(f"{commit} ({', '.join(names)})" for commit, names in groups.items())
    return [f"Commits of the source: {shown}."] if groups.keys() - {"not kept"} else []
