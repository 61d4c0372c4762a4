"""Getting a whole set from a server on 127.0.0.1: checked, resumed, moved into place, and nothing wrong kept."""

from __future__ import annotations

import bz2
import errno
import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from http_site import Site, closed_port, running_site
from streamlabel.data.catalogue import Entry, RemoteFile, find_entry, load_catalogue_splits
from streamlabel.data.download import file_sha256
from streamlabel.data.fetch import fetch_set
from streamlabel.errors import DataError, DownloadError, NotFoundError
from tiny_set import N_TRAIN, ROWS, TINY, expected, svmlight, xc_text

TRAIN, TEST = xc_text(ROWS[:N_TRAIN]).encode(), xc_text(ROWS[N_TRAIN:]).encode()
QUICK = {"sleep": lambda seconds: None, "timeout": 5.0}


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as site:
        site.files = {"/train.txt": TRAIN, "/test.txt": TEST}
        yield site


def entry_at(site: Site, *, checksums: bool = True) -> Entry:
    files = tuple(
        RemoteFile(site.url + path, len(body), hashlib.sha256(body).hexdigest())
        if checksums
        else RemoteFile(site.url + path)
        for path, body in site.files.items()
    )
    return replace(TINY, files=files)


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_published_set_is_fetched_checked_and_put_into_place(site: Site, tmp_path: Path) -> None:
    started: list[str] = []

    def progress(name: str):  # type: ignore[no-untyped-def]
        started.append(name)
        return lambda done, total: None

    found = fetch_set(entry_at(site), tmp_path, progress=progress, **QUICK)
    assert found.folder == tmp_path / "tiny-3"
    assert names(tmp_path) == ["tiny-3/test.txt", "tiny-3/train.txt"]
    assert started == ["train.txt", "test.txt"]
    data = load_catalogue_splits(found)
    for split in ("train", "test"):
        np.testing.assert_array_equal(data[split].X.toarray(), expected(split)[0])
        np.testing.assert_array_equal(data[split].Y.toarray(), expected(split)[1])


def test_later_run_fetches_only_what_is_missing(site: Site, tmp_path: Path) -> None:
    site.breaks = [10_000, 20]  # the first file whole, the second one broken
    entry = entry_at(site)
    with pytest.raises(DownloadError, match="broke after 20"):
        fetch_set(entry, tmp_path, attempts=1, **QUICK)
    assert not (tmp_path / "tiny-3").exists()
    fetch_set(entry, tmp_path, attempts=1, **QUICK)
    assert [request.get("range") for request in site.requests] == [None, None, "bytes=20-"]
    assert names(tmp_path) == ["tiny-3/test.txt", "tiny-3/train.txt"]


def test_wrong_checksum_leaves_no_set(site: Site, tmp_path: Path) -> None:
    entry = entry_at(site)
    site.files["/test.txt"] = TEST.replace(b"3.0", b"3.1")
    with pytest.raises(DownloadError, match=r"(?s)sha256 is .*By hand: write them yourself.*tiny-3"):
        fetch_set(entry, tmp_path, **QUICK)
    assert not (tmp_path / "tiny-3").exists()
    assert b"3.1" not in b"".join((tmp_path / name).read_bytes() for name in names(tmp_path))


def test_without_published_checksum_the_statistics_decide_and_the_checksum_is_recorded(
    site: Site, tmp_path: Path
) -> None:
    entry = entry_at(site, checksums=False)
    fetch_set(entry, tmp_path, **QUICK)
    recorded = json.loads((tmp_path / "checksums.json").read_text())
    assert recorded == {
        site.url + "/train.txt": hashlib.sha256(TRAIN).hexdigest(),
        site.url + "/test.txt": hashlib.sha256(TEST).hexdigest(),
    }
    site.files["/test.txt"] = TEST.replace(b"3.0", b"3.1")  # the same statistics, another file
    with pytest.raises(DownloadError, match=r"the first download, kept in .*checksums\.json"):
        fetch_set(entry, tmp_path, **QUICK)


def test_wrong_statistics_leave_nothing_and_record_nothing(site: Site, tmp_path: Path) -> None:
    site.files["/test.txt"] = xc_text(ROWS[N_TRAIN + 1 :]).encode()
    with pytest.raises(DataError, match="test: examples: 2 here, 3 published"):
        fetch_set(entry_at(site, checksums=False), tmp_path, **QUICK)
    assert names(tmp_path) == []


