"""Access to the service: who may ask, and what is said to those who are refused.

Requests must be to a name of this host, and bring the token, if there is one. A page of another site can make a
browser send requests here, by a name that its owner points to this machine (DNS rebinding): the Host header then has
that name, and is refused. Nor can it send JSON or DELETE without asking first, which nothing here allows. From other
machines only a token lets in.

A refusal is a status, and one message for the person behind the request. The package's own messages are for who holds
the model: they name paths, processes and Python. Only what they say about a body is passed on; the rest goes to the
log, and the answer says what that person can do. In both, what to do is
said in `SERVICE_WORDS`, not in Python.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from streamlabel.errors import ConflictError, DataError, Hint, NotFoundError, StreamlabelError

logger = logging.getLogger("streamlabel.serve")

GONE = "the model is not where it was; suggestions go on from the last revision, changes wait until it is back"
BUSY = "another process is changing the model; try again in a moment"
BROKEN = "the model could not be read or written"
LOG = "the log of the service says why"
MEND = "whoever runs the service can mend it with 'streamlabel doctor'"
RESTORE = "whoever runs the service can restore it from a backup"
SERVICE_WORDS = {
    **dict.fromkeys(Hint, ""),  # nothing that the asker could do
    **dict.fromkeys((Hint.DOCTOR, Hint.LEAVE_OUT, Hint.REPAIR, Hint.WITHOUT_LEARNING), MEND),
    **dict.fromkeys((Hint.BACKUP, Hint.DOCTOR_OR_BACKUP), RESTORE),
    Hint.LABELS: "GET /labels lists all",
    Hint.LABEL_BY_LABEL: "choose a revision that is whole",
    Hint.WHOLE_MODEL: "POST /rollback with the revision {}",
    Hint.WAIT_OR_READ: "try again in a moment",
}


class Refusal(Exception):
    """An exception that ends a request with this status and ``{"error": message}``."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


@contextmanager
def mistakes() -> Iterator[None]:
    """Turn what is wrong with the answers in a body into a 400. An error that names a file is not of that kind."""
    try:
        yield
    except DataError as error:
        if error.source is not None:
            raise
        raise Refusal(400, error.told(SERVICE_WORDS)) from None


def refusal_for(error: StreamlabelError) -> Refusal:
    """The refusal for trouble with the model; the trouble itself is logged."""
    logger.error("%s", error.told(SERVICE_WORDS))
    if isinstance(error, NotFoundError):
        return Refusal(503, GONE)
    if isinstance(error, ConflictError):
        return Refusal(409, BUSY, {"Retry-After": "1"})
    return Refusal(500, f"{BROKEN}; {(error.hint and SERVICE_WORDS[error.hint]) or LOG}")


LOOPBACK = ("localhost", "127.0.0.1", "::1")
LEAST_TOKEN = 20
MOST_TOKEN = 4096
HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[^\s:/@\[\]]+))(?P<port>:\d{1,5})?", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Gate:
    """The check of who may ask: names of the host, lower case (None: bound to every address), and the token."""

    names: frozenset[str] | None
    token: str | None = None

    def __post_init__(self) -> None:
        if self.names is None and self.token is None:
            raise ValueError("a gate without names needs a token")

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raise Refusal if a request with these headers may not come in."""
        found: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            found.setdefault(name.lower(), []).append(value)
        if b"content-length" in found and b"transfer-encoding" in found:  # a proxy may see another end of the body
            message = "send Content-Length or Transfer-Encoding, not both"
            raise Refusal(400, message, {"Connection": "close"})
        if self.names is not None and not self._is_ours(found.get(b"host", [])):
            raise Refusal(421, "the Host header names a host that this service is not; --allow-host adds a name")
        if self.token is not None and not self._is_known(found):
            raise Refusal(401, "send the header 'Authorization: Bearer TOKEN'", {"WWW-Authenticate": "Bearer"})

    def _is_ours(self, hosts: list[bytes]) -> bool:
        match = HOST.fullmatch(hosts[0].decode("latin-1")) if len(hosts) == 1 else None
        if match is None or self.names is None:
            return False
        return _name_in(match) in self.names

    def _is_known(self, headers: Mapping[bytes, list[bytes]]) -> bool:
        given = headers.get(b"authorization", [])
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        assert self.token is not None
        wanted = sha256(self.token.encode()).digest()
        same = hmac.compare_digest(sha256(token.strip()).digest(), wanted)
        return same and scheme.lower() == b"bearer"


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach the address."""
    return ipaddress.ip_address(address).is_loopback


def names_of(host: str, address: str, more: Iterable[str] = ()) -> frozenset[str] | None:
    """The names by which a service at ``address``, asked for as ``host``, may be called; None for any.

    more : others that a proxy passes on, as `host_name` checks them
    """
    if ipaddress.ip_address(address).is_unspecified:
        return None
    own = LOOPBACK if is_loopback(address) else ()
    return frozenset(name.lower() for name in (host, address, *own, *more))


def host_name(text: str) -> str:
    """Check a name as a Host header has it: returns it in lower case; DataError if it is none or has a port."""
    match = HOST.fullmatch(text)
    if match is None or match["port"] is not None:
        raise DataError(f"{text!r} is no name of a host; give the name alone, without http:// and without a port")
    return _name_in(match)


def _name_in(match: re.Match[str]) -> str:
    return (match["six"] or match["name"].removesuffix(".")).lower()


def read_token(path: Path) -> str:
    """Read the token from a file: one line without blanks."""
    if not path.exists():
        raise NotFoundError(f"{path}: there is no such file")
    with path.open("rb") as file:
        content = file.read(MOST_TOKEN + 1)
    token = content.strip().decode("ascii", "replace")
    if len(content) > MOST_TOKEN or not re.fullmatch(r"[!-~]*", token):
        raise DataError("a token is one line of ASCII characters without blanks", source=path)
    if len(token) < LEAST_TOKEN:
        advice = "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"
        raise DataError(f"the token has {len(token)} characters, less than {LEAST_TOKEN}; {advice}", source=path)
    return token
