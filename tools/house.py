"""Measures the house: modules and lines a package, modules that one neighbour alone imports, the longest chain of
imports, uses of other objects' private attributes, the longest module, module names that occur twice.

``python tools/house.py`` prints the figures; with ``--check`` it fails where one is above its limit in `LIMITS`.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
# What may not grow; lower a limit when the house has become smaller.
LIMITS = {
    "modules": 205,
    "lines": 47_700,
    "one importer": 15,
    "chain": 27,
    "private uses": 4,
    "longest": 635,
    "twice": 0,
}


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted((SOURCE / "streamlabel").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(tree: ast.Module, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a module imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & set(known)
            found |= inner or ({node.module} & set(known))
    return found


def private_uses(tree: ast.Module) -> int:
    """Uses of ``other._name`` where neither other is self or cls, nor the module itself defines such a name."""
    uses = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    ]
    own = {node.attr for node in uses if isinstance(node.ctx, ast.Store) and getattr(node.value, "id", "") == "self"}
    own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    own |= {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    others = (node for node in uses if getattr(node.value, "id", "") not in ("self", "cls"))
    return sum(node.attr not in own for node in others)


def main() -> int:
    known = modules()
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in known.items()}
    edges = {name: imports(tree, known) - {name} for name, tree in trees.items()}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, targets in edges.items():
        for target in targets:
            importers[target].add(name)

    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(target) for target in edges[name] if target != "streamlabel"), default=0)

    sizes = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in known.items()}
    packages = Counter(name.split(".")[1] if name.count(".") > 1 or (known[name].name == "__init__.py" and "." in name)
                       else "(root)" for name in known)  # fmt: skip
    lines: Counter[str] = Counter()
    for name, size in sizes.items():
        lines[name.split(".")[1] if name.count(".") > 1 else "(root)"] += size
    for package, count in sorted(packages.items()):
        print(f"{package:12} {count:4} modules {lines[package]:7,} lines")
    leaves = Counter(name.rpartition(".")[2].lstrip("_") for name, path in known.items() if path.name != "__init__.py")
    alone = [name for name, who in importers.items() if len(who) == 1 and known[name].name != "__init__.py"
             and name.rpartition(".")[0] == next(iter(who)).rpartition(".")[0]]  # fmt: skip
    twice = sorted(name for name, count in leaves.items() if count > 1)
    longest = max(sizes, key=sizes.__getitem__)
    figures = {
        "modules": len(known),
        "lines": sum(sizes.values()),
        "one importer": len(alone),
        "chain": max(map(depth, known)),
        "private uses": sum(map(private_uses, trees.values())),
        "longest": sizes[longest],
        "twice": len(twice),
    }
    if "--names" in sys.argv:
        print("one importer:", *sorted(alone), sep="\n  ")
        print("twice:", *twice)
    for figure, value in figures.items():
        print(f"{figure:12} {value:7,}  (limit {LIMITS[figure]:,})")
    over = [figure for figure, value in figures.items() if value > LIMITS[figure]]
    if over and "--check" in sys.argv:
        print(f"above the limit: {', '.join(over)}; see LIMITS in tools/house.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
