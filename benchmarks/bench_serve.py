"""The service under load: a real process on loopback with 4,271 labels, asked by clients while labels are learned.

Texts have 200 words, of a vocabulary of 5,000, as EURLEX57K has features. Printed are requests a second and the 50th,
95th and 99th percentile of their time, the time of the processor that the service took for each, beside the floor: the
same vectoriser and one product with all classifiers, in this process. Then many labels one after the other, and the
memory of the service over many requests. Clients are processes of their own, and take their part of the same machine:
where other things run on it, read the times of the processor.

The model is made once and kept in the folder of temporary files.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from streamlabel import Tagger

N_LABELS, N_TEXTS, N_WORDS, LENGTH = 4271, 6000, 5000, 200
CLIENTS = 8
KEPT = Path(tempfile.gettempdir()) / f"streamlabel-bench-serve-{N_LABELS}-{N_TEXTS}"


@functools.cache
def words() -> list[str]:
    rng = np.random.default_rng(7)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    found = {"".join(rng.choice(letters, rng.integers(4, 10))) for _ in range(N_WORDS + 500)}
    return sorted(found)[:N_WORDS]


def make_texts(n: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Texts whose labels give them some words of their own; the rest is by Zipf's law."""
    rng, vocabulary = np.random.default_rng(seed), np.array(words())
    own = np.random.default_rng(0).integers(0, N_WORDS, size=(N_LABELS + 2000, 6))
    law = 1.0 / np.arange(1, N_WORDS + 1) ** 0.8
    popular = 1.0 / np.arange(1, N_LABELS + 1) ** 0.7
    texts, tags = [], []
    for place in range(n):
        drawn = rng.choice(N_LABELS, 5, replace=False, p=popular / popular.sum())
        labels = np.unique(np.append(drawn, place % N_LABELS))  # each is there at least once
        told = rng.choice(own[labels].ravel(), LENGTH // 4)
        said = rng.choice(N_WORDS, LENGTH - len(told), p=law / law.sum())
        texts.append(" ".join(vocabulary[rng.permutation(np.append(told, said))]))
        tags.append([f"label {label:04d}" for label in labels])
    return texts, tags


def kept_model() -> Path:
    if not KEPT.exists():
        begin = time.perf_counter()
        Tagger().fit(*make_texts(N_TEXTS, 1)).save(KEPT)
        print(f"made a model of {N_LABELS:,} labels in {time.perf_counter() - begin:.0f} s: {KEPT}", flush=True)
    return KEPT


class Service:
    """A service that runs as a process: its address, its time of the processor, its memory."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.pid = process.pid
        self.host, port = process.stdout.readline().split()[0].removeprefix("http://").split(":")
        self.port = int(port)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        url, headers = f"http://{self.host}:{self.port}{path}", {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
            return dict(json.load(answer))

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """The private memory in MB: what is mapped of files does not count."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


@contextmanager
def started(model: Path) -> Iterator[Service]:
    command = [sys.executable, "-m", "streamlabel", "serve", str(model), "--port", "0"]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield Service(process)
        finally:
            process.terminate()
            process.wait(60)


async def _client(host: str, port: int, requests: list[bytes], until: float, rate: float, place: int) -> list[float]:
    """Ask one thing after the other on one connection, at a rate (0: as fast as it goes); the seconds of each."""
    reader, writer = await asyncio.open_connection(host, port)
    taken, due = [], time.perf_counter() + (place / CLIENTS / rate if rate else 0.0)
    try:
        while time.perf_counter() < until:
            if rate:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                due += 1.0 / rate
            begin = time.perf_counter()
            writer.write(requests[len(taken) % len(requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(head.decode())
            if b"chunked" in head.lower():
                while size := int(await reader.readline(), 16):
                    await reader.readexactly(size + 2)
                await reader.readexactly(2)
            else:
                await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
            taken.append(time.perf_counter() - begin)
    finally:
        writer.close()
    return taken


def ask(host: str, port: int, texts: list[str], seconds: float, clients: int, rate: float) -> list[float]:
    """Ask from one process by several clients; the seconds of each request."""
    requests = []
    for text in texts:
        body = json.dumps({"texts": [text]}).encode()
        head = (
            f"POST /suggest HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        )
        requests.append(head.encode() + b"\r\n\r\n" + body)

    async def all_of_them() -> list[list[float]]:
        until = time.perf_counter() + seconds
        return await asyncio.gather(
            *(_client(host, port, requests[one:], until, rate / clients, one) for one in range(clients))
        )

    return [one for taken in asyncio.run(all_of_them()) for one in taken]


def floor(model: Path, texts: list[str]) -> tuple[float, float]:
    """Milliseconds of the processor a text: the vectoriser, and one product with all classifiers."""
    tagger = Tagger.open(model)
    weights = tagger.classifier_.state_.classifiers.weights()
    rows = [tagger.vectorizer_.transform([text]) for text in texts]
    begin = time.process_time()
    for text in texts:
        tagger.vectorizer_.transform([text])
    middle = time.process_time()
    for row in rows:
        row @ weights
    return 1000 * (middle - begin) / len(texts), 1000 * (time.process_time() - middle) / len(texts)


def new_label(number: int) -> dict[str, Any]:
    texts, _ = make_texts(8, 10_000 + number)
    return {"name": f"new {number:05d}", "yes": texts[:4], "no": texts[4:]}


def told(taken: list[float], seconds: float, cpu: float) -> str:
    low, high, top = 1000 * np.percentile(taken, [50, 95, 99])
    return (
        f"{len(taken) / seconds:.0f} requests/s; ms: {low:.1f} half of them, {high:.1f} 95%, {top:.1f} 99%; "
        f"{1000 * cpu / len(taken):.2f} ms of the processor each ({cpu / seconds:.2f} cores)"
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--seconds", type=float, help="of each load (default: 20; quick: 4)")
    parser.add_argument("--labels", type=int, help="one after the other (default: 1000; quick: 20)")
    parser.add_argument("--requests", type=int, help="over which memory is looked at (default: 100000; quick: 3000)")
    parser.add_argument("--only", choices=("load", "labels", "memory"), help="one part of it")
    parser.add_argument("--most", type=float, default=420.0, help="seconds of labels, and of memory (default: 420)")
    options = parser.parse_args(argv)
    parts = (options.only,) if options.only else ("load", "labels", "memory")
    seconds = options.seconds or (4.0 if options.quick else 20.0)
    texts, _ = make_texts(64, 2)
    lifted, product = floor(kept_model(), texts)
    print(f"floor: {lifted + product:.2f} ms of the processor a text ({lifted:.2f} vectoriser, {product:.2f} product)")
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, spawn) as pool:
        model = Path(shutil.copytree(KEPT, Path(folder) / "model"))
        with started(model) as service:
            first = time.perf_counter()
            service.post("/labels", new_label(0))
            print(f"first label, with trials on those that are known: {time.perf_counter() - first:.1f} s")
            asking = functools.partial(pool.submit, ask, service.host, service.port, texts)
            asking(2.0, CLIENTS, 0.0).result()  # blocks are made
            if "load" in parts:
                under_load(service, asking, seconds)
            if "labels" in parts:
                in_a_row(service, options.labels or (20 if options.quick else 1000), options.most)
            if "memory" in parts:
                in_memory(service, asking, options.requests or (3000 if options.quick else 100_000), options.most)
    return 0


def under_load(service: Service, asking: Any, seconds: float) -> None:
    """Ask alone, while labels are learned, and at 400 requests a second."""
    ended, learned = threading.Event(), []

    def learn() -> None:
        while not ended.wait(max(0.0, 1.0 - (learned[-1] if learned else 0.0))):
            begin = time.perf_counter()
            service.post("/labels", new_label(1 + len(learned)))
            learned.append(time.perf_counter() - begin)

    thread = threading.Thread(target=learn)
    for name, rate in (
        ("suggest", 0.0), ("suggest, and a label every second", 0.0), ("the same at 400 requests/s", 400.0),
    ):  # fmt: skip
        if name != "suggest" and thread.ident is None:
            thread.start()
        cpu = service.cpu()
        taken = asking(seconds, CLIENTS, rate).result()
        print(f"{name}: {told(taken, seconds, service.cpu() - cpu)}", flush=True)
    ended.set()
    thread.join()
    print(f"  {len(learned)} labels learned meanwhile, {np.median(learned):.2f} s each (median)")


def in_a_row(service: Service, n_labels: int, most: float) -> None:
    """Learn labels one after the other: their time at the beginning and at the end."""
    times: list[float] = []
    begin, cpu = time.perf_counter(), service.cpu()
    while len(times) < n_labels and time.perf_counter() - begin < most:
        asked = time.perf_counter()
        service.post("/labels", new_label(10_000 + len(times)))
        times.append(time.perf_counter() - asked)
    tenth, cpu = max(1, len(times) // 10), (service.cpu() - cpu) / len(times)
    ends = 1000 * np.median(times[:tenth]), 1000 * np.median(times[-tenth:])
    print(
        f"{len(times):,} labels in a row: {ends[0]:.0f} ms each at the beginning, {ends[1]:.0f} ms at the end "
        f"(medians of a tenth); {1000 * cpu:.0f} ms of the processor each", flush=True,
    )  # fmt: skip


def in_memory(service: Service, asking: Any, n_requests: int, most: float) -> None:
    """Look at the memory of the service while it answers."""
    begin, done, memory = time.perf_counter(), 0, [service.memory()]
    while done < n_requests and time.perf_counter() - begin < most:
        done += len(asking(5.0, CLIENTS, 0.0).result())
        memory.append(service.memory())
    print(f"memory over {done:,} requests: {memory[0]:.0f} MB before, {memory[-1]:.0f} MB after")


if __name__ == "__main__":
    sys.exit(main())
