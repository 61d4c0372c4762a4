"""Access to the service: who may ask, and what is said to those who are refused.

Requests must be to a name of this host, and bring a token, if there is a file of them. A page of another site can make
a browser send requests here, by a name that its owner points to this machine (DNS rebinding): the Host header then has
that name, and is refused. Nor can it send JSON or DELETE without asking first, which nothing here allows. From other
machines only a token lets in.

A token has a name, which the history shows, and one scope: read, annotate (read, and learn labels and answers) or admin
(everything). The file keeps SHA-256 sums of tokens, which are 32 random bytes each, and never the tokens.

A refusal is a status, and one message for the person behind the request. The package's own messages are for who holds
the model: they name paths, processes and Python. Only what they say about a body is passed on; the rest goes to the
log, and the answer says what that person can do. In both, what to do is
said in `SERVICE_WORDS`, not in Python.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import logging
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from streamlabel.data.files import replacing
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
PAGE_WORDS = SERVICE_WORDS | {
    Hint.LABELS: "the page Labels has all",
    Hint.WHOLE_MODEL: "the page History goes back to revision {}",
}


class Refusal(Exception):
    """An exception that ends a request with this status and ``{"error": message}``.

    hint : what to do, which is said to programs and on pages in other words, after the message
    label : the label that a page shall link to, if any
    """

    def __init__(
        self,
        status: int,
        message: str,
        headers: dict[str, str] | None = None,
        *,
        hint: Hint | None = None,
        hint_value: str = "",
        label: str = "",
    ) -> None:
        self.status, self.headers, self.label = status, headers or {}, label
        self._problem = StreamlabelError(message, hint=hint, hint_value=hint_value)
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The message for a program."""
        return self._problem.told(SERVICE_WORDS)

    @property
    def on_page(self) -> str:
        """The message for a person who looks at a page."""
        return self._problem.told(PAGE_WORDS)


@contextmanager
def mistakes() -> Iterator[None]:
    """Turn what is wrong with the answers in a body into a 422. An error that names a file is not of that kind."""
    try:
        yield
    except DataError as error:
        if error.source is not None:
            raise
        raise Refusal(422, error.args[0], hint=error.hint, hint_value=error.hint_value) from None


def refusal_for(error: StreamlabelError) -> Refusal:
    """The refusal for trouble with the model; the trouble itself is logged."""
    logger.error("%s", error.told(SERVICE_WORDS))
    if isinstance(error, NotFoundError):
        return Refusal(503, GONE)
    if isinstance(error, ConflictError):
        return Refusal(409, BUSY, {"Retry-After": "1"})
    return Refusal(500, f"{BROKEN}; {(error.hint and SERVICE_WORDS[error.hint]) or LOG}")


LOOPBACK = ("localhost", "127.0.0.1", "::1")
HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[^\s:/@\[\]]+))(?P<port>:\d{1,5})?", re.IGNORECASE)
COOKIE = "streamlabel_token"
ASK = {"WWW-Authenticate": "Bearer"}
SCOPES = ("read", "annotate", "admin")  # each may do what those before it may
TOKEN_NAME = re.compile(r"[\w][\w .@+-]{0,63}")
SPAN = re.compile(r"(\d{1,5})([mhdw])")
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class Token:
    """A token as the file has it: its name, its scope, the SHA-256 sum, when it was made, and until when it holds."""

    name: str
    scope: str
    sha256: str
    created: str
    expires: str | None = None

    @property
    def is_over(self) -> bool:
        return self.expires is not None and datetime.fromisoformat(self.expires) <= datetime.now(UTC)

    def may(self, scope: str) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


class TokenFile:
    """The tokens in a file, read again when it changes. If it cannot be read, no token is known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = self._look()  # before it is read: what is written meanwhile is read again
        self._tokens = {one.sha256: one for one in read_tokens(path)}

    def find(self, secret: str) -> Token | None:
        """The token that was given, if it is known and holds."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._tokens = {one.sha256: one for one in read_tokens(self.path)}
            except StreamlabelError as error:
                logger.error("no token is known: %s", error)
                self._tokens = {}
        found = self._tokens.get(sha256(secret.encode()).hexdigest())
        return None if found is None or found.is_over else found

    def _look(self) -> tuple[int, ...] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


def read_tokens(path: Path) -> list[Token]:
    """Read a file of tokens."""
    try:
        found = [Token(**one) for one in json.loads(path.read_text("utf-8"))["tokens"]]
        [(one.is_over, one.may("read"), one.sha256.encode(), one.name.encode()) for one in found]
    except FileNotFoundError:
        raise NotFoundError(f"{path}: there is no such file; 'streamlabel token add {path} NAME' makes one") from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", source=path) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        problem = "this is no file of tokens; 'streamlabel token add' makes one"
        raise DataError(problem, source=path) from None
    return found


