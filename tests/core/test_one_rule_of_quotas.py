"""Whether work is over a quota is worked out in one place: nobody else decides on a right, or compares with a quota."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "mast_opt"
LEDGER = "core/ledger.py"
AMOUNTS = {
    "core/quotas.py": "keeps, orders and checks them",
    "core/quota_tree.py": "adds them up",
    "live/loop/snapshot.py": "the credit of a tenant is what it left unused",
    "live/service/views.py": "shows them",
    "problems/job_placement/live_fleet/snapshot_format.py": "writes them",
    "problems/data_placement/generate/standard.py": "another thing of that name: the GPU type of a workload",
}
"""Files that read the amount of a quota, and why; none compares it with what jobs hold."""
ASKED = {
    "right": {"problems/job_placement/live_fleet/inventory.py": 2, "problems/job_placement/quota_standing.py": 3},
    "standing": {"problems/job_placement/live_fleet/inventory.py": 1, "problems/job_placement/quota_standing.py": 1},
}
"""Question to the ledger → file → calls."""
KUEUE = "live/hosts/kueue/"
"""Kueue's own quotas, which its scheduler counts."""


def trees() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        name, text = file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8")
        if not name.startswith(KUEUE) and ("ight" in text or "nominal" in text or "standing" in text):
            yield name, ast.parse(text)


def attributes(tree: ast.Module, name: str) -> list[ast.Attribute]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == name]


def test_one_function_decides_and_few_ask() -> None:
    deciding, reading, asked = set(), set(), {name: Counter[str]() for name in ASKED}
    for file, tree in trees():
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            returned = [one.value for one in ast.walk(function) if isinstance(one, ast.Return) and one.value]
            if any(
                node.attr == "OVER" for value in returned for node in ast.walk(value) if isinstance(node, ast.Attribute)
            ):
                deciding.add((file, function.name))
        if file != LEDGER and attributes(tree, "nominal"):
            reading.add(file)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            named = call.func
            if isinstance(named, ast.Attribute) and named.attr in ASKED and "ledger" in ast.unparse(named.value):
                asked[named.attr][file] += 1
    assert deciding == {(LEDGER, "right")}
    assert reading == set(AMOUNTS)
    assert asked == {name: Counter(files) for name, files in ASKED.items()}
