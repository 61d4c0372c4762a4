"""Get a named data set: download or take given files, unpack, compare with what was published, move into place.

In the folder ``root`` each set has the folder ``NAME``; while it is being fetched, ``.NAME.download`` holds what has
arrived (a later run goes on from there) and ``.NAME.new.*`` what is being checked.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import json
import lzma
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urlsplit

from streamlabel.data.catalogue import (
    Entry,
    FoundSet,
    RemoteFile,
    check_statistics,
    count,
    find_form,
    load_catalogue_splits,
)
from streamlabel.data.download import Progress, download_file, file_sha256
from streamlabel.errors import DataError, DownloadError, NotFoundError

CHUNK_BYTES = 1 << 20
MAX_MEMBERS = 1000
UNPACKED_BYTES = 1 << 32
MIRROR_BYTES = 1 << 31
CHECKSUMS = "checksums.json"
_MAGIC = {b"PK\x03\x04": "zip", b"\x1f\x8b": "gz", b"BZh": "bz2"}


def archive_kind(path: Path) -> str | None:
    """``"zip"``, ``"gz"`` or ``"bz2"`` by the file's first bytes; None for anything else (and for ``.npz``)."""
    if path.suffix.lower() == ".npz":
        return None
    with open(path, "rb") as file:
        head = file.read(4)
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def unpack(archive: Path, folder: Path, *, max_bytes: int) -> list[Path]:
    """Unpack the archive's files side by side into the folder (a zip's inner folders are left out).

    Raises
    ------
    DataError : a damaged archive, a member that points out of it, two members of one name, a link, a password, or
        more than ``max_bytes`` in all. What had been unpacked is removed.
    """
    written: list[Path] = []
    try:
        with _reading(archive):
            if archive_kind(archive) == "zip":
                _unpack_zip(archive, folder, max_bytes, written)
            else:
                name = archive.stem if archive.suffix.lower() in (".gz", ".bz2") else archive.name
                with bz2.BZ2File(archive) if archive_kind(archive) == "bz2" else gzip.GzipFile(archive) as packed:
                    _copy(packed, folder / name, max_bytes, archive, written)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written


@contextmanager
def _reading(archive: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"a damaged or cut archive ({error}); get it again", source=archive) from error
    except NotImplementedError as error:
        problem = f"an archive of a kind that is not supported ({error}); unpack it by hand"
        raise DataError(problem, source=archive) from error
    except OSError as error:
        if error.errno is None:  # bz2 reports damage so; troubles with files carry a number
            raise DataError(f"a damaged archive ({error}); get it again", source=archive) from error
        raise


def _unpack_zip(archive: Path, folder: Path, max_bytes: int, written: list[Path]) -> None:
    with zipfile.ZipFile(archive) as zipped:
        members = [member for member in zipped.infolist() if not member.is_dir()]
        if len(members) > MAX_MEMBERS:
            raise DataError(f"{len(members)} files; no data set has more than {MAX_MEMBERS}", source=archive)
        for member in members:
            target = folder / _member_name(member, archive)
            if target.name.lower() in {path.name.lower() for path in written}:
                raise DataError(f"two files are called {target.name!r}; unpack it by hand", source=archive)
            with zipped.open(member) as packed:
                max_bytes -= _copy(packed, target, max_bytes, archive, written)


def _member_name(member: zipfile.ZipInfo, archive: Path) -> str:
    name = PurePosixPath(member.filename)
    if name.is_absolute() or ".." in name.parts or any(sign in member.filename for sign in "\\:\0"):
        raise DataError(f"the member {member.filename!r} points out of the archive; refused", source=archive)
    if stat.S_ISLNK(member.external_attr >> 16):
        raise DataError(f"the member {member.filename!r} is a link; refused", source=archive)
    if member.flag_bits & 0x1:
        raise DataError(f"the member {member.filename!r} asks for a password; unpack it by hand", source=archive)
    return name.name


def _copy(
    packed: IO[bytes] | bz2.BZ2File | gzip.GzipFile, target: Path, max_bytes: int, archive: Path, written: list[Path]
) -> int:
    size = 0
    with open(target, "xb") as file:
        written.append(target)
        while chunk := packed.read(CHUNK_BYTES):
            size += len(chunk)
            if size > max_bytes:
                raise DataError("inflates to more than a data set may have; refused", source=archive)
            file.write(chunk)
    return size