def add_token(path: Path, name: str, scope: str, span: str | None = None) -> tuple[str, Token]:
    """Make a token that holds for a span such as 30d, and keep its sum in a file; returns the secret, told only now."""
    if not TOKEN_NAME.fullmatch(name):
        raise DataError(f"{name!r} is no name of a token; use up to 64 letters, digits, blanks and _ . @ + -")
    secret, now = secrets.token_urlsafe(32), datetime.now(UTC).replace(microsecond=0)
    until = None if span is None else (now + _span(span)).isoformat()
    token = Token(name, scope, sha256(secret.encode()).hexdigest(), now.isoformat(), until)
    with _alone(path):
        known = read_tokens(path) if path.exists() else []
        if any(one.name == name for one in known):
            problem = f"there is a token {name!r} already; choose another name, or revoke that one first"
            raise ConflictError(f"{path}: {problem}")
        _write_tokens(path, [*known, token])
    return secret, token


def revoke_token(path: Path, name: str) -> None:
    """Take a token out of a file; a service that uses the file refuses it from then on."""
    with _alone(path):
        known = read_tokens(path)
        left = [one for one in known if one.name != name]
        if len(left) == len(known):
            raise NotFoundError(f"{path}: no token is called {name!r}; 'streamlabel token list {path}' lists all")
        _write_tokens(path, left)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one at a time change a file of tokens: they lock its folder, for the file itself is replaced."""
    folder = os.open(path.parent, os.O_RDONLY) if os.name != "nt" and path.parent.is_dir() else None
    try:
        if folder is not None:
            import fcntl

            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        if folder is not None:
            os.close(folder)


def _write_tokens(path: Path, tokens: list[Token]) -> None:
    with replacing(path) as handle:
        if hasattr(os, "fchmod"):
            os.fchmod(handle.fileno(), 0o600)
        handle.write(json.dumps({"tokens": [asdict(one) for one in tokens]}, indent=2).encode() + b"\n")


def _span(text: str) -> timedelta:
    found = SPAN.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r} is no span of time; give a number with m, h, d or w, such as 30d")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


@dataclass(frozen=True, repr=False)
class Gate:
    """The check of who may ask: names of the host, lower case (None: bound to every address), and the tokens."""

    names: frozenset[str] | None
    tokens: TokenFile | None = None

    def __post_init__(self) -> None:
        if self.names is None and self.tokens is None:
            raise ValueError("a gate without names needs tokens")

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> Token | None:
        """The token that a request with these headers brings, if any; Refusal if no request like it may come in."""
        found: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            found.setdefault(name.lower(), []).append(value)
        if b"content-length" in found and b"transfer-encoding" in found:  # a proxy may see another end of the body
            message = "send Content-Length or Transfer-Encoding, not both"
            raise Refusal(400, message, {"Connection": "close"})
        hosts = found.get(b"host", [])
        match = HOST.fullmatch(hosts[0].decode("latin-1")) if len(hosts) == 1 else None
        if self.names is not None and (match is None or _name_in(match) not in self.names):
            raise Refusal(421, "the Host header names a host that this service is not; --allow-host adds a name")
        secret = None if self.tokens is None else given_secret(found)
        return None if secret is None or self.tokens is None else self.tokens.find(secret)

    def require(self, token: Token | None, scope: str) -> None:
        """Raise Refusal if who brings this token, or none, may not do what takes this scope."""
        if self.tokens is None:
            return
        if token is None:
            raise Refusal(401, "send the header 'Authorization: Bearer TOKEN' with a token that holds", ASK)
        if not token.may(scope):
            raise Refusal(403, f"this takes a token with the scope {scope}, and {token.name!r} has {token.scope}")


def given_secret(headers: Mapping[bytes, list[bytes]]) -> str | None:
    """The token in the headers of a request: Bearer, the password of Basic, or the cookie of the pages."""
    given = headers.get(b"authorization", [])
    if given:
        scheme, _, value = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if scheme.lower() == b"bearer":
            return value.strip().decode("latin-1")
        if scheme.lower() == b"basic":
            try:
                return base64.b64decode(value.strip(), validate=True).partition(b":")[2].decode("latin-1")
            except binascii.Error:
                return None
        return None
    for line in headers.get(b"cookie", []):
        for pair in line.decode("latin-1").split(";"):
            name, _, value_ = pair.strip().partition("=")
            if name == COOKIE:
                return value_
    return None


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
