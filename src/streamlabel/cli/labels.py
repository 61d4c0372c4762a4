"""``streamlabel labels``, ``relations``, ``merge``, ``threshold``: what a model knows, and adjusting it."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from streamlabel.cli.models import (
    actor_option,
    dry_run_option,
    has_texts,
    known_label,
    megabytes,
    model_argument,
    new_label_name,
    open_store,
    stored_vectorizer,
)
from streamlabel.cli.options import FileOptions, file_options, read_set, say_guess, text_rows
from streamlabel.cli.output import estimate_lines, fires_lines, format_table, json_option, plural, remark, write
from streamlabel.errors import DataError, NotFoundError, did_you_mean
from streamlabel.store.history import LabelRecord
from streamlabel.store.stored_model import StoredModel
from streamlabel.streaming.calibration import best_f1_thresholds, estimate_data
from streamlabel.validation import check_label_names

if TYPE_CHECKING:
    from streamlabel.store.model_store import ModelStore
    from streamlabel.tagging.examples import LabelExamples

SORTS = {"arrival": lambda record: record.id, "name": lambda record: record.name.casefold(),
         "yes": lambda record: -record.n_yes}  # fmt: skip


@click.command()
@model_argument
@click.argument("label", required=False)
@click.option("--match", default="", metavar="TEXT", help="Only labels with this in their name.")
@click.option("--sort", type=click.Choice(list(SORTS)), default="arrival", show_default=True, help="Their order.")
@click.option("--revision", type=int, help="Of an older revision.")
@json_option
def labels(model: Path, label: str | None, match: str, sort: str, revision: int | None, as_json: bool) -> None:
    """The labels of MODEL: ids, answers they were learned from, thresholds, where they came from; or one LABEL.

    Texts that were only taken for no (see add-label) count as no. Where a label was learned from found examples, the
    precision and the recall that are expected of it stand there, too; for one LABEL in words.
    """
    with StoredModel.read(model, revision=revision) as store:
        records, sizes, number = store.labels(), store.sizes(), store.revision
        wanted = None if label is None else known_label(store.label_names, label, model)
        chosen = [one for one in records if wanted in (None, one.name) and match.casefold() in one.name.casefold()]
        beside = _beside(store, {one.name for one in chosen})
        learned = store.learned_threshold(chosen[0]) if wanted is not None and chosen else math.nan
        n_features = store.n_features
    estimates = {name: parts[-1][1].get("estimate") for name, parts in beside.items()}
    chosen.sort(key=SORTS[sort])
    data: dict[str, Any] = {
        "revision": number,
        "n_labels": len(records),
        "bytes": {**dataclasses.asdict(sizes), "total": sizes.total},
        "labels": [
            dataclasses.asdict(record) | {"estimate": estimate_data(estimates.get(record.name))} for record in chosen
        ],
    }
    if wanted is not None:
        return write(data, as_json=as_json, text=lambda: "\n".join(
            _card(one, _known(beside.get(one["name"]), n_features, model), learned) for one in data["labels"]
        ))  # fmt: skip
    shown = [one["estimate"] for one in data["labels"]]
    rows = [
        [
            str(record.id), record.name, str(record.n_yes), str(record.n_no),
            "-" if record.n_unasked is None else str(record.n_unasked), f"{record.threshold:.3f}", record.origin,
            "yes" if record.anchored or record.share else "", str(record.born), record.born_at[:10],
            *([_share(estimate, "precision"), _share(estimate, "recall")] if any(shown) else []),
        ]
        for record, estimate in zip(chosen, shown, strict=True)
    ]  # fmt: skip
    header = ["id", "label", "yes", "no", "not asked", "threshold", "from", "used past", "revision", "born"]
    header += ["precision", "recall"] if any(shown) else []
    size = f"{megabytes(sizes.total)} on the disk, {megabytes(sizes.learning)} of it to go on learning"
    last = f"{plural(len(chosen), 'label')}, revision {number}, {size}"
    write(data, as_json=as_json, text=lambda: f"{format_table(header, rows, right=(0, 2, 3, 4, 5, 8, 10, 11))}\n{last}")


def _beside(store: StoredModel, names: set[str]) -> dict[str, list[tuple[int, Any]]]:
    """What is kept beside some labels (`tagging.examples`), as it is stored; a remark on those that are damaged."""
    found = {}
    for number in store.with_something_beside():
        if (name := store.label_names[number]) in names:
            try:
                found[name] = [(one, content) for one, content in store.beside(number) if isinstance(content, dict)]
            except DataError as error:
                remark(f"warning: {error.problem}; run 'streamlabel doctor {store.path}'")
    return {name: parts for name, parts in found.items() if parts}


def _known(parts: list[tuple[int, Any]] | None, n_features: int, model: Path) -> LabelExamples | None:
    """The answers of a label, read."""
    if not parts:
        return None
    from streamlabel.tagging.examples import LabelExamples  # with scikit-learn, which takes a second

    return LabelExamples.from_parts(parts, n_features, model)


def _share(estimate: dict[str, Any] | None, measure: str) -> str:
    return "" if estimate is None or estimate[measure] is None else f"{estimate[measure]['value']:.0%}"


def _card(one: dict[str, Any], known: LabelExamples | None, learned: float) -> str:
    """One label in words; ``learned`` is the threshold that its estimate is for."""
    n_yes, n_no, asked = one["n_yes"], one["n_no"], ""
    if known is not None and len(known.answers):
        n_yes, n_no = int(known.answers.sum()), int((~known.answers).sum())
        asked = f", {plural(int(known.asked.sum()), 'answer')} of these to questions"
    lines = [
        f"{one['name']}: id {one['id']}, {one['origin']}, since revision {one['born']} ({one['born_at'][:10]})",
        *([known.about] if known is not None and known.about else []),
        f"learned from {n_yes:,} yes and {n_no:,} no{asked}; yes is a score above {one['threshold']:.3f}",
    ]
    if one["estimate"] is not None and learned != one["threshold"]:
        lines.append(f"at the threshold that it was learned with, {learned:.3f}:")
    return "\n".join([*lines, *estimate_lines(one["estimate"], n_yes, 0 if known is None else n_no)])


@click.command()
@model_argument
@click.argument("label", required=False)
@click.option("-k", type=click.IntRange(min=1), default=5, show_default=True, help="At most so many a label.")
@json_option
def relations(model: Path, label: str | None, k: int, as_json: bool) -> None:
    """Which labels a label was learned to resemble, with signed weights; for LABEL, also who resembles it.

    Labels of fit resemble none: they were learned from all rows, without the help of others.
    """
    with StoredModel.read(model) as store:
        names = store.label_names
        wanted = None if label is None else known_label(names, label, model)
        classifier = store.model(learning=False)
    chosen = names if wanted is None else (wanted,)
    pairs = [(name, near, weight) for name in chosen for near, weight in classifier.neighbours(name, k)]
    data: dict[str, Any] = {"relations": _pairs(pairs)}
    if wanted is not None:
        number = names.index(wanted)
        row = classifier.structure_.tocsr()[[number], :].tocoo()
        back = [(names[int(j)], wanted, float(weight)) for j, weight in zip(row.col, row.data, strict=True)]
        data["resembled_by"] = _pairs(sorted(back, key=lambda pair: -abs(pair[2]))[:k])
    write(data, as_json=as_json, text=lambda: _text(data, wanted))


def _pairs(pairs: list[tuple[str, str, float]]) -> list[dict[str, Any]]:
    return [{"label": label, "resembles": near, "weight": weight} for label, near, weight in pairs]


def _text(data: dict[str, Any], wanted: str | None) -> str:
    found = data["relations"] + data.get("resembled_by", [])
    if not found:
        return "no relation" if wanted is None else f"{wanted!r} resembles no label, and none resembles it"
    rows = [
        [pair["label"], "resembles" if pair["weight"] > 0 else "is unlike", pair["resembles"], f"{pair['weight']:+.3f}"]
        for pair in found
    ]
    return format_table(["label", "", "label", "weight"], rows, right=(3,))


AUTO = "auto"
LEAST_TO_TUNE = 10
LOST = "what was answered for them is not kept with it; 'streamlabel rollback' brings them back"
AVERAGED = f"their mean, for not all answers are kept\n{LOST}"
HOW = {"relearned": "learned again from all their answers", "averaged": AVERAGED}


@click.command()
@model_argument
@click.argument("names", nargs=-1, required=True, metavar="FROM...")
@click.argument("into")
@actor_option
@dry_run_option
@json_option
def merge(model: Path, names: tuple[str, ...], into: str, actor: str, dry_run: bool, as_json: bool) -> None:
    """One label INTO in place of the labels FROM, and of the label INTO where there is one.

    It is learned again from all their answers where these are kept, else it is their mean, weighted by yes answers. It
    has an id of its own; rollback brings the others back.
    """
    with open_store(model, dry_run=dry_run, actor=actor) as store:
        known = store.label_names
        chosen = list(dict.fromkeys(known_label(known, name, model) for name in names))
        target = into if into in known else new_label_name(into, known)
        check_label_names([target], 1)
        if target in known and target not in chosen:
            chosen.append(target)
        if len(chosen) < 2:
            hint = did_you_mean(target, (name for name in known if name not in chosen)) or "rename gives another name"
            problem = "merging takes two labels" if target in known else f"no label is called {target!r}"
            raise NotFoundError(f"{model}: {problem}; {hint}")
        number = None if dry_run else store.merge(chosen, target)
        how = None if dry_run else store.history()[0].detail["how"]
    found = {"revision": number, "dry_run": dry_run, "labels": chosen, "into": target, "how": how}
    said = f"{' and '.join(map(repr, chosen))} into {target!r}"
    if how is None:
        said = f"would merge {said}\nnothing was changed (--dry-run)"
    else:
        said = f"merged {said}: {HOW[how]}\non the disk as revision {number}"
    write(found, as_json=as_json, text=lambda: said)


@click.command(context_settings={"ignore_unknown_options": True})  # a threshold may be negative
@model_argument
@click.argument("label")
@click.argument("value", required=False, metavar="[VALUE|auto]")
@click.option("--tune", metavar="FILE", help="Set the one with the best F1 on the labelled texts or rows of FILE.")
@click.option(
    "--precision", type=click.FloatRange(0.0, 1.0, min_open=True),
    help="Set the lowest one at which at least this share of its yes should be right.",
)  # fmt: skip
@click.option("--pool", metavar="FILE", help="For --precision: texts as they come now; by default those of fit.")
@file_options()
@actor_option
@dry_run_option
@json_option
def threshold(
    model: Path, label: str, value: str | None, tune: str | None, precision: float | None, pool: str | None,
    actor: str, dry_run: bool, as_json: bool, **arguments: Any,
) -> None:  # fmt: skip
    """Show or set the score above which LABEL is a yes; auto goes back to the one that it was learned with.

    It also says on how many of fit's texts the label fires. That helps to choose: with --dry-run nothing is changed.

    --tune needs texts that it was not learned from, ten with LABEL and ten without at least. --precision goes by the
    label's probabilities on a pool; a label that was learned from found examples is learned again for it.
    """
    if sum(one is not None for one in (value, tune, precision)) > 1:
        raise click.UsageError("give one of VALUE, --tune and --precision")
    if pool is not None and precision is None:
        raise click.UsageError("--pool is for --precision")
    wanted, only_asked, options = _number(value), value is tune is precision is None, FileOptions.of(arguments)
    changes = not only_asked and not dry_run
    with open_store(model, dry_run=not changes and precision is None, actor=actor) as store:
        label = known_label(store.label_names, label, model)
        record = next(one for one in store.labels() if one.name == label)
        found: dict[str, Any] = {"label": label, "before": record.threshold, "learned": store.learned_threshold(record)}
        if precision is not None and store.beside(store.label_names.index(label)):
            found |= _learned_precisely(store, label, precision, pool, options, dry_run=dry_run)
        else:
            if tune is not None:
                found |= _tuned(store, record, tune, options)
            elif precision is not None:
                found |= _precise(store, label, precision, pool, options)
            else:
                new = record.threshold if value is None else found["learned"] if wanted is None else wanted
                found["threshold"] = new
            found["fires"] = _fires(store, label, found["threshold"])
            found["revision"] = store.set_threshold(label, found["threshold"]) if changes else None
        unit = "text" if has_texts(store) else "row"
    found["dry_run"] = dry_run
    write(found, as_json=as_json, text=lambda: "\n".join(_shown(found, only_asked, unit)))


def _tuned(store: StoredModel, record: LabelRecord, file: str, options: FileOptions) -> dict[str, Any]:
    """The threshold with the best F1 on labelled texts or rows."""
    from streamlabel.cli.scoring import set_rows, texts_of_fit
    from streamlabel.tagging.text_answers import filled_rows

    data, columns = read_set(file, options, n_features=store.n_features)
    say_guess(file, columns)
    X = set_rows(store, data, file)
    if record.name not in data.label_names:
        hint = did_you_mean(record.name, data.label_names) or "it must be among its tags"
        raise NotFoundError(f"{file}: {record.name!r} is not there; {hint}")
    truth = data.Y[:, [data.label_names.index(record.name)]].toarray()[:, 0] > 0
    n_yes, n_no = int(truth.sum()), int((~truth).sum())
    if min(n_yes, n_no) < LEAST_TO_TUNE:
        problem = (
            f"{n_yes} of {n_yes + n_no} have {record.name!r}; at least {LEAST_TO_TUNE} with and without are needed"
        )
        raise DataError(problem, source=file)
    if 2 * (texts_of_fit(store, data) or 0) > len(truth):
        remark(f"{file}: most texts are those the model was fitted on; the figures flatter it")
    number = store.label_names.index(record.name)
    scores = store.model(learning=False).state_.classifiers.scores(X, np.array([number]))[:, 0]
    known = filled_rows(X) if has_texts(store) else np.ones(len(truth), dtype=bool)
    new = float(best_f1_thresholds(scores[known, None], truth[known, None].astype(np.float64))[0])
    if math.isnan(new):
        raise DataError(f"no text with {record.name!r} has a word that is known", source=file)
    said = [known & (scores > value) for value in (record.threshold, new)]
    before, after = (2.0 * float((truth & one).sum()) / float(truth.sum() + one.sum()) for one in said)
    return {"threshold": new, "tuned": {"n_yes": n_yes, "n_no": n_no, "f1_before": before, "f1": after}}


def _precise(
    store: StoredModel, label: str, precision: float, pool: str | None, options: FileOptions
) -> dict[str, Any]:
    """The threshold for a precision by calibrated probabilities, on the pool or on unseen scores of fit's rows."""
    from streamlabel.streaming.found import threshold_for_precision

    model, number = store.model(learning=pool is None), store.label_names.index(label)
    X = None if pool is None else _pool_rows(store, pool, options)
    try:
        threshold, reached, recall, n_pool = threshold_for_precision(model.state_, number, precision, X)
    except DataError as error:
        raise DataError(error.problem.replace("a pool", "--pool FILE"), source=store.path) from None
    return {"threshold": threshold, "expected": {"precision": reached, "recall": recall, "n_pool": n_pool}}


