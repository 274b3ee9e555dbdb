"""Kernels that have no way in from Python are called by kernels only: a call from Python would end the process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import mast_opt.problems.job_placement

PACKAGE = Path(mast_opt.problems.job_placement.__file__).parent


def functions() -> Iterator[tuple[str, ast.FunctionDef, bool]]:
    """(module and name, function, whether it is compiled), for every function of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
                yield f"{path.stem}.{node.name}", node, bool(marks & {"compiled", "entry", "kernel"})


def test_no_python_function_calls_a_kernel() -> None:
    every = list(functions())
    kernels = {
        node.name
        for _, node, _ in every
        if any(isinstance(mark, ast.Name) and mark.id == "kernel" for mark in node.decorator_list)
    }
    assert len(kernels) > 20
    calls = {
        (where, call.func.id)
        for where, node, is_compiled in every
        if not is_compiled
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in kernels
    }
    assert calls == set()
