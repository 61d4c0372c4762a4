"""``streamlabel predict`` and ``evaluate``: labels for many texts or rows, and how good they are."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import click
import numpy as np
from scipy import sparse
from scipy.special import expit

from streamlabel.cli.models import has_texts, model_argument, stored_vectorizer
from streamlabel.cli.options import FileOptions, dask_option, file_options, on_cluster, read_set, read_texts, say_guess
from streamlabel.cli.output import format_table, json_option, note, plural, progress_bar, remark, write
from streamlabel.data.annotations.tools import argilla_record, prodigy_task
from streamlabel.data.csv_table import guarded
from streamlabel.data.files import replacing
from streamlabel.errors import ConflictError, DataError
from streamlabel.metrics.auc import label_auc, label_average_precision
from streamlabel.metrics.decisions import DecisionAccumulator
from streamlabel.metrics.evaluate import evaluate as measure
from streamlabel.metrics.row_blocks import RowBlocks
from streamlabel.store.model_store import ModelStore
from streamlabel.store.parts import TEXTS
from streamlabel.store.predict import RowLabels, predict_rows, rows_within
from streamlabel.store.stored_model import StoredModel
from streamlabel.streaming.calibration import Decisions
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.inputs import canonical_rows
from streamlabel.tagging.text_answers import TextIndex, filled_rows
from streamlabel.types import CSR, BoolArray, Dataset, FloatArray, TextDataset

TEXT_BYTES = 1 << 14
OF_TOOL = {"argilla": "json", "prodigy": "jsonl"}  # what a tool reads
FORM_OF_ENDING = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}


class Predicted(NamedTuple):
    """The id of a row, None where the file has none, what it was given, whether any word of it is known; its text."""

    id: str | None
    found: RowLabels
    known: bool = True
    text: str | None = None


@click.command()
@model_argument
@click.argument("file")
@file_options(labels=False, split="test")
@click.option("-k", type=click.IntRange(min=1), help="The K best labels of each row  [default: 5]")
@click.option("--thresholds", is_flag=True, help="Instead: the labels whose score exceeds their threshold.")
@click.option("--probabilities", is_flag=True, help="Also the probability of each label.")
@click.option("--id", "id_column", metavar="COLUMN", help="The column with ids, to be written  [default: id]")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write here instead of standard output.")
@click.option(
    "--to", type=click.Choice(["jsonl", "csv", *OF_TOOL]), help="How it is written  [default: by --out, else jsonl]"
)
@click.option("--force", is_flag=True, help="Overwrite a file that is there (never FILE).")
@click.option("--memory", type=click.IntRange(min=1), default=512, show_default=True, metavar="MB", help="For scoring.")
@click.option(
    "--in-blocks",
    is_flag=True,
    help="Rows of numbers in FILE, or a folder of such files, may be larger than memory. Needs --out NAME.jsonl; a run "
    "that was killed goes on where it was.",
)
@click.option("--rows-per-block", type=click.IntRange(min=1), help="Instead of what --memory allows.")
@dask_option
@json_option
def predict(
    model: Path, file: str, k: int | None, thresholds: bool, probabilities: bool, id_column: str | None,
    out: Path | None, to: str | None, force: bool, memory: int, in_blocks: bool, rows_per_block: int | None,
    dask: str | None, as_json: bool, **arguments: Any,
) -> None:  # fmt: skip
    """Labels for every text or row of FILE (- for standard input), in the order of the file.

    FILE is JSONL or CSV with texts, or one text a line (.txt), for a model of texts; else a set of rows (svmlight, XC
    text, ...). One line of JSON a row, or with --to csv (--out NAME.csv) one line a label. A score is no probability:
    it means yes where it exceeds the label's own threshold; that and the yes (true, false; in CSV yes or nothing) are
    written beside it, and with --probabilities how likely the label is. A text without a known word gets no yes; how
    many there are is said. Rows are read, scored and written block by
    block: memory does not grow with the number of texts or labels.

    --to prodigy and --to argilla write texts to be annotated there, with suggestions: the labels that are a yes, in
    Prodigy among the K best to choose from. 'streamlabel import' reads the answers.
    """
    if k is not None and thresholds:
        raise click.UsageError("give -k or --thresholds, not both")
    limit, options = memory << 20, replace(FileOptions.of(arguments), id=id_column)
    form = _form(out, to, as_json)
    if out is not None:
        _check_out(out, [file, options.labels_file], force=force)
    if in_blocks and (out is None or form != "jsonl"):
        raise click.UsageError("--in-blocks writes JSON lines to a file: give --out NAME.jsonl")
    with ModelStore.open(model, cache_bytes=limit // 2) as store, on_cluster(dask) as spread:
        if in_blocks and out is not None:
            n_rows = _predict_in_blocks(store, file, options, out, None if thresholds else k or 5, probabilities)
            remark(f"wrote {plural(n_rows, 'row')} to {out}")
            return
        size = rows_per_block or rows_within(limit // 2, TEXT_BYTES)
        blocks = _of_texts if has_texts(store) else _of_rows
        classifier = store.model(learning=False)
        scorer: _Scorer = partial(_score, classifier, stored_vectorizer(store))
        if dask is not None:
            at = str(model.resolve()), store.revision, model.stat().st_ino, limit // 2
            scorer = partial(_score_there, at)
        scorer = partial(scorer, None if thresholds else k or 5, size)
        rows = blocks(store, partial(spread, scorer), file, options, size)
        with progress_bar("predicting") as progress, _opened(out) as handle:
            counted = _counted(rows, progress)
            n_rows = write_predictions(
                counted, store.label_names, classifier.state_.decisions, handle, form, probabilities=probabilities
            )
    if out is not None:
        remark(f"wrote {plural(n_rows, 'row')} to {out}")


def _predict_in_blocks(
    store: ModelStore, file: str, options: FileOptions, out: Path, k: int | None, probabilities: bool
) -> int:
    """Write the labels of rows that do not fit into memory; how many rows."""
    from streamlabel.cli.in_blocks import source_of
    from streamlabel.scale.out_of_core import predict_files

    classifier, names = store.model(learning=False), store.label_names

    def lines(rows: Sequence[RowLabels], first: int) -> str:
        handle, found = io.StringIO(), (Predicted(None, row) for row in rows)
        decisions = classifier.state_.decisions
        write_predictions(found, names, decisions, handle, "jsonl", probabilities=probabilities, first=first)
        return handle.getvalue()

    if has_texts(store):
        raise DataError("the model takes texts, which are always read in blocks; leave out --in-blocks", source=file)
    with progress_bar("predicting", unit="bytes") as progress:
        source = source_of(file, options)
        return predict_files(classifier, source, out, k, write=lines, settings=probabilities, progress=progress)


def write_predictions(
    rows: Iterable[Predicted],
    names: Sequence[str],
    decisions: Decisions,
    handle: IO[str],
    form: str,
    *,
    probabilities: bool = False,
    first: int = 0,
) -> int:
    """``form``: "jsonl", "csv", or "json" for one document. ``decisions`` are those of the labels. How many rows.

    first : the number of the first row
    """
    n_rows, thresholds = first, decisions.thresholds
    above_all = thresholds.tolist()
    bounds = [f"{bound:.6g}" if form == "csv" or math.isfinite(bound) else "null" for bound in above_all]
    if form == "csv":
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["row", "id", "label", "score", "threshold", "yes", *(["probability"] * probabilities)])
        cells = [guarded(name) for name in names]
        for n_rows, (id_, found, known, _) in enumerate(rows, start=1):
            shown = "" if id_ is None else guarded(id_)
            likely = _probabilities(found, decisions) if probabilities else [[]] * len(found.labels)
            for label, score, more in zip(found.labels.tolist(), found.scores.tolist(), likely, strict=True):
                said = "yes" if known and score > above_all[label] else ""
                writer.writerow([n_rows - 1, shown, cells[label], f"{score:.6g}", bounds[label], said, *more])
        return n_rows
    is_array = OF_TOOL.get(form, form) == "json"
    before, between, after = ("[\n", ",\n", "\n]\n") if is_array else ("", "\n", "\n")
    quoted = [json.dumps(name, ensure_ascii=False) for name in names]
    mark = before
    for n_rows, (id_, found, known, text) in enumerate(rows, start=first + 1):
        if form in OF_TOOL:
            record = _for_tool(form, Predicted(id_, found, known, text), names, decisions)
            handle.write(f"{mark}{json.dumps(record, ensure_ascii=False)}")
            mark = between
            continue
        labels = ", ".join([quoted[label] for label in found.labels.tolist()])
        scores = ", ".join([f"{score:.6g}" for score in found.scores.tolist()])
        above = ", ".join([bounds[label] for label in found.labels.tolist()])
        said = json.dumps((known & (found.scores > thresholds[found.labels])).tolist())
        shown = "" if id_ is None else f'"id": {json.dumps(id_, ensure_ascii=False)}, '
        lists = f'"labels": [{labels}], "scores": [{scores}], "thresholds": [{above}], "yes": {said}'
        if probabilities:
            lists += f', "probabilities": [{", ".join(one for (one,) in _probabilities(found, decisions))}]'
        handle.write(f'{mark}{{"row": {n_rows - 1}, {shown}{lists}}}')
        mark = between
    handle.write(after if mark == between else "[]\n" if is_array else "")
    return n_rows


def _for_tool(tool: str, row: Predicted, names: Sequence[str], decisions: Decisions) -> dict[str, Any]:
    """A text with suggestions, as a tool reads it."""
    if row.text is None:
        raise DataError(f"{tool} annotates texts, and the model takes rows of numbers")
    said = row.known & (row.found.scores > decisions.thresholds[row.found.labels])
    offered = [names[label] for label in row.found.labels.tolist()]
    yes = [name for name, is_yes in zip(offered, said.tolist(), strict=True) if is_yes]
    if tool == "prodigy":
        return prodigy_task(row.text, row.id, offered, yes)
    mine = decisions.take(row.found.labels[said])
    chances = expit(mine.slope * row.found.scores[said] + mine.offset)
    return argilla_record(row.text, row.id, yes, chances.tolist())


def _probabilities(found: RowLabels, decisions: Decisions) -> list[list[str]]:
    mine = decisions.take(found.labels)
    return [[f"{chance:.6g}"] for chance in expit(mine.slope * found.scores + mine.offset).tolist()]


def _form(out: Path | None, to: str | None, as_json: bool) -> str:
    """How it is written: as --json or --to say, which the ending of --out must not contradict; else by the ending."""
    if as_json and to is not None:
        raise click.UsageError("give --to or --json, not both")
    asked = "json" if as_json else to
    if out is None:
        return asked or "jsonl"
    endings = [ending for ending in out.suffixes if ending not in (".gz", ".bz2")]
    ending = endings[-1] if endings else ""
    told = FORM_OF_ENDING.get(ending)
    if as_json and told != "json":
        raise click.UsageError(f"--json writes one JSON document: --out must end in .json, not {ending!r}")
    if told is None and asked is None:
        known = ", ".join(FORM_OF_ENDING)
        raise click.UsageError(f"the ending {ending!r} of --out is not known; use one of {known}, or give --to")
    if told is not None and asked is not None and told != OF_TOOL.get(asked, asked):
        raise click.UsageError(f"--to {asked} and the ending {ending!r} of --out contradict each other; drop one")
    return asked or told or "jsonl"


def _check_out(out: Path, inputs: Sequence[str | None], *, force: bool) -> None:
    """Found before the work is done: what is read is never overwritten, other files with --force."""
    if not out.exists():
        return
    for path in inputs:
        read = 0 if path == "-" else path  # the descriptor of standard input, which may come from a file
        if read is not None and os.path.exists(read) and os.path.samefile(out, read):
            raise ConflictError(f"{out} is the file that is read; choose another name for --out")
    if not force:
        raise ConflictError(f"{out} is there already; --force overwrites a file")


_Scorer = Callable[..., tuple[list[RowLabels], list[bool]]]
_Scored = Callable[[Iterable[Any]], Iterable[tuple[list[RowLabels], list[bool]]]]


def _score(
    classifier: StreamingLabelClassifier, vectorizer: Any, k: int | None, size: int, block: Any
) -> tuple[list[RowLabels], list[bool]]:
    """The labels of a block of texts or rows, and which of them have a word that is known: others exceed nothing."""
    X = block if vectorizer is None else canonical_rows(vectorizer.transform(block))
    known = [True] * X.shape[0] if vectorizer is None else filled_rows(X).tolist()
    found = zip(predict_rows(classifier, X, k=k, rows_per_block=size), known, strict=True)
    nothing = RowLabels(np.empty(0, dtype=np.intp), np.empty(0))
    return [labels if any_known or k is not None else nothing for labels, any_known in found], known


def _score_there(
    at: tuple[str, int, int, int], k: int | None, size: int, block: Any
) -> tuple[list[RowLabels], list[bool]]:
    return _score(*_opened_once(*at), k, size, block)


@lru_cache(maxsize=2)
def _opened_once(path: str, revision: int, _folder: int, cache: int) -> tuple[StreamingLabelClassifier, Any]:
    """A model on a worker: every process opens it once, and maps its weights."""
    store = ModelStore.open(path, revision=revision, cache_bytes=cache)
    return store.model(learning=False), stored_vectorizer(store)


def _of_texts(store: ModelStore, scored: _Scored, file: str, options: FileOptions, size: int) -> Iterator[Predicted]:
    rows, n_unknown = read_texts(file, options), 0
    blocks, sent = itertools.tee(iter(lambda: list(itertools.islice(rows, size)), []))
    for block, (found, known) in zip(blocks, scored([row.text for row in part] for part in sent), strict=True):
        for row, labels, any_known in zip(block, found, known, strict=True):
            yield Predicted(row.id, labels, any_known, row.text)
        n_unknown += known.count(False)
    if n_unknown:
        remark(f"{plural(n_unknown, 'text')} without a word that is known: no label is a yes there")


def _of_rows(store: ModelStore, scored: _Scored, file: str, options: FileOptions, size: int) -> Iterator[Predicted]:
    data, _ = read_set(file, options, n_features=store.n_features, need_labels=False)
    if isinstance(data, TextDataset):
        raise DataError("holds texts, and the model takes rows of numbers", source=file)
    X = set_rows(store, data, file)
    ids = itertools.repeat(None, data.n_rows) if data.row_ids is None else data.row_ids
    found = scored(X[start : start + size] for start in range(0, data.n_rows, size))
    yield from map(Predicted, ids, itertools.chain.from_iterable(labels for labels, _ in found))


def _counted(rows: Iterable[Predicted], progress: Any) -> Iterator[Predicted]:
    for number, row in enumerate(rows, start=1):
        yield row
        if not number % 500:
            progress(number, None)


@contextmanager
def _opened(out: Path | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears whole or not at all."""
    if out is None:
        yield sys.stdout
        return
    with replacing(out) as binary:
        handle = io.TextIOWrapper(binary, encoding="utf-8", newline="")
        yield handle
        handle.flush()
        handle.detach()


