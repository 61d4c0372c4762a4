"""Whatever happens to the bytes of a stored model: its answers are right, or it is refused and doctor knows."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from streamlabel import ModelStore, Tagger
from streamlabel.errors import ConflictError, DataError, NotFoundError
from tagged_texts import tagged_texts

REFUSED = (DataError, NotFoundError, ConflictError)
TEXTS = ["Flocks of ducks are kept indoors on farms", "The court ruled on the budget", "A flu vaccine is tested"]
KINDS = ("bit", "bits", "byte", "sector", "cut", "extended", "swapped", "inserted")


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger with labels learned, renamed, retired and rolled back, measured and annotated."""
    path = tmp_path_factory.mktemp("sealed") / "tags"
    data = tagged_texts()
    Tagger().fit(data.texts[:200], data.tags[:200]).save(path)
    with Tagger.open(path, "a") as tagger:
        for j in range(3):
            tagger.learn(f"later {j}", data.texts[3 * j : 3 * j + 3], data.texts[100 : 110 + j])
        first = tagger.label_names_[0]
        tagger.store.rename(first, f"{first} renamed")
        tagger.store.retire("later 1")
        tagger.store.rollback(label="later 1")
        tagger.store.set_threshold("later 2", 0.4)
        tagger.store.put_metric("later 0", "auc", 0.75, 20)
    return path


def answers(path: Path) -> tuple[object, ...]:
    """Everything that a reader is told."""
    with Tagger.open(path) as tagger:
        store, model = tagger.store, tagger.classifier_
        rows = tagger.vectorizer_.transform(TEXTS)
        return (
            tagger.suggest(TEXTS, k=9),
            model.predict_proba(rows).tolist(),
            model.predict(rows).tolist(),
            [tagger.neighbours(name) for name in tagger.label_names_],
            store.labels(),
            store.history(),
            store.metrics(),
        )


