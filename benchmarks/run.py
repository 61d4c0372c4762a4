"""All benchmarks, one after the other: ``make bench``, or ``make bench ARGS=readers`` for some of them.

``make bench ARGS="found --quick"`` runs the one of labels from found examples, ``make bench ARGS=serve`` the service
under load, ``peers`` other libraries on the same work (all three also ``--quick``), ``shapes`` the cost against rows,
features and labels, ``cost_model`` what a billion rows would take: all of these take too long to be among all.
"""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
import time
from pathlib import Path

BENCHMARKS = ("readers", "metrics", "store", "predict", "losses", "large", "two_phase", "fit", "thresholds", "kernel")
ALONE = {
    "found": "found",
    "serve": "bench_serve",
    "peers": "bench_peers",
    "shapes": "bench_shapes",
    "cost_model": "cost_model",
}


def main(argv: list[str] | None = None) -> int:
    sys.path.insert(0, str(Path(__file__).parent))
    given = sys.argv[1:] if argv is None else argv
    if given and given[0] in ALONE:
        return int(importlib.import_module(ALONE[given[0]]).main(given[1:]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(BENCHMARKS)} (default: all)")
    names = parser.parse_args(given).names or BENCHMARKS
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    print(f"Python {platform.python_version()}, {platform.machine()}, {time.strftime('%Y-%m-%d')}; read the ratios")
    codes = []
    for name in names:
        print(f"\n== {name}", flush=True)
        codes.append(importlib.import_module(f"bench_{name}").main([]))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