MEASURES = ("P@k", "nDCG@k", "macro_auc", "micro_auc")
CELLS = 1 << 25


@click.command()
@model_argument
@click.argument("file")
@file_options(split="test")
@click.option("-k", type=click.IntRange(min=1), multiple=True, default=(1, 3, 5), show_default=True, help="For P@k.")
@click.option("--per-label", is_flag=True, help="Also one line a label.")
@json_option
def evaluate(model: Path, file: str, k: tuple[int, ...], per_label: bool, as_json: bool, **arguments: Any) -> None:
    """Measure MODEL on the labelled rows of FILE (- for standard input), which it should not have learned from.

    P@k and nDCG@k rank the labels of a row, AUC the rows of a label; F1 and Hamming loss use the labels' thresholds.
    Every label of the model is taken as answered on every row; tags that the model does not know are left out and
    counted, and a row without any that it knows counts 0 in P@k and nDCG@k. Macro AUC is over the labels with rows of
    both kinds, macro F1 over those with a yes, true or said. --per-label also counts what each label said.
    """
    with ModelStore.open(model) as store:
        data, columns = read_set(file, FileOptions.of(arguments), n_features=store.n_features)
        say_guess(file, columns)
        X = set_rows(store, data, file)
        truth, unknown = _truth(store, data)
        n_of_fit = texts_of_fit(store, data)
        known = filled_rows(X) if has_texts(store) else np.ones(data.n_rows, dtype=bool)
        note(f"scoring {plural(data.n_rows, 'row')} and {plural(len(store.label_names), 'label')} ...")
        found = _measured(store.model(learning=False), X, known, truth, k, per_label, store.label_names)
    found = {"n_rows": data.n_rows, "n_labels": truth.shape[1], "unknown_tags": unknown} | found
    found["n_rows_without_tags"] = int((np.diff(truth.indptr) == 0).sum())
    found["n_rows_of_fit"] = n_of_fit
    write(found, as_json=as_json, text=lambda: _text(found))