def fetch_set(
    entry: Entry,
    root: Path,
    *,
    places: Sequence[str] = (),
    progress: Callable[[str], Progress] | None = None,
    **options: Any,
) -> FoundSet:
    """Put the entry's files into ``root/NAME`` and return them, checked.

    Parameters
    ----------
    places : files or web addresses to take instead of the public source; archives are unpacked
    progress : given a file's name, the callback for its download
    options : passed on to `download_file` (attempts, timeout, sleep)

    Where no checksum was published, the statistics found by loading decide, and the checksum seen is kept in
    ``root/checksums.json`` and demanded from then on.

    Raises
    ------
    DownloadError : no address, no network, a wrong file; the message says how to get the files by hand
    DataError : what came is not the published set; nothing of it is kept
    """
    remotes = [RemoteFile(place, max_bytes=MIRROR_BYTES) for place in places if _is_web(place)]
    local = [Path(place) for place in places if not _is_web(place)]
    if not places:
        remotes = list(entry.files)
    if not remotes and not local:
        raise DownloadError(f"{entry.name} cannot be downloaded from a stable public address. {_by_hand(entry, root)}")
    for path in local:
        if not path.is_file():
            raise NotFoundError(f"{path}: no such file, and not a web address")
    try:
        digests = _download_all(entry, remotes, root, progress, options)
        arrived = [_download_folder(entry, root) / remote.name for remote in remotes]
        found = _install(entry, [*arrived, *local], root)
    except DownloadError as error:
        raise DownloadError(f"{error}\n{_by_hand(entry, root)}") from error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DownloadError(f"no space left in {root}; free some and try again") from error
    fresh = {remote.url: digest for remote, digest in zip(remotes, digests, strict=True) if remote.sha256 is None}
    if fresh:
        aside = root / f".{CHECKSUMS}.new"
        aside.write_text(json.dumps(_read_checksums(root) | fresh, indent=2), encoding="utf-8")
        os.replace(aside, root / CHECKSUMS)
    shutil.rmtree(_download_folder(entry, root), ignore_errors=True)
    return found


def _is_web(place: str) -> bool:
    return urlsplit(place).scheme in ("http", "https")


def _by_hand(entry: Entry, root: Path) -> str:
    return (
        f"By hand: {entry.by_hand}. Files go into {root / entry.name}, or into a folder {entry.name} "
        f"in the folder that STREAMLABEL_DATA names."
    )


def _download_folder(entry: Entry, root: Path) -> Path:
    return root / f".{entry.name}.download"


def _download_all(
    entry: Entry,
    remotes: Sequence[RemoteFile],
    root: Path,
    progress: Callable[[str], Progress] | None,
    options: dict[str, Any],
) -> list[str]:
    """Every file into the download folder, and their checksums; what an earlier run finished is not fetched again."""
    folder = _download_folder(entry, root)
    seen = _read_checksums(root)
    digests = []
    for remote in remotes:
        target = folder / remote.name
        expected = remote.sha256 or seen.get(remote.url)
        if target.is_file() and expected in (None, digest := file_sha256(target)):
            digests.append(digest)
            continue
        try:
            digests.append(
                download_file(
                    remote.url,
                    target,
                    size=remote.size,
                    sha256=expected,
                    max_bytes=remote.max_bytes,
                    progress=progress(remote.name) if progress else None,
                    **options,
                )
            )
        except DownloadError as error:
            if remote.sha256 is not None or remote.url not in seen:
                raise
            hint = f"(the expected checksum is that of the first download, kept in {root / CHECKSUMS})"
            raise DownloadError(f"{error} {hint}") from error
    return digests


def _install(entry: Entry, arrived: Sequence[Path], root: Path) -> FoundSet:
    """Unpack, load, compare, move into place. What is wrong is removed, with what it was unpacked from."""
    root.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{entry.name}.new.", dir=root))
    try:
        for path in arrived:
            if archive_kind(path) is not None:
                unpack(path, new, max_bytes=UNPACKED_BYTES)
            else:
                shutil.copyfile(path, new / path.name)
        found = _found(entry, new)
        check_statistics(found, {split: count(data) for split, data in load_catalogue_splits(found).items()})
        target = root / entry.name
        target.mkdir(exist_ok=True)
        for path in sorted(new.iterdir()):
            os.replace(path, target / path.name)
    except DataError:
        shutil.rmtree(_download_folder(entry, root), ignore_errors=True)
        raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return _found(entry, target)


def _found(entry: Entry, folder: Path) -> FoundSet:
    form = find_form(entry, folder)
    if form is None:
        names = ", ".join(sorted(path.name for path in folder.iterdir())[:8])
        raise DataError(
            f"these files ({names}) are not a form of {entry.name} that can be read; expected {entry.form}",
            source=folder,
        )
    return FoundSet(entry, folder, form)


def _read_checksums(root: Path) -> dict[str, str]:
    try:
        seen = json.loads((root / CHECKSUMS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise DataError("not a list of checksums; delete it to begin a new one", source=root / CHECKSUMS) from error
    return {str(url): str(digest) for url, digest in seen.items()} if isinstance(seen, dict) else {}
