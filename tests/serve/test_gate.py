"""Names of the host, tokens, and which addresses are this machine's own."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from streamlabel.errors import DataError, NotFoundError, StreamlabelError
from streamlabel.serve.access import Gate, Refusal, host_name, is_loopback, names_of, read_token
from streamlabel.serve.server import address_of, listen, url_of

TOKEN = "k" * 32


def passes(gate: Gate, *headers: tuple[bytes, bytes]) -> int:
    """200, or the status of the refusal."""
    try:
        gate.check(headers)
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


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer  {TOKEN}", 200),
        (f"Bearer {TOKEN}x", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        ("Bearer", 401),
        ("", 401),
    ],
)
def test_a_token_is_asked_for(header: str, status: int) -> None:
    gate = Gate(None, TOKEN)
    assert passes(gate, (b"host", b"any.example"), (b"authorization", header.encode())) == status
    assert passes(gate, (b"host", b"any.example")) == 401


def test_the_gate_stands_before_every_route(living: Any, testclient: Any) -> None:
    from streamlabel.serve.app import create_app

    gate = Gate(names_of("127.0.0.1", "127.0.0.1"), TOKEN)
    client = testclient.TestClient(create_app(living, gate), base_url="http://127.0.0.1:8000")
    for path in ("/health", "/nothing"):
        said = client.get(path)
        assert (said.status_code, said.headers["www-authenticate"]) == (401, "Bearer")
        assert client.get(path, headers={"host": "evil.example"}).status_code == 421
        assert "error" in said.json()
    assert client.get("/health", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert TOKEN not in repr(gate)


def test_tokens_in_files(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    assert read_token(path) == TOKEN
    for content in ("short", "two words that are quite long", "ü" * 30, "x" * 5000, "line\n" * 10):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(DataError):
            read_token(path)
    with pytest.raises(NotFoundError):
        read_token(tmp_path / "none")


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
