"""The tagger: texts and label names in, label names with scores out; it learns new labels while in use."""

from __future__ import annotations

import copy
import functools
import os
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from streamlabel.data.terms import check_texts
from streamlabel.errors import ConflictError, DataError, Hint
from streamlabel.metrics.topk import check_k
from streamlabel.store.append import write_model
from streamlabel.store.model_store import ModelStore
from streamlabel.store.parts import ANSWERS, LATER_TEXTS, NAMES, TEXTS, VECTORIZER, Part
from streamlabel.streaming.calibration import Estimate, sigmoid
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.found import Pool, run_found, with_precision
from streamlabel.streaming.found_trials import FoundRecipe
from streamlabel.streaming.judgement import Judgement
from streamlabel.streaming.kept_rows import stack
from streamlabel.tagging.examples import LabelExamples
from streamlabel.tagging.learn_report import LearnReport, UpdateReport, report_answers
from streamlabel.tagging.names import TextDirections, check_reader, stored_reader
from streamlabel.tagging.questions import Question, choose_questions
from streamlabel.tagging.reading import ReadingTagger
from streamlabel.tagging.text_answers import (
    DIGEST,
    Answers,
    TextIndex,
    TextPool,
    check_known_words,
    check_without_pool,
    filled_rows,
    gather_answers,
    no_known_words,
    read_answers,
    read_new_answers,
    read_tags,
    two_sides,
)
from streamlabel.tagging.vectorizers import VectorizerState, make_vectorizer, restore_vectorizer
from streamlabel.types import CSR, IntArray
from streamlabel.validation import check_label_names


