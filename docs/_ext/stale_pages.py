"""Removes the reference pages that name modules that are gone; they would stop every later build in this folder."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx


def remove_stale_pages(app: Sphinx) -> None:
    for page in (Path(app.srcdir) / "generated" / "api").glob("*.rst"):
        named = re.findall(r"^ +(streamlabel[\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        if not all(map(_exists, (page.stem, *named))):
            page.unlink()


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package is gone, too
        return False


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", remove_stale_pages, priority=100)  # before autosummary looks for pages
    return {"parallel_read_safe": True}