def set_rows(store: StoredModel, data: Dataset | TextDataset, file: str) -> CSR:
    """The rows of a set of texts or numbers, as the model takes them."""
    if isinstance(data, TextDataset) != has_texts(store):
        kinds = ("texts", "rows of numbers") if has_texts(store) else ("rows of numbers", "texts")
        raise DataError(f"the model takes {kinds[0]}, and the file holds {kinds[1]}", source=file)
    if isinstance(data, TextDataset):
        return canonical_rows(stored_vectorizer(store).transform(data.texts))
    if data.n_features != store.n_features:
        raise DataError(f"has {data.n_features} features; the model has {store.n_features}", source=file)
    return canonical_rows(data.X.astype(np.float64))


def texts_of_fit(store: StoredModel, data: Dataset | TextDataset) -> int | None:
    """How many texts are those that the model was fitted on; None where it does not keep what tells."""
    if not isinstance(data, TextDataset) or TEXTS not in store.parts():
        return None
    digests = store.get_part(TEXTS).arrays.get("digests")
    if digests is None:
        return None
    index = TextIndex(digests)
    return sum(isinstance(index.key(text, "the file"), int) for text in data.texts)


def _truth(store: ModelStore, data: Dataset | TextDataset) -> tuple[CSR, int]:
    """Y (n, m) for the labels of the model, and how many labels of the file it does not know."""
    numbers = {name: number for number, name in enumerate(store.label_names)}
    known = [(j, numbers[name]) for j, name in enumerate(data.label_names) if name in numbers]
    if not known:
        raise DataError("no tag of it is a label of the model; there is nothing to measure", source=data.source)
    chosen, columns = np.array(known).T
    cells = data.Y[:, chosen].tocoo()
    truth = sparse.csr_array(
        (np.ones(cells.nnz, dtype=np.int8), (cells.row, columns[cells.col])), shape=(data.n_rows, len(numbers))
    )
    return truth, data.n_labels - len(known)


