"""Names of the host, tokens, and which addresses are this machine's own."""

from __future__ import annotations

import asyncio
import base64
import socket
import stat
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from streamlabel.errors import ConflictError, DataError, NotFoundError, StreamlabelError
from streamlabel.serve import access
from streamlabel.serve.access import (
    Gate,
    Refusal,
    Token,
    TokenFile,
    add_token,
    host_name,
    is_loopback,
    names_of,
    read_tokens,
    revoke_token,
)
from streamlabel.serve.server import address_of, listen, url_of


def passes(gate: Gate, *headers: tuple[bytes, bytes], scope: str = "read") -> int:
    """200, or the status of the refusal."""
    try:
        gate.require(gate.check(headers), scope)
    except Refusal as refusal:
        return refusal.status
    return 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"127.0.0.1:8000", 200),
        (b"localhost", 200),
        (b"LOCALHOST.:80", 200),
        (b"[::1]:8000", 200),
        (b"evil.example", 421),
        (b"evil.example:8000", 421),
        (b"127.0.0.1.evil.example", 421),
        (b"evil.example@localhost", 421),
        (b"localhost:8000:evil", 421),
        (b"", 421),
        (b"[", 421),
        (b"\xff", 421),
    ],
)
def test_only_names_of_this_host(host: bytes, status: int) -> None:
    assert passes(Gate(names_of("127.0.0.1", "127.0.0.1")), (b"host", host)) == status


def test_one_host_exactly() -> None:
    gate = Gate(names_of("localhost", "127.0.0.1"))
    assert passes(gate) == 421
    assert passes(gate, (b"host", b"localhost"), (b"host", b"evil.example")) == 421


def test_a_body_has_one_end() -> None:
    gate, ours = Gate(names_of("localhost", "127.0.0.1")), (b"host", b"localhost")
    length, chunked = (b"Content-Length", b"4"), (b"Transfer-Encoding", b"chunked")
    assert passes(gate, ours, length) == passes(gate, ours, chunked) == 200
    assert passes(gate, ours, length, chunked) == 400


def test_the_names_of_an_address() -> None:
    assert names_of("Box.lan", "192.0.2.7") == {"box.lan", "192.0.2.7"}
    assert names_of("::1", "::1") == {"::1", "127.0.0.1", "localhost"}
    assert names_of("0.0.0.0", "0.0.0.0") is None
    assert names_of("::", "::") is None
    assert names_of("0.0.0.0", "0.0.0.0", ["tags.example"]) is None
    with pytest.raises(ValueError, match="token"):
        Gate(None)


def test_names_that_a_proxy_passes_on() -> None:
    gate = Gate(names_of("127.0.0.1", "127.0.0.1", [host_name("Tags.Example."), host_name("[2001:db8::1]")]))
    for host in (b"tags.example", b"TAGS.example:443", b"[2001:db8::1]:8000", b"localhost"):
        assert passes(gate, (b"host", host)) == 200
    assert passes(gate, (b"host", b"other.tags.example")) == 421


@pytest.mark.parametrize("name", ["", "http://tags.example", "tags.example:443", "a b", "*/", "[::1", "x@tags.example"])
def test_what_is_no_name_of_a_host(name: str) -> None:
    with pytest.raises(DataError, match="without http"):
        host_name(name)


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()


def test_a_token_is_asked_for(secrets: dict[str, str]) -> None:
    """As Bearer, as the password of Basic, or as the cookie; nothing else, and no other token."""
    gate, good, host = Gate(None, TokenFile(Path(secrets["file"]))), secrets["read"], (b"host", b"any.example")
    for header, status in {
        f"Bearer {good}": 200, f"bearer  {good}": 200, basic(good): 200,
        f"Bearer {good}x": 401, f"Bearer {good[:-1]}": 401, f"Basic {good}": 401, basic("x"): 401,
        good: 401, "Bearer": 401, "": 401, "Basic ?": 401, f"Digest {good}": 401, "Bearer \xff": 401,
    }.items():  # fmt: skip
        assert passes(gate, host, (b"authorization", header.encode("latin-1"))) == status, header
    for cookie, status in {
        f"streamlabel_token={good}": 200, f"a=b; streamlabel_token={good}": 200, f"token={good}": 401,
        f"streamlabel_token={good}x": 401,
    }.items():  # fmt: skip
        assert passes(gate, host, (b"cookie", cookie.encode())) == status, cookie
    assert passes(gate, host) == 401
    twice = (b"authorization", f"Bearer {good}".encode())
    assert passes(gate, host, twice, twice) == 401


@pytest.mark.parametrize(("held", "allowed"), [("read", 1), ("annotate", 2), ("admin", 3)])
def test_a_scope_allows_what_the_ones_before_it_allow(secrets: dict[str, str], held: str, allowed: int) -> None:
    gate = Gate(None, TokenFile(Path(secrets["file"])))
    header = (b"authorization", f"Bearer {secrets[held]}".encode())
    found = [passes(gate, header, scope=scope) for scope in ("read", "annotate", "admin")]
    assert found == [200] * allowed + [403] * (3 - allowed)


def test_the_gate_stands_before_every_route(guarded: Any, secrets: dict[str, str]) -> None:
    for path in ("/labels", "/nothing", "/metrics", "/docs", "/openapi.json", "/labels/livez"):
        said = guarded.get(path)
        assert (said.status_code, said.headers["www-authenticate"]) == (401, "Bearer")
        assert guarded.get(path, headers={"host": "evil.example"}).status_code == 421
        assert "error" in said.json()
    for path in ("/livez", "/readyz"):
        assert guarded.get(path).status_code == 200
        assert guarded.get(path, headers={"host": "evil.example"}).status_code == 421
    assert guarded.get("/labels", headers={"authorization": f"Bearer {secrets['read']}"}).status_code == 200
    assert not any(secret in repr(Gate(None, TokenFile(Path(secrets["file"])))) for secret in secrets.values())


