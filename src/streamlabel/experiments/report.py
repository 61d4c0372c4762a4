"""Pages: the tables and pictures of records, in templates that a person wrote."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from streamlabel.errors import DataError, MissingExtraError, NotFoundError
from streamlabel.experiments.compare import by_rows, comparisons, frame_of, pandas, standings
from streamlabel.experiments.experiment import EXPERIMENTS, Experiment, Registered
from streamlabel.experiments.plots import draw
from streamlabel.experiments.provenance import Origin, read_origin, with_command, write_origin
from streamlabel.experiments.record_file import RecordFile, keeping, read_records, write_whole
from streamlabel.experiments.sets import described_sets, looked_at, used_name
from streamlabel.experiments.spec import Frame, PageSpec
from streamlabel.experiments.tables import Sections, markdown, sections, standing_cells

# What matters most to a user first; others come last.
ORDER = ("budget", "questions", "names", "table2", "figure1", "figure2", "timeline", "table3", "bounds")
QUICK = "> Made with `--quick`: a small grid whose figures decide nothing."
_PLACE = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
_ADVISED_BY = ("budget", "table2", "timeline")  # figure1 asks what table2 asks, most of it without pairs


def fill(template: str, value: Callable[[str], str | None], source: str = "the template") -> str:
    """The template with a text in every place; empty places leave no empty lines.

    >>> fill("a {{ b }}", {"b": "c"}.get)
    'a c'

    Raises
    ------
    DataError : a placeholder that nobody fills
    """

    def found(match: re.Match[str]) -> str:
        text = value(match[1])
        if text is None:
            raise DataError(f"nothing fills the placeholder {match[0]}", source=source)
        return text

    return re.sub(r"\n{3,}", "\n\n", _PLACE.sub(found, template))


def page_template(name: str) -> str:
    """The text of a template that comes with the package."""
    return (resources.files("streamlabel.experiments") / "pages" / f"{name}.md").read_text(encoding="utf-8")


@dataclass(eq=False)
class Results:
    """The records of an experiment as frames, and what the placeholders of its page stand for.

    drawn : title and path of every picture that was asked for;   missing : why there are none, or ""
    """

    experiment: Experiment[Any, Any]
    records: Sequence[Any]
    drawn: dict[str, Path] = field(default_factory=dict)
    missing: str = ""

    @property
    def spec(self) -> PageSpec:
        return self.experiment.page

    @cached_property
    def frame(self) -> Frame:
        return frame_of(self.records, self.spec)

    @cached_property
    def compared(self) -> Frame:
        return comparisons(self.frame, self.spec.versus)

    def sections(self, name: str) -> Sections:
        return sections(self.spec.tables[name], self.frame, self.compared) if self.records else {}

    def fact(self, name: str) -> str:
        return self.spec.facts[name](self.frame, self.compared) if self.records else "not known"

    def value(self, name: str, level: str = "###") -> str | None:
        """The text of a table or fact; None where there is no such placeholder."""
        if name in self.spec.facts:
            return self.fact(name)
        return markdown(self.sections(name), level) if name in self.spec.tables else None

    def draw(self, name: str, folder: Path, beside: Path, forms: tuple[str, ...]) -> str | None:
        """The link to a picture, which is drawn; "" where there is nothing to draw, or no matplotlib."""
        for plot in self.spec.plots:
            if plot.name == name:
                frame = plot.of(self.frame, self.compared) if self.records else ()
                if not len(frame):
                    return ""
                try:
                    paths = draw(plot, frame, folder, self.experiment.name, forms)
                except MissingExtraError as error:
                    self.missing = f"no pictures: {error}"
                    return ""
                self.drawn |= {path.name: path for path in paths}
                return f"![{plot.title}]({Path(os.path.relpath(paths[0], beside)).as_posix()})"
        return None

    @property
    def data(self) -> dict[str, Any]:
        """The same for programs; no time and no machine in it, so that equal runs give equal files."""
        return {
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            "n_records": len(self.records),
            "facts": {name: self.fact(name) for name in self.spec.facts},
            "tables": {name: self.sections(name) for name in self.spec.tables},
            "comparisons": plain(self.compared),
            "standings": plain(standings(self.compared, ["dataset", "competitor"])),
        }


def plain(frame: Frame) -> list[dict[str, Any]]:
    """A frame as JSON has it: NaN is null."""
    lines = frame.astype(object).to_dict("records")
    return [{k: None if isinstance(v, float) and math.isnan(v) else v for k, v in line.items()} for line in lines]


@dataclass(frozen=True)
class Outcome:
    """What was written: the page as text and as data, and what is missing of it, in a sentence."""

    text: str
    data: dict[str, Any]
    files: tuple[Path, ...]
    missing: str = ""


def write_results(experiment: Experiment[Any, Any], file: RecordFile[Any], out: Path, command: str) -> Outcome:
    """Page (``NAME.md``), data (``NAME.json``), pictures (``NAME-*.png``, ``.svg``), and where they come from.

    All are of all records in the file. Commands, days, machines and versions go to ``NAME.run.json`` alone, so that
    everything else is equal for equal records; but a page says where all commands were quick. Without pandas there is
    no page, and without matplotlib no picture: the outcome says what is missing.
    """
    path = out / f"{experiment.name}.run.json"
    origin = read_origin(path)
    if file.n_added or not origin.runs:
        origin = with_command(origin, command)
    results = Results(experiment, file.sorted_records)
    written: dict[str, str] = {}
    data: dict[str, Any] = {"experiment": experiment.name, "n_records": len(results.records)}
    text = missing = ""
    try:
        pandas()
        text, data = page_text(results, origin, out), results.data
        missing = results.missing
        written = {f"{experiment.name}.md": text}
        written[f"{experiment.name}.json"] = (
            json.dumps(data, indent=2, allow_nan=False, default=lambda value: value.item()) + "\n"
        )
    except MissingExtraError as error:
        missing = f"no page: {error}"
    with keeping(out):
        for name, content in written.items():
            write_whole(out / name, content)
        write_origin(dataclasses.replace(origin, n_records=len(results.records)), path)
    files = (*(out / name for name in written), path, *results.drawn.values())
    return Outcome(text, data, files, missing)


def page_text(results: Results, origin: Origin, folder: Path) -> str:
    """The page of one experiment, whose pictures are drawn into the folder; says where all its runs were quick."""
    name, template = results.experiment.name, results.spec.template
    words = template.read_text(encoding="utf-8") if template else page_template(name)

    def value(place: str) -> str | None:
        if not place.startswith("plot "):
            return results.value(place)
        return results.draw(place.removeprefix("plot "), folder, folder, ("png", "svg"))

    return _marked(fill(words, value, f"the page of {name}"), origin.is_quick)


def _marked(text: str, quick: bool) -> str:
    """The page, with a line below its title where all runs were quick."""
    title, _, rest = text.partition("\n\n")
    return f"{title}\n\n{QUICK}\n\n{rest}" if quick else text


@dataclass(frozen=True)
class Report:
    """The page of all experiments: its text, its data, the experiments without records, and what is missing."""

    text: str
    data: dict[str, Any]
    not_run: tuple[str, ...]
    missing: str = ""


def write_report(
    folder: Path,
    out: Path,
    pictures: Path,
    template: Path | None = None,
    experiments: Mapping[str, Registered] = EXPERIMENTS,
    pages: Path | None = None,
) -> Report:
    """Make the page ``out`` from the records in the folder, with pictures in a folder of their own.

    pages : a folder for the page of every experiment, with all its tables

    Nothing is run and nothing is fetched; records are only read. Placeholders are ``{{EXPERIMENT.NAME}}``,
    ``{{plot EXPERIMENT.NAME}}`` and those of the whole page: ``sets``, ``by_rows``, ``leads``, ``standings``,
    ``looked_at``, ``not_looked_at``, ``runs``, ``machines``, ``days``.

    Raises
    ------
    NotFoundError : no experiment has records in the folder
    MissingExtraError : pandas is not installed
    DataError : records that cannot be read, or a placeholder that nobody fills
    """
    words = page_template("report") if template is None else template.read_text(encoding="utf-8")
    whole = _Whole(folder, out, pictures)
    for name, registered in sorted(experiments.items(), key=lambda item: (*ORDER, item[0]).index(item[0])):
        path = folder / f"{name}.jsonl"
        experiment = registered.load() if path.is_file() else None
        records = read_records(path, experiment.record, experiment.key) if experiment else []
        if experiment and records:
            whole.found[name] = Results(experiment, records)
            whole.origins[name] = read_origin(folder / f"{name}.run.json")
        else:
            whole.not_run.append(name)
    if not whole.found:
        raise NotFoundError(
            f"{folder} has no records of any experiment; run one, as 'streamlabel reproduce {whole.not_run[0]}'"
        )
    pandas()
    text = fill(words, whole.value, str(template or "the template of the report"))
    text = _marked(text, all(origin.is_quick for origin in whole.origins.values()))
    data, missing = whole.data, next((one.missing for one in whole.found.values() if one.missing), "")
    if pages is not None:
        for name, results in whole.found.items():
            write_whole(pages / f"{name}.md", page_text(results, whole.origins[name], pages))
    write_whole(out, text)
    return Report(text, data, tuple(whole.not_run), missing)


class _Whole:
    """All experiments of a folder."""

    def __init__(self, folder: Path, out: Path, pictures: Path) -> None:
        self.folder, self.out, self.pictures = folder, out, pictures
        self.found: dict[str, Results] = {}
        self.origins: dict[str, Origin] = {}
        self.not_run: list[str] = []
        self._said: frozenset[str] = frozenset()  # of the experiments that were not run: a page says it once

    def value(self, place: str) -> str | None:
        own = {
            "sets": lambda: markdown({"": described_sets(self.datasets)}),
            "by_rows": self._by_rows,
            "leads": self._leads,
            "standings": self._standings,
            "looked_at": lambda: ", ".join(looked_at(self.datasets)[0]) or "none of these",
            "not_looked_at": lambda: ", ".join(looked_at(self.datasets)[1]) or "none of these",
            "runs": self._runs,
            "machines": lambda: "; ".join(self._kept("machine")) or "not kept",
            "days": lambda: (
                " to ".join(dict.fromkeys((*self._kept("date")[:1], *self._kept("date")[-1:]))) or "not kept"
            ),
        }
        if place in own:
            return own[place]()
        kind, _, name = place.rpartition(" ")
        experiment, _, part = name.partition(".")
        if experiment in self.not_run:
            said, self._said = experiment in self._said, self._said | {experiment}
            return "" if said else f"*Not run: `streamlabel reproduce {experiment}`.*"
        if experiment not in self.found:
            return None
        results = self.found[experiment]
        if kind != "plot":
            return results.value(part, "####")
        return results.draw(part, self.pictures, self.out.parent, ("png",))

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(name for one in self.found.values() for name in one.frame["dataset"]))

    @property
    def compared(self) -> dict[str, Frame]:
        return {name: one.compared for name, one in self.found.items()}

    @property
    def _advice(self) -> Frame:
        return by_rows({name: frame for name, frame in self.compared.items() if name in _ADVISED_BY}, used_name)

    def _by_rows(self) -> str:
        lines = standing_cells(self._advice, {"rows": "annotated rows"})
        return markdown(sections(lambda frame, compared: lines, None, None))

    def _leads(self) -> str:
        """The same in short: wins, ties and losses by competitor, a column a range of rows."""
        lines: dict[str, dict[str, str]] = {}
        for one in self._advice.itertuples():
            line = lines.setdefault(one.against, {"SLL against": one.against})
            line[f"{one.rows} rows"] = f"{one.lead} ({one.wins}, {one.ties}, {one.loses})"
        columns = ["SLL against", *(f"{rows} rows" for rows in dict.fromkeys(self._advice["rows"]))]
        return markdown({"": [{name: line.get(name, "") for name in columns} for line in lines.values()]})

    def _standings(self) -> str:
        lines = []
        for name, frame in self.compared.items():
            mine = standings(frame[frame["counted"]], ["dataset", "competitor"])
            cells = standing_cells(mine, {"dataset": "set", "competitor": "SLL against"})
            lines += [{"experiment": name, **line} for line in cells]
        return markdown(sections(lambda frame, compared: lines, None, None))

    def _kept(self, name: str) -> list[str]:
        """Every machine, or every day, that records come from, sorted."""
        return sorted({found for one in self.origins.values() for run in one.runs if (found := getattr(run, name))})

    def _runs(self) -> str:
        lines = [
            {
                "experiment": name,
                "commands": "; ".join(f"`{command}`" for command in origin.commands) or "not kept",
                "records": f"{len(self.found[name].records):,}",
                "days": origin.date or "not kept",
                "machine": "; ".join(dict.fromkeys(run.machine for run in origin.runs if run.machine)),
                "streamlabel": ", ".join(origin.commits),
            }
            for name, origin in self.origins.items()
        ]
        return markdown({"": lines})

    @property
    def data(self) -> dict[str, Any]:
        every = []
        for name, frame in self.compared.items():
            every += [
                {"experiment": name, **one} for one in plain(standings(frame, ["dataset", "competitor", "counted"]))
            ]
        return {
            "made": datetime.date.today().isoformat(),
            "experiments": {
                name: origin.as_data()
                | {"title": self.found[name].experiment.title, "n_records": len(self.found[name].records)}
                for name, origin in self.origins.items()
            },
            "not_run": list(self.not_run),
            "standings": every,
        }