def logical(path: Path) -> object:
    """What the tables hold: damage that changes none of it, and nothing that SQLite checks, changes nothing."""
    connection = sqlite3.connect(f"file:{path / 'catalogue.db'}?mode=ro", uri=True)
    try:
        if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            return None
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        schema = connection.execute("SELECT sql FROM sqlite_master").fetchall()
        versions = [connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")]
        return schema, versions, {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    finally:
        connection.close()


def damage(file: Path, kind: str, rng: np.random.Generator) -> None:
    content = bytearray(file.read_bytes())
    place = int(rng.integers(len(content)))
    if kind in ("bit", "bits"):
        for position in rng.integers(len(content), size=1 if kind == "bit" else 8):
            content[position] ^= 1 << int(rng.integers(8))
    elif kind == "byte":
        content[place] = (content[place] + 1 + int(rng.integers(255))) % 256
    elif kind == "sector":
        start = place // 512 * 512
        content[start : start + 512] = bytes(len(content[start : start + 512]))
    elif kind == "cut":
        del content[place:]
    elif kind == "extended":
        content += rng.integers(256, size=1 + place % 5000, dtype=np.uint8).tobytes()
    elif kind == "swapped":
        one, two = (int(number) * 4096 for number in rng.integers(max(len(content) // 4096, 1), size=2))
        content[one : one + 4096], content[two : two + 4096] = content[two : two + 4096], content[one : one + 4096]
    else:
        content[place:place] = rng.integers(256, size=1, dtype=np.uint8).tobytes()
    file.write_bytes(content)


def sweep(tagged: Path, tmp_path: Path, seeds: range) -> dict[str, int]:
    expected, content = answers(tagged), logical(tagged)
    files = sorted(path.name for path in tagged.iterdir() if path.suffix in (".db", ".f32", ".csr", ".bin"))
    counts = {"refused": 0, "no effect": 0}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        name = "catalogue.db" if seed % 2 else files[int(rng.integers(len(files)))]
        kind = KINDS[seed // 2 % len(KINDS)]
        path = tmp_path / "damaged"
        shutil.copytree(tagged, path)
        before = (path / name).read_bytes()
        damage(path / name, kind, rng)
        same = (path / name).read_bytes() == before
        effect = not same and (name != "catalogue.db" or logical(path) != content)
        what = f"seed {seed}: {kind} of {name}"
        try:
            found = answers(path)
            assert found == expected, what
            counts["no effect"] += not effect
        except REFUSED:
            counts["refused"] += 1
        if effect and name == "catalogue.db":
            kinds = {finding.kind for finding in ModelStore.doctor(path)}
            assert kinds, f"{what} is not seen by doctor"
            assert kinds == {"history"} or _seen_by_verify(path), f"{what} is not seen by verify"
        shutil.rmtree(path)
    return counts


def _seen_by_verify(path: Path) -> bool:
    try:
        return bool(ModelStore.open(path).verify())
    except REFUSED:
        return True


def test_no_damage_is_silent(tagged: Path, tmp_path: Path) -> None:
    counts = sweep(tagged, tmp_path, range(64))
    assert counts["refused"] > 20


@pytest.mark.slow
def test_no_damage_is_silent_in_a_long_sweep(tagged: Path, tmp_path: Path) -> None:
    counts = sweep(tagged, tmp_path, range(1000, 1760))
    assert counts["refused"] > 300
    print(counts)  # noqa: T201


def test_a_letter_of_the_vocabulary_is_not_another_word(tagged: Path, tmp_path: Path) -> None:
    path = tmp_path / "flipped"
    shutil.copytree(tagged, path)
    file = path / "catalogue.db"
    content = bytearray(file.read_bytes())
    word = Tagger.open(path).vectorizer_.terms_[7]
    content[content.index(f'"{word}"'.encode()) + len(word)] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match="part 'vectorizer' is damaged"):
        Tagger.open(path)
    assert [finding.kind for finding in ModelStore.doctor(path)] == ["part"]


def test_no_index_leads_to_a_label(tagged: Path, tmp_path: Path) -> None:
    path, sound = tmp_path / "index", tmp_path / "sound"
    shutil.copytree(tagged, path)
    shutil.copytree(tagged, sound)
    said = "CREATE INDEX version_label ON version (label)"
    with closing(sqlite3.connect(path / "catalogue.db")) as connection, connection:
        connection.execute("DROP INDEX version_label")
        connection.execute(said.replace("(label)", "(100 - label)"))  # what it holds is not what it says
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'version_label'", (said,))
    assert logical(path) is None
    assert answers(path) == answers(tagged)
    told = []
    for one in (path, sound):
        with ModelStore.open(one, "a") as store:
            first, second, third = store.label_names[:3]
            store.set_threshold(first, 0.375)
            store.rename(second, "another name")
            store.retire(third)
            store.rollback(label=first)
        with ModelStore.open(one) as store:
            thresholds = [store.thresholds(record.id) for record in store.labels()]
            changes = [(entry.number, entry.action) for entry in store.history("another name")]
            told.append((store.label_names, [record.threshold for record in store.labels()], thresholds, changes))
    assert told[0] == told[1]
    assert len(told[0][3]) > 1


@pytest.mark.parametrize("bytes_lost", [1188, 1])
def test_a_catalogue_that_was_cut_is_refused(tagged: Path, tmp_path: Path, bytes_lost: int) -> None:
    path = tmp_path / "cut"
    shutil.copytree(tagged, path)
    os.truncate(path / "catalogue.db", (path / "catalogue.db").stat().st_size - bytes_lost)
    with pytest.raises(DataError, match="bytes and should have"):
        ModelStore.open(path)
    assert ModelStore.doctor(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE classifier SET slope = slope * 2 WHERE id = 2",
        "UPDATE classifier SET shift = 0.25 WHERE id = 2",
        "UPDATE version SET name = 'garming' WHERE number = 3",
        "UPDATE version SET threshold = 0.125 WHERE number = 3",
        "UPDATE version SET retired = 3 WHERE number = 3",
        "UPDATE version SET retired = NULL WHERE retired IS NOT NULL AND name = 'later 2'",
        "UPDATE version SET born = 99 WHERE number = 3",
        "UPDATE version SET checksum = x'00' WHERE number = 3",
        "DELETE FROM version WHERE number = 3",
        "UPDATE relation SET weight = weight / 2",
        "UPDATE relation SET neighbour = 1 WHERE neighbour = 2",
        "DELETE FROM relation",
        "UPDATE meta SET value = '0.5' WHERE key = 'strength'",
        "UPDATE label SET origin = 'merged' WHERE id = 1",
        "UPDATE revision SET actor = 'somebody' WHERE number = 2",
        "UPDATE metric SET value = 0.99",
        "UPDATE segment SET used_rows = 1 WHERE kind = 1",
        "UPDATE part_array SET dtype = '<i4' WHERE dtype = '<f4'",
        "UPDATE part SET content = replace(content, 'tion', 'tiom') WHERE name = 'vectorizer'",
    ],
)
def test_what_is_written_into_the_catalogue_is_seen(tagged: Path, tmp_path: Path, statement: str) -> None:
    path = tmp_path / "edited"
    shutil.copytree(tagged, path)
    before = logical(path)
    connection = sqlite3.connect(path / "catalogue.db", isolation_level=None)
    try:
        connection.execute(statement)
    except sqlite3.IntegrityError:
        return  # SQLite itself does not hold it
    finally:
        connection.close()
    if logical(path) == before:
        pytest.skip("this model has no such row")
    kinds = {finding.kind for finding in ModelStore.doctor(path)}
    assert kinds
    assert kinds == {"history"} or _seen_by_verify(path)
