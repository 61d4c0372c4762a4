from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the signals of a process are read from /proc")
def test_an_interrupt_does_not_reach_a_worker_that_is_still_starting():
    """In a fresh interpreter, where the first worker also starts what multiprocessing keeps beside them."""
    code = """if True:
        import signal
        from pathlib import Path
        from streamlabel.experiments.workers import _Pool

        pool = _Pool(iter, 2)
        for worker in pool._workers.values():
            status = Path(f"/proc/{worker.pid}/status").read_text()
            fields = dict(line.split(":", 1) for line in status.splitlines())
            print(int(fields["SigBlk"], 16) >> (signal.SIGINT - 1) & 1)
        print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        pool._end()
    """
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.split() == ["1", "1", "False"]