def test_compressed_svmlight_as_on_the_libsvm_page(site: Site, tmp_path: Path) -> None:
    site.files = {
        "/train-exp1.svm.bz2": bz2.compress(svmlight(ROWS[:N_TRAIN]).encode()),
        "/test-exp1.svm.bz2": bz2.compress(svmlight(ROWS[N_TRAIN:]).encode()),
    }
    found = fetch_set(entry_at(site, checksums=False), tmp_path, **QUICK)
    assert found.form.name == "svmlight"
    assert names(found.folder) == ["test-exp1.svm", "train-exp1.svm"]


def archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.writestr("Tiny/tiny_train.txt", TRAIN)
        zipped.writestr("Tiny/tiny_test.txt", TEST)
        zipped.writestr("Tiny/Readme.md", "as the XC repository packs it")
    return packed.getvalue()


def test_archive_by_hand(tmp_path: Path) -> None:
    (tmp_path / "Tiny.zip").write_bytes(archive())
    found = fetch_set(TINY, tmp_path / "root", places=[str(tmp_path / "Tiny.zip")])
    assert found.form.name == "XC text"
    assert (tmp_path / "Tiny.zip").exists()


def test_two_plain_files_by_hand(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(TRAIN)
    (tmp_path / "test.txt").write_bytes(TEST)
    found = fetch_set(TINY, tmp_path / "root", places=[str(tmp_path / "train.txt"), str(tmp_path / "test.txt")])
    assert names(found.folder) == ["test.txt", "train.txt"]


def test_archive_from_another_address(site: Site, tmp_path: Path) -> None:
    site.files["/uc"] = archive()
    found = fetch_set(TINY, tmp_path, places=[site.url + "/uc"], **QUICK)
    assert found.form.name == "XC text"
    site.files["/page"] = b"<html>Are you a robot?</html>"
    with pytest.raises(DataError, match=r"these files \(page\) are not a form of tiny-3"):
        fetch_set(TINY, tmp_path / "other", places=[site.url + "/page"], **QUICK)
    assert names(tmp_path / "other") == []


def test_an_address_with_a_query_gets_a_usable_file_name() -> None:
    assert RemoteFile("https://example.org/uc?export=download&id=1/..").name == "uc"
    assert RemoteFile("https://example.org/").name == "download"
    assert RemoteFile("https://example.org/a/..").name == "download"


def test_nothing_to_download_and_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"(?s)no stable|cannot be downloaded.*By hand"):
        fetch_set(TINY, tmp_path)
    with pytest.raises(NotFoundError, match="no such file"):
        fetch_set(TINY, tmp_path, places=[str(tmp_path / "absent.zip")])


def test_offline_says_where_to_get_the_files_and_where_to_put_them(tmp_path: Path) -> None:
    entry = replace(TINY, files=(RemoteFile(f"http://127.0.0.1:{closed_port()}/train.txt"),))
    with pytest.raises(DownloadError) as raised:
        fetch_set(entry, tmp_path, attempts=2, **QUICK)
    message = str(raised.value)
    assert "no connection" in message
    assert "write them yourself" in message
    assert str(tmp_path / "tiny-3") in message
    assert "STREAMLABEL_DATA" in message


def test_disk_full_while_unpacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.setattr(shutil, "copyfile", full)
    (tmp_path / "train.txt").write_bytes(TRAIN)
    with pytest.raises(DownloadError, match="no space left"):
        fetch_set(TINY, tmp_path / "root", places=[str(tmp_path / "train.txt")])
    assert names(tmp_path / "root") == []


def test_checksum_file_that_is_not_one(site: Site, tmp_path: Path) -> None:
    (tmp_path / "checksums.json").write_text("{")
    with pytest.raises(DataError, match=r"checksums\.json: not a list of checksums"):
        fetch_set(entry_at(site), tmp_path, **QUICK)


def test_real_bibtex_over_a_bad_line(site: Site, tmp_path: Path, data_root: Path) -> None:
    bibtex = find_entry("bibtex")
    site.files = {f"/{file.name}": (data_root / "bibtex" / file.name).read_bytes() for file in bibtex.files}
    site.breaks = [1_000_000, 500_000]
    here = replace(bibtex, files=tuple(replace(file, url=f"{site.url}/{file.name}") for file in bibtex.files))
    found = fetch_set(here, tmp_path, **QUICK)
    assert [request.get("range") for request in site.requests[:3]] == [None, "bytes=1000000-", "bytes=1500000-"]
    assert {file.name: file_sha256(found.folder / file.name) for file in bibtex.files} == {
        file.name: file.sha256 for file in bibtex.files
    }
