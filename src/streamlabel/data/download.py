"""One file over HTTP, whole and checked: resumed when the connection breaks, renamed into place when it is right.

Nothing here prints. What is being fetched lies beside the target as ``NAME.part`` (with ``NAME.part.etag``, the
server's validator, so that a later run can go on from there); the target itself appears only after the size and the
checksum have been checked.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import re
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

from streamlabel.errors import DownloadError

Progress = Callable[[int, int | None], None]
"""Called with (bytes so far, bytes in all or None)."""

CHUNK_BYTES = 1 << 16
RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
NO_VALIDATOR = ""


class _BrokenConnection(Exception):
    """The transfer stopped for a reason that may pass; what has arrived is kept."""


class _Misfit(Exception):
    """The pieces do not make the published file; none of them is kept."""


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https only, and never from https back to http."""

    def http_error_302(self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message) -> Any:
        location = headers.get("location") or headers.get("uri") or ""
        old, new = urlsplit(req.full_url), urlsplit(urljoin(req.full_url, location))
        if new.scheme not in ("http", "https") or (old.scheme == "https" and new.scheme == "http"):
            raise DownloadError(
                f"{req.full_url} redirects to {new.geturl()!r}, which is not a safe web address; refused"
            )
        return super().http_error_302(req, fp, code, msg, headers)  # type: ignore[arg-type]

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _web_opener() -> urllib.request.OpenerDirector:
    """An opener that knows http and https (and the user's proxy) and nothing else: no file, ftp or data addresses."""
    known = urllib.request
    opener = known.OpenerDirector()
    web = (known.ProxyHandler, known.UnknownHandler, known.HTTPHandler, known.HTTPSHandler)
    for handler in (*web, known.HTTPDefaultErrorHandler, known.HTTPErrorProcessor, _SafeRedirects):
        opener.add_handler(handler())
    opener.addheaders = [("User-Agent", "streamlabel"), ("Accept-Encoding", "identity")]
    return opener


@dataclass(frozen=True)
class _Job:
    """What to fetch, where to, and what must hold of it."""

    url: str
    target: Path
    size: int | None
    sha256: str | None
    max_bytes: int
    progress: Progress
    timeout: float

    @property
    def part(self) -> Path:
        return self.target.with_name(self.target.name + ".part")

    @property
    def validator(self) -> Path:
        return self.target.with_name(self.target.name + ".part.etag")

    def forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.validator.unlink(missing_ok=True)

    def check_total(self, total: int | None) -> None:
        """Refuse, before anything is written, a body whose announced length is not the published one."""
        if total is not None and self.size is not None and total != self.size:
            self.forget()
            raise DownloadError(
                f"{self.url} has {total:,} bytes; {self.size:,} were published, so it is not the same file"
            )
        if total is not None and total > self.max_bytes:
            self.forget()
            raise DownloadError(f"{self.url} has {total:,} bytes, more than the {self.max_bytes:,} allowed")