def test_a_file_has_no_token_and_nobody_else_reads_it(secrets: dict[str, str]) -> None:
    path = Path(secrets["file"])
    content = path.read_text()
    assert not any(secrets[scope] in content for scope in ("read", "annotate", "admin"))
    assert sha256(secrets["read"].encode()).hexdigest() in content
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 or sys.platform == "win32"
    assert [(one.name, one.scope) for one in read_tokens(path)] == [
        ("reader", "read"), ("annotateer", "annotate"), ("adminer", "admin"),
    ]  # fmt: skip


def test_a_token_that_is_revoked_or_over_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokens.json"
    (first, _), (short, made) = add_token(path, "ann", "read"), add_token(path, "bob", "read", "30d")
    known = TokenFile(path)
    assert made.expires is not None
    assert datetime.fromisoformat(made.expires) - datetime.fromisoformat(made.created) == timedelta(days=30)
    assert (getattr(known.find(first), "name", None), getattr(known.find(short), "name", None)) == ("ann", "bob")
    revoke_token(path, "ann")
    assert known.find(first) is None
    again, _ = add_token(path, "ann", "admin")
    assert known.find(first) is None
    assert known.find(again) == next(one for one in read_tokens(path) if one.name == "ann")
    past = Token("bob", "read", made.sha256, made.created, (datetime.now(UTC) - timedelta(seconds=1)).isoformat())
    assert (past.is_over, made.is_over) == (True, False)


def test_a_file_that_breaks_lets_nobody_in(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "tokens.json"
    secret, _ = add_token(path, "ann", "read")
    known, whole = TokenFile(path), path.read_bytes()
    for content in (b"{", b"[]", b'{"tokens": [{"name": 1}]}', whole.replace(b'"read"', b'"god"'), None):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        assert known.find(secret) is None
        assert "no token is known" in caplog.text
        path.write_bytes(whole)
        assert known.find(secret) is not None
        caplog.clear()


def test_what_is_refused_of_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    with pytest.raises(NotFoundError, match="token add"):
        TokenFile(path)
    add_token(path, "ann", "read")
    with pytest.raises(ConflictError, match="revoke"):
        add_token(path, "ann", "admin")
    for name in ("", "a\nb", "-x", "x" * 65):
        with pytest.raises(DataError, match="no name of a token"):
            add_token(path, name, "read")
    for span in ("30", "d", "-1d", "1y", "1.5d"):
        with pytest.raises(DataError, match="30d"):
            add_token(path, "bob", "read", span)
    with pytest.raises(NotFoundError, match="token list"):
        revoke_token(path, "bob")
    path.write_text("secret")
    with pytest.raises(DataError, match="no file of tokens"):
        add_token(path, "bob", "read")


@pytest.mark.parametrize(
    ("address", "own"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("0.0.0.0", False), ("::", False), ("192.0.2.7", False)],
)
def test_which_addresses_only_this_machine_reaches(address: str, own: bool) -> None:
    assert is_loopback(address) is own


def test_a_socket_is_bound_once() -> None:
    assert address_of("127.0.0.1") == "127.0.0.1"
    assert is_loopback(address_of("localhost"))
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert url_of(listener) == f"http://127.0.0.1:{port}"
        with pytest.raises(StreamlabelError, match="in use"):
            listen("127.0.0.1", port)
    with pytest.raises(StreamlabelError, match="no address"):
        address_of("no such host.invalid")
    with pytest.raises(StreamlabelError, match="cannot listen"):
        listen("192.0.2.7", 0)


def test_small_answers_are_sent_at_once() -> None:
    """asyncio sets TCP_NODELAY on what such a socket accepts."""

    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            option = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            found.set_result(option)

        listener = listen("127.0.0.1", 0)
        async with await asyncio.start_server(meet, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            option = await asyncio.wait_for(found, 10)
            writer.close()
            await writer.wait_closed()
        return option

    assert asyncio.run(accepted()) == 1


def test_tokens_that_are_made_at_the_same_time_are_all_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that was revoked does not come back with another that was read before."""
    path, read = tmp_path / "tokens.json", access.read_tokens

    def slowly(path: Path) -> list[Token]:
        found = read(path)
        time.sleep(0.05)
        return found

    add_token(path, "first", "admin")
    monkeypatch.setattr(access, "read_tokens", slowly)
    with ThreadPoolExecutor(5) as pool:
        made = [pool.submit(add_token, path, f"token {number}", "read") for number in range(4)]
        made.append(pool.submit(revoke_token, path, "first"))
        for one in made:
            one.result()
    assert sorted(one.name for one in read(path)) == [f"token {number}" for number in range(4)]


def test_a_token_that_comes_while_the_file_is_first_read_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, read, late = tmp_path / "tokens.json", access.read_tokens, list[str]()
    add_token(path, "first", "read")

    def read_before(path: Path) -> list[Token]:
        found = read(path)
        if not late:
            late.append("")
            late[0] = add_token(path, "second", "read")[0]
        return found

    monkeypatch.setattr(access, "read_tokens", read_before)
    assert TokenFile(path).find(late[0]) is not None
