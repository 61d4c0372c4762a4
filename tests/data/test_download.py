"""Downloads against a server on 127.0.0.1 that misbehaves on demand."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from http_site import Site, closed_port, running_site
from streamlabel.data import download
from streamlabel.data.download import download_file, file_sha256
from streamlabel.errors import DownloadError

BODY = bytes(range(256)) * 2000  # 512,000 bytes: several chunks
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site(BODY) as site:
        yield site


def fetch(site: Site, target: Path, path: str = "/file.bin", **options: object) -> str:
    settings: dict[str, object] = {"size": len(BODY), "sha256": SHA256, "sleep": lambda seconds: None, "timeout": 5.0}
    return download_file(site.url + path, target, **(settings | options))  # type: ignore[arg-type]


def leftovers(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


def test_whole_download_reports_progress_and_leaves_only_the_file(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    target = tmp_path / "deep" / "file.bin"
    digest = fetch(site, target, progress=lambda done, total: seen.append((done, total)))
    assert digest == SHA256 == file_sha256(target)
    assert target.read_bytes() == BODY
    assert leftovers(target) == ["file.bin"]
    assert seen[0] == (0, len(BODY))
    assert seen[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize("etag", ['"v1"', None])
def test_broken_connection_is_resumed_where_it_stopped(site: Site, tmp_path: Path, etag: str | None) -> None:
    site.etag = etag
    site.breaks = [100_000, 200_000]
    pauses: list[float] = []
    fetch(site, tmp_path / "file.bin", sleep=pauses.append)
    assert (tmp_path / "file.bin").read_bytes() == BODY
    assert [request.get("range") for request in site.requests] == [None, "bytes=100000-", "bytes=300000-"]
    assert [request.get("if-range") for request in site.requests] == [None, etag, etag]
    assert pauses == [1.0, 2.0]


def test_a_silent_connection_is_given_up_and_resumed(site: Site, tmp_path: Path) -> None:
    site.breaks, site.stalls = [100_000], True
    fetch(site, tmp_path / "file.bin", timeout=1.0)
    assert (tmp_path / "file.bin").read_bytes() == BODY
    assert len(site.requests) >= 2  # on a machine that answers late, more
    assert all(request["range"].startswith("bytes=") for request in site.requests[1:])


def test_a_later_run_goes_on_with_what_an_earlier_one_left(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "file.bin"
    site.breaks = [100_000]
    with pytest.raises(DownloadError, match=r"broke after 100,000 of 512,000 bytes; gave up after 1 attempts"):
        fetch(site, target, attempts=1)
    assert leftovers(target) == ["file.bin.part", "file.bin.part.etag"]
    fetch(site, target, attempts=1)
    assert site.requests[-1]["range"] == "bytes=100000-"
    assert target.read_bytes() == BODY
    assert leftovers(target) == ["file.bin"]


def test_a_file_that_changed_in_between_is_fetched_from_the_beginning(site: Site, tmp_path: Path) -> None:
    site.breaks = [100_000]
    old = bytes(len(BODY))
    site.body, new = old, BODY
    with pytest.raises(DownloadError):
        fetch(site, tmp_path / "file.bin", attempts=1)
    site.body, site.etag = new, '"v2"'
    fetch(site, tmp_path / "file.bin", attempts=1)
    assert (tmp_path / "file.bin").read_bytes() == new
    assert len(site.requests) == 2  # If-Range did it in one request


def test_a_stale_piece_without_validator_costs_one_more_download(site: Site, tmp_path: Path) -> None:
    site.etag = None
    (tmp_path / "file.bin.part").write_bytes(bytes(1000))
    fetch(site, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == BODY
    assert [request.get("range") for request in site.requests] == ["bytes=1000-", None]


def test_a_piece_that_nothing_can_vouch_for_is_not_used(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(bytes(1000))
    assert fetch(site, tmp_path / "file.bin", sha256=None) == SHA256
    assert "range" not in site.requests[0]


def test_a_whole_part_file_needs_no_request(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(BODY)
    fetch(site, tmp_path / "file.bin")
    assert site.requests == []


def test_server_that_ignores_range(site: Site, tmp_path: Path) -> None:
    site.ranges = False
    site.breaks = [100_000]
    fetch(site, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_server_that_sends_another_piece_than_asked(site: Site, tmp_path: Path) -> None:
    site.shift = 7
    site.breaks = [100_000]
    fetch(site, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == BODY
    # The piece is refused, then everything is fetched once more.
    assert [request.get("range") for request in site.requests] == [None, "bytes=100000-", None]


def test_weak_etag_is_not_used_to_resume(site: Site, tmp_path: Path) -> None:
    site.etag = 'W/"v1"'
    site.breaks = [100_000]
    fetch(site, tmp_path / "file.bin")
    assert "if-range" not in site.requests[1]


def test_wrong_checksum_is_refused_and_nothing_is_kept(site: Site, tmp_path: Path) -> None:
    site.body = BODY[:-1] + b"!"
    with pytest.raises(DownloadError, match=rf"sha256 is [0-9a-f]{{64}}, expected {SHA256}"):
        fetch(site, tmp_path / "file.bin")
    assert leftovers(tmp_path / "file.bin") == []
    assert len(site.requests) == 1


def test_an_old_good_file_survives_a_bad_download(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(b"old")
    site.body = b"x" * len(BODY)
    with pytest.raises(DownloadError):
        fetch(site, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == b"old"


@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("body", [BODY + b"more", BODY[:-5]])
def test_wrong_size_is_refused(site: Site, tmp_path: Path, length: bool, body: bytes) -> None:
    site.length, site.body, site.etag = length, body, None
    expected = {
        (True, True): "has 512,004 bytes; 512,000 were published",
        (True, False): "has 511,995 bytes; 512,000 were published",
        (False, True): "sends more than 512,000 bytes",
        (False, False): "broke after 511,995 of 512,000 bytes",
    }[length, len(body) > len(BODY)]
    with pytest.raises(DownloadError, match=expected):
        fetch(site, tmp_path / "file.bin", attempts=1)
    assert not (tmp_path / "file.bin").exists()


@pytest.mark.parametrize("length", [True, False])
def test_size_is_capped_where_none_was_published(site: Site, tmp_path: Path, length: bool) -> None:
    site.length = length
    with pytest.raises(DownloadError, match="more than"):
        fetch(site, tmp_path / "file.bin", size=None, sha256=None, max_bytes=1000)
    assert leftovers(tmp_path / "file.bin") == []


def test_missing_file_is_not_tried_again(site: Site, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="the server answered 404"):
        fetch(site, tmp_path / "file.bin", "/missing")
    assert len(site.requests) == 1


def test_busy_server_is_tried_again(site: Site, tmp_path: Path) -> None:
    site.statuses = [503, 429]
    fetch(site, tmp_path / "file.bin")
    assert len(site.requests) == 3


def test_redirect_within_the_web_is_followed(site: Site, tmp_path: Path) -> None:
    site.redirects["/old"] = "/file.bin"
    assert fetch(site, tmp_path / "file.bin", "/old") == SHA256


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:text/plain,hello"])
def test_other_schemes_are_refused(site: Site, tmp_path: Path, address: str) -> None:
    site.redirects["/old"] = address
    with pytest.raises(DownloadError, match="not a safe web address"):
        fetch(site, tmp_path / "file.bin", "/old")
    with pytest.raises(DownloadError, match="must begin with http"):
        download_file(address, tmp_path / "file.bin")
    assert leftovers(tmp_path / "file.bin") == []


def test_redirect_loop_ends(site: Site, tmp_path: Path) -> None:
    site.redirects["/old"] = "/old"
    with pytest.raises(DownloadError, match="302"):
        fetch(site, tmp_path / "file.bin", "/old")


def test_offline(site: Site, tmp_path: Path) -> None:
    pauses: list[float] = []
    with pytest.raises(DownloadError, match=r"no connection .*gave up after 3 attempts"):
        download_file(
            f"http://127.0.0.1:{closed_port()}/x", tmp_path / "file.bin", attempts=3, sleep=pauses.append, timeout=5.0
        )
    assert pauses == [1.0, 2.0]


def test_full_disk_is_said_plainly(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(download.os, "fsync", full)
    with pytest.raises(DownloadError, match=r"no space left in .* for file\.bin"):
        fetch(site, tmp_path / "file.bin")
    assert leftovers(tmp_path / "file.bin") == []


def test_too_small_a_disk_is_noticed_before_writing(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 1000

    monkeypatch.setattr(download.shutil, "disk_usage", lambda path: Usage)
    with pytest.raises(DownloadError, match=r"needs 512,000 bytes more, .* has 1,000 free"):
        fetch(site, tmp_path / "file.bin")
    assert leftovers(tmp_path / "file.bin") == []


def test_folder_that_cannot_be_made(site: Site, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(DownloadError, match="cannot write"):
        fetch(site, tmp_path / "taken" / "file.bin")


def test_interrupt_keeps_the_piece_for_the_next_run(site: Site, tmp_path: Path) -> None:
    def interrupt(done: int, total: int | None) -> None:
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(site, tmp_path / "file.bin", progress=interrupt)
    assert 0 < (tmp_path / "file.bin.part").stat().st_size < len(BODY)
    fetch(site, tmp_path / "file.bin")
    assert site.requests[-1]["range"].startswith("bytes=")