def download_file(
    url: str,
    target: Path,
    *,
    size: int | None = None,
    sha256: str | None = None,
    max_bytes: int = 1 << 30,
    progress: Progress | None = None,
    attempts: int = 4,
    timeout: float = 30.0,
    sleep: Callable[[float], object] = time.sleep,
) -> str:
    """Fetch ``url`` into the file ``target`` and return its sha256 (64 lower-case hexadecimal digits).

    An earlier, unfinished download is continued with a Range request: under If-Range where the server gave a
    validator, or where ``sha256`` will tell whether the pieces fit. A broken connection is tried ``attempts`` times in
    all, with pauses of 1, 2, 4, ... seconds.

    Raises
    ------
    DownloadError : no connection, an answer other than the file, a wrong size or checksum, a full disk.
        Nothing wrong is kept: either the part file can be continued, or it has been removed.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url!r} is not a web address; it must begin with http:// or https://")
    job = _Job(url, target, size, sha256, max_bytes, progress or (lambda done, total: None), timeout)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return _download(job, attempts, sleep)
    except DownloadError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            job.forget()
            problem = f"no space left in {target.parent} for {target.name}; free some and try again"
            raise DownloadError(problem) from error
        raise DownloadError(f"cannot write {error.filename or target}: {error.strerror or error}") from error


def _download(job: _Job, attempts: int, sleep: Callable[[float], object]) -> str:
    pieced = _length(job.part) > 0  # then a misfit may be the fault of the old piece: once more from the beginning
    failures = 0
    while True:
        try:
            # An earlier run may have fetched everything, so that only the check is missing.
            if job.size is None or job.sha256 is None or _length(job.part) != job.size:
                _transfer(job)
            return _accept(job)
        except _Misfit as error:
            job.forget()
            if not pieced:
                raise DownloadError(f"{job.url}: {error}") from error
            pieced = False
        except _BrokenConnection as error:
            failures += 1
            pieced = True
            if failures >= attempts:
                raise DownloadError(f"{job.url}: {error}; gave up after {attempts} attempts") from error
            sleep(2.0 ** (failures - 1))


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _transfer(job: _Job) -> None:
    """Fetch what is missing and append it to the part file; raises `_BrokenConnection` when it stops early."""
    offset, validator = _resume_point(job)
    request = urllib.request.Request(job.url)
    if offset:
        request.add_header("Range", f"bytes={offset}-")
        if validator:
            request.add_header("If-Range", validator)
    with _open(job, request) as response:
        start, total = _extent(job, response)
        if response.status == 206 and start != offset:
            raise _Misfit("the server sent another piece than the one asked for")
        job.check_total(total)
        missing, free = (total or 0) - start, shutil.disk_usage(job.target.parent).free
        if missing > free:
            raise DownloadError(
                f"{job.target.name} needs {missing:,} bytes more, {job.target.parent} has {free:,} free"
            )
        etag = response.headers.get("ETag", NO_VALIDATOR)  # weak ones may not be used in If-Range
        strong = etag if etag.startswith('"') else response.headers.get("Last-Modified", NO_VALIDATOR)
        if strong:
            job.validator.write_text(strong, encoding="latin-1", errors="replace")
        else:
            job.validator.unlink(missing_ok=True)
        _append(job, response, start, total)


def _extent(job: _Job, response: Any) -> tuple[int, int | None]:
    """(first byte that the server sends, length of the whole file or None)."""
    if response.status == 200:
        length = response.headers.get("Content-Length", "")
        return 0, int(length) if length.isascii() and length.isdigit() else None
    if response.status != 206:
        raise DownloadError(f"{job.url}: the server answered {response.status} {response.reason}, not the file")
    value = response.headers.get("Content-Range", "")
    found = re.fullmatch(r"bytes ([0-9]+)(?:-[^/]*)?/(\*|[0-9]+)", value)
    if found is None:
        raise _Misfit(f"the server sent a Content-Range that cannot be read ({value!r})")
    return int(found[1]), None if found[2] == "*" else int(found[2])


def _resume_point(job: _Job) -> tuple[int, str]:
    """(bytes to keep, validator): 0 unless what lies there can be proved to fit the rest."""
    offset = _length(job.part)
    validator = NO_VALIDATOR
    if offset and job.validator.exists():
        validator = job.validator.read_text(encoding="latin-1").strip()
    if (job.size is not None and offset >= job.size) or not (validator or job.sha256):
        job.forget()
        return 0, NO_VALIDATOR
    return offset, validator


def _open(job: _Job, request: urllib.request.Request) -> Any:
    """The server's answer; passing troubles become `_BrokenConnection`, lasting ones `DownloadError`."""
    try:
        return _web_opener().open(request, timeout=job.timeout)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:
                raise _Misfit("the server does not have the rest of the file") from error
            if error.code in RETRY_STATUS:
                raise _BrokenConnection(f"the server answered {error.code} {error.reason}") from error
            raise DownloadError(f"{job.url}: the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, (socket.gaierror, ssl.SSLCertVerificationError, str)):
            raise DownloadError(f"{job.url}: no connection ({error.reason})") from error
        raise _BrokenConnection(f"no connection ({error.reason})") from error
    except DownloadError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenConnection(f"the connection failed ({error or type(error).__name__})") from error
    except ValueError as error:
        raise DownloadError(f"{job.url!r} is not a usable web address: {error}") from error


def _append(job: _Job, response: Any, offset: int, total: int | None) -> None:
    done = offset
    with open(job.part, "r+b" if offset else "wb") as file:
        file.seek(offset)
        file.truncate()
        job.progress(done, total)
        while True:
            try:
                chunk = response.read(CHUNK_BYTES)
            except (OSError, http.client.HTTPException) as error:
                raise _BrokenConnection(f"the connection broke ({error or type(error).__name__})") from error
            if not chunk:
                break
            done += len(chunk)
            if done > job.max_bytes or (job.size is not None and done > job.size):
                job.forget()
                limit = job.max_bytes if job.size is None else min(job.size, job.max_bytes)
                raise DownloadError(f"{job.url} sends more than {limit:,} bytes; it is not the published file")
            file.write(chunk)
            job.progress(done, total)
        file.flush()
        os.fsync(file.fileno())
    expected = job.size if total is None else total
    if expected is not None and done < expected:
        raise _BrokenConnection(f"the connection broke after {done:,} of {expected:,} bytes")


def _accept(job: _Job) -> str:
    """Check the part file and rename it into place; what is wrong is removed."""
    digest = file_sha256(job.part)
    if job.sha256 is not None and digest != job.sha256:
        raise _Misfit(f"sha256 is {digest}, expected {job.sha256}; what was fetched is wrong and was removed")
    os.replace(job.part, job.target)
    job.validator.unlink(missing_ok=True)
    return digest


def file_sha256(path: Path) -> str:
    """The sha256 of a file, as 64 lower-case hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