def _pool_rows(store: StoredModel, pool: str, options: FileOptions) -> Any:
    """The rows of a pool: of texts those with a known word."""
    from streamlabel.cli.scoring import set_rows
    from streamlabel.streaming.inputs import canonical_rows
    from streamlabel.tagging.text_answers import filled_rows

    vectorizer = stored_vectorizer(store)
    if vectorizer is None:
        data, _ = read_set(pool, options, n_features=store.n_features, need_labels=False)
        return set_rows(store, data, pool)
    X = canonical_rows(vectorizer.transform([row.text for row in text_rows(pool, options)]))
    return X[filled_rows(X)]


def _learned_precisely(
    store: ModelStore, label: str, precision: float, pool: str | None, options: FileOptions, *, dry_run: bool
) -> dict[str, Any]:
    """Learn a label again from its answers, with the threshold for a precision."""
    from streamlabel.tagging.learn_report import fires_data
    from streamlabel.tagging.tagger import Tagger

    tagger = Tagger.of_store(store)
    texts = None if pool is None else [row.text for row in text_rows(pool, options)]
    report = (tagger.in_memory() if dry_run else tagger).learn_more(label, pool=texts, precision=precision)
    return {
        "threshold": report.threshold,
        "learned": report.threshold,
        "fires": fires_data(report.fires),
        "pool": report.pool,
        "estimate": estimate_data(report.estimate),
        "revision": None if dry_run else store.revision,
    }


