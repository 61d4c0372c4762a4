"""Habits of numeric Python that Sphinx does not know.

Fitted attributes end in an underscore, which reStructuredText reads as a link (``coef_`` to a target "coef"). Every
estimator inherits ``set_*_request`` methods whose texts link into scikit-learn's own pages. And a type alias that is
part of a union is shown as ``TypeAliasForwardRef('ArrayLike')`` where ``ArrayLike`` is meant. Short docstrings list
shapes as ``name : text`` without a heading, which would run together into one paragraph.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
FIELD = re.compile(r"(?P<names>[A-Za-z]\w*(?:, [A-Za-z]\w*)*) : (?P<text>.*)")
QUOTED_OR_ATTRIBUTE = re.compile(r"``.*?``|`[^`]*`_*|(?<![\w\\.])([A-Za-z]\w*?)_(?![\w`])")


def list_fields(lines: list[str]) -> list[str]:
    """The lines with every unindented ``name : text`` as a term and its definition.

    >>> list_fields(["A batch.", "rows : (q,), increasing", "X, Y : of these", "    rows", "and so on"])
    ['A batch.', '', '**rows**', '    (q,), increasing', '**X, Y**', '    of these', '    rows', '', 'and so on']
    """
    result: list[str] = []
    inside = False
    for line in lines:
        field = FIELD.fullmatch(line)
        goes_on = inside and (field is not None or line.startswith(" ") or not line)
        if inside != goes_on or (field and not inside):
            result.append("")
        inside = goes_on or field is not None
        result.extend((f"**{field['names']}**", f"    {field['text']}") if field else (line,))
    return result


def escape_attributes(lines: list[str]) -> list[str]:
    """The lines with a backslash before the last underscore of such names, where they are not code.

    >>> escape_attributes(["see coef_ and `coef_`", ">>> clf.coef_", "a_name, _private, __all__"])
    ['see coef\\\\_ and `coef_`', '>>> clf.coef_', 'a_name, _private, __all__']
    """
    return [line if line.lstrip().startswith((">>>", "...")) else _escaped(line) for line in lines]


def _escaped(line: str) -> str:
    return QUOTED_OR_ATTRIBUTE.sub(lambda found: f"{found[1]}\\_" if found[1] else found[0], line)


def _rewrite(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = escape_attributes(list_fields(lines))


def _skip_request_setters(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    return skip or (name.startswith("set_") and name.endswith("_request"))


def _plain_aliases(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    return signature and ALIAS.sub(r"\1", signature), returns and ALIAS.sub(r"\1", returns)


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", _rewrite, priority=900)  # after numpydoc
    app.connect("autodoc-process-signature", _plain_aliases)
    app.connect("autodoc-skip-member", _skip_request_setters)
    return {"parallel_read_safe": True}
