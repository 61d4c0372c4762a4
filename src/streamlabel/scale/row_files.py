"""Rows with labels in files that need not fit into memory, read in pieces, as often as needed and in any order.

A piece is some rows of one file: a range of bytes at line ends (XC text, JSONL, CSV), a row group (Parquet), a range of
rows (npz, npy). It is plain data, so that it can be read in another process. Which pieces there are depends on the
files alone; sums over pieces in their order have the same bits wherever they are made.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from streamlabel.data.csv_table import read_csv
from streamlabel.data.datasets import RowFormat
from streamlabel.data.files import HEAD, check_file, open_source
from streamlabel.data.jsonl import read_jsonl
from streamlabel.data.load import format_of, guess_columns, read_one_label_rows, read_text_rows
from streamlabel.data.npz import MatrixFile, read_names
from streamlabel.data.parquet import ParquetBlocks
from streamlabel.data.rows import check_rows
from streamlabel.data.xc_svmlight import read_xc_header, read_xc_lines
from streamlabel.errors import DataError, Hint, NotFoundError
from streamlabel.executors import Executor, SerialExecutor
from streamlabel.types import CSR, Dataset, FloatArray
from streamlabel.validation import canonical_labels, check_label_names, default_label_names

PIECE_BYTES = 1 << 23
SAMPLED_PIECES = 64
Progress: TypeAlias = Callable[[int, int | None], None]  # (bytes done, bytes in all)
Content: TypeAlias = CSR | FloatArray | list[str] | None  # rows, or texts that become rows
Blocks: TypeAlias = Iterator[tuple[Content, CSR | None, Sequence[str]]]  # with labels, and the names of these


@dataclass(frozen=True)
class Piece:
    """Some rows of a file: where they are, counted in bytes, rows or row groups, and how many bytes they take.

    first_row, n_rows : among the rows of all files; not known before `RowFiles.scan` where lines are records
    """

    path: str
    start: int
    stop: int
    n_bytes: int
    first_row: int = 0
    n_rows: int = 0
    first_line: int = 1


class RowFiles:
    """Rows with labels in one file, several files of one kind, or a folder of them, larger than memory.

    Parameters
    ----------
    paths : a file, a list of files, or a folder: all files of the kind of its first one, in the order of their names;
        or, with ``X_NAME.npz`` and ``Y_NAME.npz`` in it, the pair of ``split``
    format : "xc", "parquet", "npz", "jsonl" or "csv"; None: told by the first file
    labels_file : Y of a single ``.npz`` or ``.npy`` file
    text, labels : the columns of JSONL, CSV and Parquet; None: guessed as `load_dataset` does
    vectorizer : fitted, for texts: a `TextVectorizer` with its fixed vocabulary, a `HashedTextVectorizer`, or anything
        with ``transform``
    piece_bytes : about so many bytes are read at a time (row groups are as they are); None: 8 MiB, or so many that
        adding their sums takes little time beside reading them

    Attributes
    ----------
    pieces : list of `Piece`;   n_bytes : of all;   n_rows, n_features;   label_names : after `scan`
    """

    def __init__(
        self, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], format: str | None = None, *,
        labels_file: str | os.PathLike[str] | None = None, split: str = "train", text: str | None = None,
        labels: str | None = None, tag_delimiter: str | None = None, vectorizer: Any = None,
        piece_bytes: int | None = None,
    ) -> None:  # fmt: skip
        self.files, folder = _files(paths, split)
        self.format = format or format_of(self.files[0])
        if folder is not None:
            labels_file = folder / f"Y_{split}.npz"
        self.labels_file = None if labels_file is None else os.fspath(labels_file)
        self.vectorizer = vectorizer
        if self.format == "npz":
            self._reader: _Matrices | _XCText | _Parquet | _Records = _Matrices(
                self.files, self.labels_file, folder, piece_bytes
            )
        elif self.format == "xc":
            self._reader = _XCText(self.files, piece_bytes)
        elif self.format == "parquet":
            self._reader = _Parquet(self.files, text, labels)
        elif self.format in ("jsonl", "csv"):
            given = {"text": text, "labels": labels, "tag_delimiter": tag_delimiter}
            self._reader = _Records(self.files, self.format, given, piece_bytes)
        else:
            problem = f"{self.format} is not read in blocks; XC text, Parquet, npz, JSONL and CSV are"
            raise DataError(problem, source=self.files[0])
        self.pieces, self.label_names = self._reader.pieces, self._reader.label_names
        check_rows(len(self.pieces), self.files[0])
        self.n_bytes = sum(piece.n_bytes for piece in self.pieces)

    @property
    def n_rows(self) -> int:
        return sum(piece.n_rows for piece in self.pieces)

    @property
    def has_texts(self) -> bool:
        return self._reader.n_features is None

    @property
    def n_features(self) -> int:
        if self._reader.n_features is not None:
            return self._reader.n_features
        if self.vectorizer is None:
            raise DataError("holds texts; give a fitted vectorizer, whose columns are fixed", source=self.files[0])
        return int(self.vectorizer.transform([""]).shape[1])

    def fingerprint(self, *settings: object) -> bytes:
        """A digest of which files these are (name, size, time of the last change) and of the settings."""
        files = [*self.files, *([] if self.labels_file is None else [self.labels_file])]
        facts = [(os.path.abspath(path), os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in files]
        pieces = [(piece.start, piece.stop) for piece in self.pieces]
        read = (self.format, getattr(self._reader, "columns", None), self._reader.label_names)
        words = [getattr(self.vectorizer, name, None) for name in ("terms_", "vocabulary_")]
        words += [type(self.vectorizer), getattr(self.vectorizer, "get_params", dict)()]
        weights = np.asarray(getattr(self.vectorizer, "idf_", ())).tobytes()
        return sha256(_ADDRESS.sub("", repr((facts, read, pieces, words, settings))).encode() + weights).digest()

    def scan(self, executor: Executor | None = None, progress: Progress | None = None) -> RowFiles:
        """Read the label data once, unless the files say by themselves how many rows and which labels they have."""
        if self.label_names is not None and all(piece.n_rows for piece in self.pieces):
            return self
        names: dict[str, int] = {}
        counts, done, n_rows = [], 0, 0
        for start in range(0, len(self.pieces), ROUND):
            pieces = self.pieces[start : start + ROUND]
            for piece, (count, found) in zip(
                pieces, (executor or SerialExecutor()).map(self._labels_in, pieces), strict=True
            ):
                counts.append(replace(piece, first_row=n_rows, n_rows=count))
                done, n_rows = done + piece.n_bytes, n_rows + count
                for name in found:
                    names.setdefault(name, len(names))
            if progress is not None:
                progress(done, self.n_bytes)
        self.pieces = [piece for piece in counts if piece.n_rows]
        check_rows(n_rows, self.files[0])
        self.n_bytes = sum(piece.n_bytes for piece in self.pieces)
        if self.label_names is None:
            self.label_names = check_label_names(names, len(names))
        return self

    def _labels_in(self, piece: Piece) -> tuple[int, list[str]]:
        """How many rows a piece has, and the names of its labels in the order of their appearance."""
        n_rows, names = 0, dict[str, None]()
        for _, Y, found in self._reader.blocks(piece, False, True):
            assert Y is not None
            n_rows, names = n_rows + Y.shape[0], names | dict.fromkeys(found)
        return n_rows, list(names)

    def blocks(self, piece: Piece, *, features: bool = True, labels: bool = True) -> Iterator[tuple[Any, CSR | None]]:
        """X (n, d) and Y (n, m) of a piece, block after block; None in place of what is not wanted."""
        places = {name: place for place, name in enumerate(self.label_names or ())}
        for content, Y, names in self._reader.blocks(piece, features, labels):
            if Y is not None and names is not self.label_names:
                Y = _placed(Y, names, places, piece.path)
            if isinstance(self._checked(content, piece), list):
                if self.vectorizer is None:
                    raise DataError("holds texts; give a fitted vectorizer", source=piece.path)
                content = self.vectorizer.transform(content)
            yield content, Y

    def _checked(self, content: Content, piece: Piece) -> Content:
        """The content, or DataError where it is not of the kind and width of the others."""
        width = None if content is None or isinstance(content, list) else int(content.shape[1])
        if content is not None and width != self._reader.n_features:
            kinds = ["texts" if n is None else f"{n} features" for n in (width, self._reader.n_features)]
            raise DataError(f"{kinds[0]}, and other rows have {kinds[1]}", source=piece.path)
        return content

    def texts(self, most: int = 50_000) -> list[str]:
        """Texts from pieces that are spread evenly over all files: what a vocabulary can be learned from."""
        step = -(-len(self.pieces) // SAMPLED_PIECES)
        chosen, found = self.pieces[::step], list[str]()
        for number, piece in enumerate(chosen, start=1):
            for content, _, _ in self._reader.blocks(piece, True, False):
                texts = self._checked(content, piece)
                assert isinstance(texts, list)
                found += texts[: number * most // len(chosen) - len(found)]
        return found


_ADDRESS = re.compile(" at 0x[0-9a-f]+")  # of a function, other in every process
ROUND = 16  # pieces that are summed by themselves before they are added to the sum of all


def _files(paths: Any, split: str) -> tuple[list[str], Path | None]:
    """The files that hold rows, and the folder where they are an npz pair of one."""
    if not isinstance(paths, str | os.PathLike):
        found = [os.fspath(path) for path in paths]
    elif not Path(paths).is_dir():
        found = [os.fspath(paths)]
    else:
        folder = Path(paths)
        if any(folder.glob("X_*.npz")):
            check_file(folder / f"X_{split}.npz")
            return [os.fspath(folder / f"X_{split}.npz")], folder
        inside = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] not in "._")
        found = [os.fspath(path) for path in inside if path.suffix == inside[0].suffix]
        if len(found) != len(inside):
            raise DataError("has files of several kinds; name the files, or move the others elsewhere", source=folder)
    if not found:
        raise NotFoundError(f"{paths}: there are no files")
    for path in found:
        check_file(path)
        if path.endswith((".gz", ".bz2")):
            raise DataError("is packed, so that no part of it can be read by itself; unpack it first", source=path)
    return found, None


def _placed(Y: CSR, names: Sequence[str], places: dict[str, int], path: str) -> CSR:
    """Y with the columns of all labels; ``names`` are those of its own."""
    unknown = [name for name in names if name not in places]
    if unknown:
        raise DataError(f"has the label {unknown[0]!r}, which it had not when it was scanned", source=path)
    columns = np.array([places[name] for name in names], dtype=np.int64)[Y.indices]
    placed = sparse.csr_array((Y.data, columns, Y.indptr), shape=(Y.shape[0], len(places)))
    placed.sort_indices()
    return placed


def _line_pieces(path: str, start: int, size: int, quoted: bool = False) -> list[tuple[int, int, int]]:
    """Ranges of bytes at line ends, and how many lines each has; ``quoted``: not inside quotes, as in CSV."""
    found, lines, quotes, begin, place = [], 0, 0, start, start
    with open(path, "rb") as file:
        file.seek(start)
        while chunk := file.read(size):
            end = chunk.rfind(b"\n") + 1
            while quoted and end and (quotes + chunk.count(b'"', 0, end)) % 2:
                end = chunk.rfind(b"\n", 0, end - 1) + 1
            lines += chunk.count(b"\n", 0, end)
            if end:
                found.append((begin, place + end, lines))
                begin, lines, quotes = place + end, 0, 0
            quotes += chunk.count(b'"', end) if quoted else 0
            lines += chunk.count(b"\n", end)
            place += len(chunk)
    return [*found, (begin, place, lines + 1)] if begin < place else found


def _size(n_features: int, n_labels: int) -> int:
    """The bytes of a piece: at least a sixteenth of what its sums take, up to 128 MiB."""
    return int(np.clip(n_features * (n_features + n_labels) // 2, PIECE_BYTES, 16 * PIECE_BYTES))


def _bytes(piece: Piece) -> bytes:
    with open_source(piece.path) as file:
        file.seek(piece.start)
        found = file.read(piece.stop - piece.start)
    if len(found) != piece.stop - piece.start:
        raise DataError("is shorter than when it was opened", source=piece.path, line=piece.first_line)
    return found if found.endswith(b"\n") else found + b"\n"


class _XCText:
    def __init__(self, files: Sequence[str], piece_bytes: int | None) -> None:
        self.pieces, self._counts = list[Piece](), {}
        first_row = 0
        for path in files:
            counts, begin = read_xc_header(path)
            self._counts[path], line, left = counts, 2, counts[0]
            if counts[1:] != self._counts[files[0]][1:]:
                problem = (
                    f"{counts[1]} features and {counts[2]} labels, and {files[0]} has {self._counts[files[0]][1:]}"
                )
                raise DataError(f"{problem}; all files must say the same", source=path, line=1)
            for start, stop, lines in _line_pieces(path, begin, piece_bytes or _size(*counts[1:])):
                rows = min(lines, left)
                self.pieces.append(Piece(path, start, stop, stop - start, first_row, rows, line))
                first_row, line, left = first_row + rows, line + lines, left - rows
            if left:
                problem = f"the header says {counts[0]} rows, the file has {counts[0] - left}; it may be cut short"
                raise DataError(problem, source=path, line=line - 1)
        self.n_features, n_labels = self._counts[files[0]][1:]
        self.label_names = default_label_names(n_labels)

    def blocks(self, piece: Piece, features: bool, labels: bool) -> Blocks:
        total, n_features, n_labels = self._counts[piece.path]
        form = RowFormat(piece.path, n_features, n_labels)
        X, Y = read_xc_lines(_bytes(piece), piece.first_line, piece.n_rows, total, form, features=features)
        yield X if features else None, Y if labels else None, self.label_names


class _Parquet:
    def __init__(self, files: Sequence[str], text: str | None, labels: str | None) -> None:
        self.columns, self.pieces = (text, labels), list[Piece]()
        first_row, names = 0, set()
        for path in files:
            file = ParquetBlocks(path, *self.columns)
            for group, (rows, size) in enumerate(zip(file.groups, file.sizes, strict=True)):
                if rows:
                    self.pieces.append(Piece(path, group, group + 1, size, first_row, rows))
                    first_row += rows
                    names.add(file.label_names)
        self.label_names = names.pop() if len(names) == 1 else None
        check_rows(first_row, files[0])
        content: Any = next(self.blocks(self.pieces[0], True, False))[0]
        self.n_features = None if isinstance(content, list) else int(content.shape[1])

    def blocks(self, piece: Piece, features: bool, labels: bool) -> Blocks:
        yield from ParquetBlocks(piece.path, *self.columns).blocks(piece.start, content=features, labels=labels)


class _Matrices:
    def __init__(
        self, files: Sequence[str], labels_file: str | None, folder: Path | None, piece_bytes: int | None
    ) -> None:
        if len(files) > 1:
            raise DataError(
                "npz files are read one pair at a time; stack the matrices, or use XC text", source=files[1]
            )
        self._X, self._Y = MatrixFile(files[0]), None if labels_file is None else MatrixFile(labels_file)
        n_rows, self.n_features = self._X.shape
        self.label_names: tuple[str, ...] = ()
        if self._Y is not None:
            if self._Y.shape[0] != n_rows:
                raise DataError(f"{self._Y.shape[0]} rows for {n_rows} rows of {files[0]}", source=labels_file)
            given = None if folder is None or not (folder / "labels.txt").exists() else folder / "labels.txt"
            names = default_label_names(self._Y.shape[1]) if given is None else read_names(given)
            self.label_names = check_label_names(names, self._Y.shape[1])
        row_bytes = max(self._X.n_bytes(0, n_rows) // max(n_rows, 1), 1)
        step = max((piece_bytes or _size(self.n_features, len(self.label_names))) // row_bytes, 1)
        ends = [(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
        self.pieces = [Piece(files[0], a, b, self._X.n_bytes(a, b), a, b - a) for a, b in ends]

    def blocks(self, piece: Piece, features: bool, labels: bool) -> Blocks:
        if labels and self._Y is None:
            raise DataError("X without Y", source=piece.path, hint=Hint.LABELS_OF_ROWS)
        Y = canonical_labels(self._Y.rows(piece.start, piece.stop)) if labels and self._Y is not None else None
        yield self._X.rows(piece.start, piece.stop) if features else None, Y, self.label_names


class _Records:
    """JSONL and CSV: records with texts, or with lists of numbers (JSONL), and label names."""

    label_names: tuple[str, ...] | None = None

    def __init__(self, files: Sequence[str], format: str, given: dict[str, Any], piece_bytes: int | None) -> None:
        self.pieces, self._heads = list[Piece](), {}
        for path in files:
            begin, line = 0, 1
            if format == "csv":
                begin = _header_end(path)
                with open_source(path) as file:
                    self._heads[path] = file.read(begin)
                line += self._heads[path].count(b"\n")
            for start, stop, lines in _line_pieces(path, begin, piece_bytes or PIECE_BYTES, format == "csv"):
                self.pieces.append(Piece(path, start, stop, stop - start, first_line=line))
                line += lines
        found = list(islice(filter(None, map(_from_first_record, self.pieces)), 1))
        check_rows(len(found), files[0])
        with open_source(found[0].path) as file:
            file.seek(found[0].start)
            record = file.readline()
            head = self._heads.get(found[0].path, b"") + record + file.read(HEAD)
        self.columns = guess_columns(found[0].path, head, format=format, **given)
        self.n_features: int | None = None
        if self.columns is None:
            one: Any = next(self.blocks(replace(found[0], stop=found[0].start + len(record)), True, True))[0]
            self.n_features = int(one.shape[1])

    def blocks(self, piece: Piece, features: bool, labels: bool) -> Blocks:
        head, columns, content = self._heads.get(piece.path, b""), self.columns, _bytes(piece)
        if not content.strip():
            return
        source = io.BytesIO(head + content)
        try:
            if columns is not None and not labels:
                yield [row.text for row in read_text_rows(source, columns)], None, ()
                return
            if columns is None:
                data: Any = read_jsonl(source, repeated_labels="merge")
            elif columns.one_label:
                data = read_one_label_rows(source, columns)
            else:
                read = read_jsonl if columns.format == "jsonl" else read_csv
                data = read(source, repeated_labels="merge", **columns.options())
        except DataError as error:
            line = None if error.line is None else error.line + piece.first_line - 1 - head.count(b"\n")
            raise DataError(error.problem, source=piece.path, line=line, hint=error.hint) from error
        if isinstance(data, Dataset) and data.feature_names is not None:
            raise DataError("has features by name; in blocks they are lists of numbers", source=piece.path)
        yield data.X if isinstance(data, Dataset) else data.texts, data.Y if labels else None, data.label_names


def _from_first_record(piece: Piece) -> Piece | None:
    """The piece without the blank lines that it begins with; None where it has no others."""
    content = _bytes(piece)
    begin = content.rfind(b"\n", 0, len(content) - len(content.lstrip())) + 1
    line = piece.first_line + content.count(b"\n", 0, begin)
    return replace(piece, start=piece.start + begin, first_line=line) if content.strip() else None


def _header_end(path: str) -> int:
    """Where the first record of a file ends."""
    with open_source(path) as file:
        found = file.readline(1 << 20)
        while found.count(b'"') % 2 and (more := file.readline(1 << 20)):
            found += more
    return len(found)