def _number(value: str | None) -> float | None:
    """A finite number; None for auto."""
    if value is None or value == AUTO:
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise click.UsageError(f"{value!r} is no threshold; give a number, or {AUTO}")
    return number


def _fires(store: StoredModel, label: str, value: float) -> dict[str, int] | None:
    from streamlabel.tagging.learn_report import count_fires, fires_data

    model = store.model()
    thresholds, number = model.thresholds_, store.label_names.index(label)
    thresholds[number] = value
    model.thresholds_ = thresholds
    return fires_data(count_fires(model, number))


def _shown(found: dict[str, Any], only_asked: bool, unit: str) -> list[str]:
    was = "" if only_asked else f", before {found['before']:.3f}"
    learned = "" if found["learned"] == found["threshold"] else f", learned with {found['learned']:.3f}"
    lines = [f"{found['label']}: yes is a score above {found['threshold']:.3f}{was}{learned}"]
    if "tuned" in found:
        tuned = found["tuned"]
        lines.append(
            f"F1 {tuned['f1']:.2f} on {tuned['n_yes']:,} {unit}s with it and {tuned['n_no']:,} without, "
            f"before {tuned['f1_before']:.2f}"
        )
    if "expected" in found:
        right, finds = found["expected"]["precision"], found["expected"]["recall"]
        lines.append(f"about {right:.0%} of its yes should be right; it should find about {finds:.0%} of its {unit}s")
    whatever = "" if "pool" in found else ", whatever pool it was learned with"
    lines += fires_lines(found["fires"], unit, found.get("pool", "fit"), whatever)
    lines += estimate_lines(found.get("estimate"))
    if not only_asked:
        stored = f"on the disk as revision {found['revision']}"
        lines.append("nothing was changed (--dry-run)" if found["dry_run"] else stored)
    return lines