def _measured(
    model: StreamingLabelClassifier, X: CSR, known: BoolArray, truth: CSR, k: tuple[int, ...], per_label: bool,
    names: tuple[str, ...],
) -> dict[str, Any]:  # fmt: skip
    """The measures; scores are kept where there are not many, else made anew for each reading.

    known : (n,), whether a row has any known word; if not, no label is a yes
    """
    score, thresholds = model.state_.classifiers.scores, model.state_.decisions.thresholds
    scores: Any = score(X) if truth.shape[0] * truth.shape[1] <= CELLS else RowBlocks(lambda a, b: score(X[a:b]))
    found: dict[str, Any] = measure(truth, scores, tuple(sorted(set(k))), MEASURES)
    decisions = DecisionAccumulator(truth.shape[1])
    step = max(1, CELLS // truth.shape[1])
    for start in range(0, truth.shape[0], step):
        rows = slice(start, start + step)
        block = scores[rows] if isinstance(scores, np.ndarray) else score(X[rows])
        decisions.update_checked(
            truth[rows], sparse.csr_array(((block > thresholds) & known[rows, None]).astype(np.int8))
        )
    found |= decisions.result()
    f1, met = decisions.label_f1(), decisions.n_true + decisions.n_predicted > 0
    found["macro_f1"] = float(f1[met].mean()) if met.any() else math.nan
    found = {name: _number(value) for name, value in found.items()}
    found["n_labels_left_out"] = int(found.get("n_labels_left_out") or 0)
    found["n_labels_not_in_f1"] = int((~met).sum())
    if per_label:
        found["labels"] = _each(truth, scores, decisions, np.where(met, f1, math.nan), names)
    return found


def _each(
    truth: CSR, scores: Any, decisions: DecisionAccumulator, f1: FloatArray, names: tuple[str, ...]
) -> list[dict[str, Any]]:
    auc, precision = label_auc(truth, scores), label_average_precision(truth, scores)
    return [
        {
            "label": name,
            "n_true": int(decisions.n_true[j]),
            "n_predicted": int(decisions.n_predicted[j]),
            "auc": _number(auc[j]),
            "average_precision": _number(precision[j]),
            "f1": _number(f1[j]),
            "precision": _share(decisions.n_both[j], decisions.n_predicted[j]),
            "recall": _share(decisions.n_both[j], decisions.n_true[j]),
        }
        for j, name in enumerate(names)
    ]


def _share(part: int, whole: int) -> float | None:
    return round(float(part / whole), 6) if whole else None


def _number(value: float | np.floating) -> float | None:
    return None if math.isnan(value) else round(float(value), 6)


def _text(found: dict[str, Any]) -> str:
    lines = [f"{plural(found['n_rows'], 'row')}, {plural(found['n_labels'], 'label')}; in percent"]
    if 2 * (found["n_rows_of_fit"] or 0) > found["n_rows"]:
        lines.append(
            f"{found['n_rows_of_fit']:,} of {plural(found['n_rows'], 'text')} are those the model was fitted on: "
            "these figures flatter it"
        )
    if found["unknown_tags"]:
        lines.append(f"{plural(found['unknown_tags'], 'tag')} of the file left out: the model does not know them")
    if found["n_rows_without_tags"]:
        without = f"{plural(found['n_rows_without_tags'], 'row')} without a tag that the model knows"
        lines.append(f"{without}: 0 in P@k and nDCG@k, and every yes a mistake")
    measures = [name for name in found if not name.startswith("n_") and name not in ("unknown_tags", "labels")]
    rows = [[name, _percent(found[name])] for name in measures]
    lines.append(format_table(["measure", ""], rows, right=(1,)))
    if found["n_labels_left_out"]:
        lines.append(f"{plural(found['n_labels_left_out'], 'label')} with one kind of row only: not in macro AUC")
    if found["n_labels_not_in_f1"]:
        lines.append(f"{plural(found['n_labels_not_in_f1'], 'label')} with no yes, true or said: not in macro F1")
    if "labels" in found:
        figures = ("auc", "average_precision", "f1", "precision", "recall")
        cells = [
            [one["label"], str(one["n_true"]), str(one["n_predicted"]), *(_percent(one[name]) for name in figures)]
            for one in found["labels"]
        ]
        header = ["label", "true", "said yes", "AUC", "AP", "F1", "precision", "recall"]
        lines += ["", format_table(header, cells, right=range(1, 8))]
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