class Tagger(ReadingTagger):
    """A tagger of texts: it suggests label names with scores, and learns new labels while in use.

    It lives in memory, or, if `open` made it, in a directory that `save` wrote: then a label is on the disk when
    `learn` returns (`store`).

    Parameters
    ----------
    vectorizer : "tfidf", "hashing", a scikit-learn vectoriser, or a function from a list of texts to rows (embeddings)
        Objects are cloned and fitted by `fit`; a function is used as it is (pass ``vectoriser.transform`` to keep one
        that is fitted already).
    classifier : StreamingLabelClassifier, cloned by `fit`; None for one with its defaults
    names : what reads the names of labels: "words", "static" (words, and static embeddings: extra ``names``), an
        encoder of your own (`tagging.names.NameEncoder`), or None for nothing

    Attributes
    ----------
    label_names_ : tuple of str, in order of arrival
    vectorizer_, classifier_ : the fitted ones

    Examples
    --------
    >>> from streamlabel import Tagger
    >>> texts = ["bird flu found on a farm", "flu vaccine tested", "farm prices fall", "prices rise again"]
    >>> tagger = Tagger().fit(texts, [["health", "farming"], ["health"], ["farming", "economy"], ["economy"]])
    >>> [name for name, score in tagger.suggest("prices on the farm", k=2)]
    ['farming', 'economy']
    """

    _kept: dict[str, LabelExamples]
    _later: NDArray[np.uint8]
    _store: ModelStore | None = None
    _reader: TextDirections | None = None

    def __init__(
        self, vectorizer: Any = "tfidf", classifier: StreamingLabelClassifier | None = None, names: Any = "words"
    ) -> None:
        self.vectorizer = vectorizer
        self.classifier = classifier
        self.names = names

    def fit(
        self, texts: Iterable[str], labels: Iterable[Iterable[str]] | ArrayLike | CSR, label_names: Any = None
    ) -> Self:
        """Learn labels from texts on which all of them were answered. Forgets everything learned before.

        labels : a list of names for each text; or a matrix (n, m) of 0/1, whose columns ``label_names`` names
        """
        if self._store is not None:
            raise ConflictError(f"this tagger lives in {self._store.path}; fit a new Tagger, and save it elsewhere")
        checked = check_texts(texts)
        Y, names = read_tags(labels, label_names, len(checked))
        classifier = StreamingLabelClassifier() if self.classifier is None else self.classifier
        if not isinstance(classifier, StreamingLabelClassifier):
            raise DataError(f"classifier is of type {type(classifier).__name__}; give a StreamingLabelClassifier")
        vectorizer = make_vectorizer(self.vectorizer, len(checked))
        reader = TextDirections.of(self.names, vectorizer)
        learned = clone(classifier).fit(vectorizer.fit_transform(checked), Y, names)
        self._adopt(vectorizer, learned, TextIndex.of(checked))
        self._reader = reader
        if learned.tune == "fit":
            run_found(learned.state_, reader, learned.random_state)
        return self

    @classmethod
    def from_parts(
        cls,
        vectorizer: VectorizerState | Any,
        classifier: StreamingLabelClassifier,
        *,
        digests: NDArray[np.uint8] | None = None,
        brought: Any = None,
        names: Any = "words",
    ) -> Self:
        """Make a tagger of a fitted vectoriser (or its state) and a fitted classifier.

        digests : those of fit's texts (`text_digests_`), so that these are recognised
        brought : the fitted vectoriser, if the state only names one
        """
        fitted = restore_vectorizer(vectorizer, brought) if isinstance(vectorizer, VectorizerState) else vectorizer
        if not hasattr(classifier, "state_"):
            raise DataError("the classifier is not fitted; fit it first")
        n_columns = getattr(fitted, "idf_", np.empty(classifier.n_features_in_)).shape[0]
        if n_columns != classifier.n_features_in_:
            raise DataError(
                f"the vectoriser makes {n_columns} columns and the classifier has {classifier.n_features_in_}; "
                "they do not belong together"
            )
        memory = classifier.state_.memory
        n_rows = 0 if memory is None else int(memory.X.shape[0])
        known = np.empty((0, 16), dtype=np.uint8) if digests is None or not n_rows else np.asarray(digests)
        if digests is not None and n_rows and known.shape != (n_rows, 16):
            raise DataError(f"{len(known)} digests of texts for {n_rows} rows; they do not belong together")
        (tagger := cls(fitted, classifier, names))._adopt(fitted, classifier, TextIndex(known))
        return tagger

    @property
    def label_names_(self) -> tuple[str, ...]:
        """The label names in order of arrival."""
        self._check_fitted()
        return self.classifier_.label_names_

    def update(
        self, texts: Iterable[str], tags: Iterable[Iterable[str]] | ArrayLike | CSR, labels: Iterable[str] | None = None
    ) -> UpdateReport:
        """Learn labels of `fit` again, from its texts and new ones with known tags. Other labels stay to the last bit.

        They become what `fit` on all these texts gives with its vocabulary (`streaming.later_rows`). Texts of fit, and
        answers that an earlier update gave, are left out.

        tags : a list of names for each text
        labels : those that are answered on every new text; default: the labels of fit that are among the tags
        """
        begin = time.perf_counter()
        self._check_fitted()
        self._check_store()
        state, digests = self.classifier_.state_, self._later_digests()
        new = read_new_answers(check_texts(texts), tags, labels, state, self._index, digests)
        X, digests = self._features(new.texts), np.vstack((digests, TextIndex.of(new.texts).digests))
        if self._store is None:
            self.classifier_ = copy.copy(self.classifier_).update(X, new.answers, new.labels, annotated=new.asked)
            self._later = digests
        else:
            parts = {LATER_TEXTS: Part({}, {"digests": digests})}
            self._store.update(X, new.answers, new.labels, annotated=new.asked, parts=parts)
            self.classifier_ = self._store.model()
        later, unknown = (tuple(one for one in new.others if (one in state.names) is known) for known in (True, False))
        seconds = time.perf_counter() - begin
        return UpdateReport(new.labels, self._index.n_rows, len(new.texts), new.n_known, later, unknown, seconds)

    def learn(
        self,
        name: str,
        yes: Iterable[str | int] = (),
        no: Iterable[str | int] = (),
        *,
        about: str = "",
        pool: Iterable[str] | TextPool | None = None,
        sampled: bool = False,
    ) -> LearnReport:
        """Learn a new label. The others stay as they are, to the last bit of every score.

        yes, no : texts, or numbers of fit's texts, for which the answer is known. They may be found: chosen because of
            their answer. Without any the name alone has to do, and is refused if trials say that names are worth
            nothing here.
        about : a description, read as part of the name
        pool : texts as they come now, that nobody has looked at: by them is told how often the label applies, where its
            threshold lies and how good it is. Texts, or what `pool` made of them. Default: the texts of fit.
        sampled : the answers are those of texts drawn at random, every one of them. They are then taken at their word,
            and name and pool are not used.
        """
        return self.learn_many({name: (yes, no)}, about={name: about}, pool=pool, sampled=sampled)[0]

    def learn_many(
        self,
        answers: Mapping[str, tuple[Iterable[str | int], Iterable[str | int]]],
        *,
        about: Mapping[str, str] | None = None,
        pool: Iterable[str] | TextPool | None = None,
        sampled: bool = False,
    ) -> list[LearnReport]:
        """Learn several labels at once, ``{name: (yes, no)}``: all of them, or none if something is wrong."""
        self._check_fitted()
        if "" in answers:
            raise DataError("the name of the label is empty; give it one")
        if not (names := check_label_names(answers, len(answers))):
            return []
        for name in names:
            if name in self.classifier_.state_.names:
                raise ConflictError(
                    f"label {name!r} is known already; choose another name, learn_more({name!r}, ...) to add answers, "
                    f"or relearn({name!r}, ...) to begin anew"
                )
        return self._learn(names, answers.values(), about or {}, pool, sampled, None)

    def relearn(
        self,
        name: str,
        yes: Iterable[str | int] = (),
        no: Iterable[str | int] = (),
        *,
        about: str = "",
        pool: Iterable[str] | TextPool | None = None,
        sampled: bool = False,
    ) -> LearnReport:
        """Learn a label of `learn` anew, from these answers alone. The others stay as they are."""
        number = self._grown_label(name)
        name = self.classifier_.state_.names[number]
        return self._learn((name,), [(yes, no)], {name: about}, pool, sampled, number)[0]

    def learn_more(
        self,
        name: str,
        yes: Iterable[str | int] = (),
        no: Iterable[str | int] = (),
        *,
        asked: bool = False,
        about: str = "",
        pool: Iterable[str] | TextPool | None = None,
        precision: float | None = None,
        withdrawn: Iterable[str | bytes] = (),
    ) -> LearnReport:
        """Learn a label further: from the answers it has and from these, which count where they contradict.

        asked : these texts were put as questions (`next`), not found because of their answer; only then do they tell
            how often the label is right
        withdrawn : texts, or their digests, whose answers it has and shall forget
        precision : put the threshold where at least this precision is expected, instead of the best F1
        """
        number = self._grown_label(name)
        name = self.classifier_.state_.names[number]
        rest: dict[str, Any] = {"asked": asked, "precision": precision, "withdrawn": tuple(withdrawn)}
        return self._learn((name,), [(yes, no)], {name: about}, pool, False, number, more=True, **rest)[0]

    def answer(self, label: str, text: str, yes: bool, *, pool: Iterable[str] | TextPool | None = None) -> LearnReport:
        """Answer one question (`next`) about a label, and learn it again from all of its answers.

        pool : as in `learn`; give it each time, for without one the label is judged by the texts of fit
        """
        if not isinstance(yes, bool | np.bool_):
            raise DataError(f"the answer is {yes!r}; give True for yes, or False for no")
        return self.learn_more(label, *(([text], []) if yes else ([], [text])), asked=True, pool=pool)

    def pool(self, texts: Iterable[str] | TextPool) -> TextPool:
        """Texts as they come, read once, to be used again and again: by `learn`, `answer` and `next`."""
        if isinstance(texts, TextPool):
            if texts.rows.shape[1] != self.classifier_.n_features_in_:
                raise DataError("the pool was read by another tagger; give its texts")
            return texts
        self._check_fitted()
        once = list(dict.fromkeys(check_texts(texts)))
        return TextPool(self._features(once) if once else self._no_rows(), TextIndex.of(once).digests, tuple(once))

    def next(self, label: str, pool: Iterable[str] | TextPool | None = None, n: int = 10) -> list[Question]:
        """The n texts of a pool whose answers would help a label most, the best first (`tagging.questions`)."""
        n, number, known = check_k(n), self._number(label), self.examples(label)
        if pool is None:
            raise DataError("give a pool to ask about, texts as they come now that nobody has looked at: pool=[...]")
        looked = self.pool(pool) if known is None else self.pool(pool).without(known.digests)
        filled = np.flatnonzero(filled_rows(looked.rows))
        if not filled.size:
            return []
        X, state = looked.rows[filled], self.classifier_.state_
        scores = state.classifiers.scores(X, np.array([number]))[:, 0]
        chances = sigmoid(scores, state.decisions.slope[number], state.decisions.offset[number])
        n_yes, n_asked = (0, 0) if known is None else (int(known.answers.sum()), int(known.asked.sum()))
        chosen = choose_questions(X, scores, float(state.decisions.thresholds[number]), n_yes, n, n_asked)
        return [Question(looked.texts[filled[at]], float(chances[at]), float(scores[at]), why) for at, why in chosen]

    def estimate(self, label: str) -> Estimate | None:
        """How good a label was thought to be when it was learned; None if nothing was estimated."""
        known = self.examples(label)
        return None if known is None else known.estimate

    def examples(self, label: str) -> LabelExamples | None:
        """The answers that a label was learned from, without the texts; None if they were not kept."""
        number = self._number(label)
        if self._store is None:
            return self._kept.get(self.classifier_.state_.names[number])
        n_features, path = self.classifier_.n_features_in_, self._store.path
        contents = self._store.beside(number)
        return LabelExamples.from_parts(contents, n_features, path) if contents else None

    def save(
        self, path: str | os.PathLike[str], *, keep_rows: bool = True, private: bool = True, actor: str = ""
    ) -> None:
        """Write the tagger into a new directory. This one goes on in memory; `open` goes on there.

        keep_rows : keep what is needed to learn labels there as well as here: the features of fit's texts and their
            answers; never the texts themselves. Without, a new label needs texts for yes and for no.
        private : nobody else on this machine may read the directory; False leaves that to the umask

        Weights are rounded to float32. A vectoriser of the user's own is not stored, only its name.
        """
        if keep_rows and self._store is not None:  # where it was opened to read, the rows are not read yet
            if NAMES in self._store.parts():
                check_reader(self._store.get_part(NAMES).content, self._reader_version(), self._store.path)
            return self.in_memory().save(path, private=private, actor=actor)
        state = self.vectorizer_state()
        parts = {VECTORIZER: Part(state.content, state.arrays)}
        if keep_rows:
            parts[TEXTS] = Part({}, {"digests": self.text_digests_})
            if len(later := self._later_digests()):
                parts[LATER_TEXTS] = Part({}, {"digests": later})
        numbers = {name: number for number, name in enumerate(self.label_names_, start=1)}
        for name, known in self._all_examples().items():
            parts[f"{ANSWERS}{numbers[name]}"] = Part(known.content())
        parts[NAMES] = Part({"reader": self._reader_version()})
        write_model(Path(path), self.classifier_, keep_rows=keep_rows, parts=parts, private=private, actor=actor)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        mode: str = "r",
        *,
        vectorizer: Any = None,
        names: Any = "stored",
        mapped: bool = True,
        actor: str = "",
    ) -> Self:
        """Open a saved tagger to read ("r") or to learn ("a"): then a label is on the disk when `learn` returns.

        vectorizer : the fitted one, or the function, if the tagger was saved with one of the user's own
        names : what reads names; "stored" is what did when the tagger was saved. An encoder of the user's own is not
            stored: pass it again to learn
        mapped : False reads the classifiers instead of mapping their files (`ModelStore.open`)
        """
        store = ModelStore.open(path, mode, mapped=mapped, actor=actor)
        try:
            return cls.of_store(store, vectorizer=vectorizer, names=names)
        except BaseException:
            store.close()
            raise

    @classmethod
    def of_store(cls, store: ModelStore, *, vectorizer: Any = None, names: Any = "stored") -> Self:
        """Make the tagger of a store that is open already; it can learn if the store was opened to append."""
        parts = store.parts()
        if VECTORIZER not in parts:
            raise DataError("a model without texts", source=store.path, hint=Hint.TAKES_ROWS)
        part = store.get_part(VECTORIZER)
        digests = store.get_part(TEXTS).arrays.get("digests") if TEXTS in parts and store.can_write else None
        read_by = store.get_part(NAMES).content if NAMES in parts else {}
        stored = isinstance(names, str) and names == "stored"
        if stored:
            names = stored_reader(read_by, store.path, learning=store.can_write)
        tagger = cls.from_parts(
            VectorizerState(part.content, part.arrays),
            store.model(learning=store.can_write),
            digests=digests,
            brought=vectorizer,
            names=names,
        )
        tagger._store = store
        if not stored and store.can_write:
            check_reader(read_by, tagger._reader_version(), store.path)
        return tagger

    @property
    def store(self) -> ModelStore:
        """The store of this tagger: history, `rename`, `retire`, `rollback`; call `refresh` after a change there."""
        if self._store is None:
            raise ConflictError("this tagger lives in memory; save it, and open it where it was saved")
        return self._store

    def refresh(self) -> None:
        """Read the newest revision: after a change in the `store`, or, for a reader, by the writer."""
        self.store.refresh()
        self.classifier_ = self.store.model(learning=self.classifier_.state_.memory is not None)

    def close(self) -> None:
        """Close the store so that others can write; this tagger can be read on."""
        if self._store is not None:
            self._store.close()

    def in_memory(self) -> Tagger:
        """A tagger of the same labels that lives in memory: what it learns is not stored."""
        copied = copy.copy(self)
        if self._store is not None and self.classifier_.state_.memory is None and TEXTS in self._store.parts():
            copied.classifier_ = self._store.model()
            copied._index = TextIndex(self._store.get_part(TEXTS).arrays["digests"])
        return copied

    def __getstate__(self) -> Any:
        """A copy, or a pickle, lives in memory: it does not write where this one does."""
        state = {name: value for name, value in super().__getstate__().items() if name != "_store"}
        if self._store is not None:
            state |= {"_kept": self._all_examples(), "_later": self._later_digests()}
        return state

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _check_store(self) -> None:
        """An error unless what is learned can be stored where this tagger lives."""
        if self._store is not None:
            self._store.check_writing()
            if self._store.label_names != self.label_names_:
                raise ConflictError(f"{self._store.path} was changed since it was read; call refresh() first")

    def _later_digests(self) -> NDArray[np.uint8]:
        """The digests of the texts of updates."""
        if self._store is None or LATER_TEXTS not in self._store.parts():
            return self._later if self._store is None else np.empty((0, DIGEST), dtype=np.uint8)
        return self._store.get_part(LATER_TEXTS).arrays["digests"]

    def _adopt(self, vectorizer: Any, classifier: StreamingLabelClassifier, index: TextIndex) -> None:
        if classifier.features is not None:
            raise DataError("a Tagger explains what words weigh; its classifier cannot have the parameter features")
        self.vectorizer_, self.classifier_, self._index = vectorizer, classifier, index
        self._reader, self._kept, self._later = None, {}, np.empty((0, DIGEST), dtype=np.uint8)

    def _learn(
        self,
        names: tuple[str, ...],
        given: Iterable[Any],
        about: Mapping[str, str],
        pool: Iterable[str] | TextPool | None,
        sampled: bool,
        number: int | None,
        *,
        more: bool = False,
        asked: bool = False,
        precision: float | None = None,
        withdrawn: tuple[str | bytes, ...] = (),
    ) -> list[LearnReport]:
        """Learn labels, or one of this number again; ``more``: from the answers that it has, too."""
        begin = time.perf_counter()
        self._check_store()
        batch = [
            read_answers(name, *two_sides(name, sides), self._index) for name, sides in zip(names, given, strict=True)
        ]
        nothing = pool is precision is None and not withdrawn
        if more and nothing and not any(one.keys or about.get(one.name) for one in batch):
            raise DataError(f"nothing new about {names[0]!r}; give texts for yes or for no, a description or a pool")
        looked = self._judging(pool)
        found: dict[str, LabelExamples] = {}
        left: dict[str, IntArray] = {}
        good: dict[str, Estimate | None] = {}
        facts: dict[str, tuple[FoundRecipe, Judgement]] = {}
        if looked is None:
            check_without_pool(batch, more)
        if sampled or looked is None:
            grow = functools.partial(self._grown, batch=batch, sampled=sampled, good=good)
        else:
            found = {one.name: self._new_examples(one, about.get(one.name, ""), asked) for one in batch}
            if more and number is not None:
                known = self._kept_of(number).without(withdrawn)
                found = {name: known.joined(newer) for name, newer in found.items()}
            filled = filled_rows(looked.rows)
            for name, one in found.items():
                if one.answers.any() and not filled_rows(one.rows[one.answers]).any():
                    raise no_known_words(name)
                left[name] = np.flatnonzero(filled & ~looked.among(one.digests))
                if not left[name].size:
                    problem = "the pool holds no text that is not answered and has a word that is known"
                    raise DataError(f"{problem}; give texts that nobody has looked at")
            rows = None if pool is None else looked.rows
            by: dict[str, Any] = {"found": found, "pool": rows, "left": left, "facts": facts, "precision": precision}
            grow = functools.partial(self._grown_from, **by)
        self._put(grow, names, found, number)
        where = "" if not found else "fit" if pool is None else "given"
        seconds, model, words, reports = time.perf_counter() - begin, self.classifier_, self.vectorizer_, []
        for said in batch:
            report = report_answers(model, words, said, found.get(said.name), facts.get(said.name), where, seconds)
            n_background, read = Pool.n_background(len(left.get(said.name, ()))), self.names == "words"
            report = replace(report, n_background=n_background, words_read=report.words_read if read else ())
            reports.append(replace(report, estimate=good.get(said.name) or report.estimate))
        return reports

    def _put(self, grow: Any, names: tuple[str, ...], found: dict[str, LabelExamples], number: int | None) -> None:
        """Let the classifier grow, here or in the store, with the answers that the labels were learned from."""

        def judged(model: StreamingLabelClassifier) -> dict[str, Any]:
            reports = {name: model.state_.reports[model.state_.names.number(name)] for name in found}
            for name, report in reports.items():
                found[name] = found[name].judged(report.estimate)
            return {name: one.more_content() for name, one in found.items()}

        if self._store is None:
            past, state = copy.copy(self.classifier_), self.classifier_.state_
            if number is not None:
                past.state_ = state.without(number)
            self.classifier_ = grow(past)
            if number is not None:
                self.classifier_.state_ = self.classifier_.state_.moved(number, state.n_fitted)
            judged(self.classifier_)
            self._kept = {name: one for name, one in self._kept.items() if name not in names} | found
        elif number is None:
            grown = grow(self.classifier_)
            self._store.append(grown, beside=judged(grown))
            self.classifier_ = self._store.settled(grown)
        else:
            self._store.relearn(names[0], grow, beside=judged)
            self.classifier_ = self._store.model()

    def _new_examples(self, answers: Answers, about: str, asked: bool) -> LabelExamples:
        """The answers of a label as rows, in the order they were given."""
        texts = [key for key in answers.keys if isinstance(key, str)]
        rows = [key for key in answers.keys if isinstance(key, int)]
        applies = set(answers.yes)
        said = [key in applies for key in (*rows, *texts)]
        memory = self.classifier_.state_.memory
        empty = self._no_rows()
        old = empty if memory is None or not rows else memory.X[rows]
        new = self._features(texts) if texts else empty
        examples = LabelExamples.of(texts, new, said[len(rows) :], asked=asked, about=about)
        if rows:
            digests = np.vstack((self._index.digests[rows], examples.digests))
            examples = LabelExamples(stack(old, new), digests, np.array(said), np.full(len(said), asked), about)
        return examples

    def _judging(self, pool: Iterable[str] | TextPool | None) -> TextPool | None:
        """The pool that was given, or else the texts of fit; None if they are not kept."""
        if pool is not None:
            return self.pool(pool)
        memory = self.classifier_.state_.memory
        return None if memory is None else TextPool(memory.X, self._index.digests)

    def _kept_of(self, number: int) -> LabelExamples:
        name = self.classifier_.state_.names[number]
        if (known := self.examples(name)) is None:
            problem = f"the answers that {name!r} was learned from are not kept"
            raise ConflictError(f"{problem}; relearn({name!r}, ...) with all of its answers")
        return known

    def _all_examples(self) -> dict[str, LabelExamples]:
        """The answers of all labels that have some."""
        if self._store is None:
            return dict(self._kept)
        found = {}
        for number in self._store.with_something_beside():
            name = self.classifier_.state_.names[number]
            try:
                found[name] = self._kept_of(number)
            except DataError as error:
                warnings.warn(f"{error}; {name!r} goes on without them", stacklevel=2)
        return found

    def _grown_label(self, name: str) -> int:
        """The number of a label that `learn` made."""
        number = self._number(name)
        state = self.classifier_.state_
        if state.memory is not None and number < state.n_fitted:
            raise ConflictError(f"label {name!r} was learned by fit, from all of its texts; fit again to change it")
        return number

    def _directions(self) -> TextDirections | None:
        """What reads names."""
        if self.names is None:
            return None
        if self._reader is None:
            self._reader = TextDirections.of(self.names, self.vectorizer_)
        return self._reader

    def _reader_version(self) -> str:
        reader = self._directions()
        return "" if reader is None else reader.version

    def _grown_from(
        self,
        past: StreamingLabelClassifier,
        *,
        found: dict[str, LabelExamples],
        pool: Any,
        left: dict[str, IntArray],
        facts: dict[str, Any],
        precision: float | None,
    ) -> StreamingLabelClassifier:
        """A copy of the classifier that has learned labels from their examples, too."""
        model = copy.copy(past)
        texts = [f"{name} {one.about}".strip() for name, one in found.items()]
        examples = {name: one.examples for name, one in found.items()}
        facts.update(model.learn_examples(examples, pool, self._directions(), texts, left))
        for name, (_, judgement) in facts.items():
            if precision is not None:
                model.state_ = with_precision(model.state_, name, judgement, precision)
        return model

    def _grown(
        self, past: StreamingLabelClassifier, *, batch: list[Answers], sampled: bool, good: dict[str, Any]
    ) -> StreamingLabelClassifier:
        """A copy of the classifier that has learned these labels, too, from answers taken at their word."""
        kept, model = past.state_.memory, copy.copy(past)
        asked = gather_answers(batch, self._index.n_rows)
        if asked.rows is None:
            if kept is None:
                raise DataError(f"label {batch[0].name!r} has no answers; give texts for yes and for no")
            X = kept.X
        else:
            X = self._features(asked.texts)
            X = X if kept is None else stack(kept.X[asked.rows], X)
        check_known_words(X, asked.labels, batch)
        model.add_labels(X, asked.labels, [one.name for one in batch], annotated=asked.cells, sampled=sampled)
        good.update((report.label, report.estimate) for report in model.reports_[-len(batch) :])
        return model
