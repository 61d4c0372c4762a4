"""Runs ``streamlabel demo`` before the pages are read, so that they show what it prints and not what it once printed.

Output and report go to ``docs/generated/demo/``. They are made anew when any source file of the package is newer. The
report lies beside the pages as ``demo-report.html``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

import streamlabel


def demo_folder(app: Sphinx) -> Path:
    return Path(app.srcdir) / "generated" / "demo"


def make_demo(app: Sphinx) -> None:
    folder = demo_folder(app)
    output = folder / "demo.txt"
    sources = Path(streamlabel.__file__).parent.rglob("*.py")
    if output.exists() and output.stat().st_mtime > max(path.stat().st_mtime for path in sources):
        return
    logging.getLogger(__name__).info("running the demo (about a minute) ...")
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "streamlabel", "demo", "--out", "report.html"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        raise ExtensionError(f"'streamlabel demo' failed, so the pages cannot show it:\n{result.stderr}")
    output.write_text(f"$ streamlabel demo\n{result.stdout}", encoding="utf-8")


def copy_report(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        shutil.copyfile(demo_folder(app) / "report.html", Path(app.outdir) / "demo-report.html")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", make_demo)
    app.connect("build-finished", copy_report)
    return {"parallel_read_safe": True}
