"""Programs that tests start: with the signals they rely on, in a group of their own, and gone when the test ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE = 300.0  # seconds until a test gives up waiting for another process: never reached by one that is only slow
_KEPT = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "loky")  # helpers that Python keeps running


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A program with its output in pipes, while the block runs; then it and all that it started is ended."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **options
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait(PATIENCE)


def wait_for(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Look again and again until it is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


def take_default_signals() -> None:
    """Ctrl-C interrupts, here and in programs started from here: under nohup or in a script's background it is ignored,
    and programs inherit that."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))


def children() -> dict[int, str]:
    """The processes that this one has started and that still run, with their command; {} where /proc does not tell."""
    try:
        listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    except OSError:
        return {}
    found = {}
    for pid in map(int, listed.split()):
        with suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if command.strip() and not any(word in command for word in _KEPT):  # without a command: it has ended
                found[pid] = command.strip()
    return found
