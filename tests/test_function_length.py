"""No function of the package has a body of more than 60 lines, but for those argued for here."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "mast_opt"
MOST_LINES = 60
"""Of a body: signature and docstring do not count, since options and arguments are a line each."""
COLUMNS = "names every column once, in the order of the tables; parts would hide what is missing"
ARGUED = {
    ("problems/data_placement/tables/problem_tables.py", "problem_from_tables"): COLUMNS,
    ("problems/job_placement/tables/problem_tables.py", "problem_from_tables"): COLUMNS,
    ("problems/job_placement/tables/problem_tables.py", "problem_to_tables"): COLUMNS,
    ("problems/data_placement/tables/mathprog.py", "_sections"): COLUMNS,
    (
        "problems/data_placement/tetris/instance_arrays.py",
        "arrays_of",
    ): "fills one tuple of arrays, a line or two an array",
    ("cli/commands/whatif.py", "command"): "options of one command and what they exclude",
    ("cli/commands/solve.py", "command"): "options of one command and what they exclude",
    (
        "problems/resource_allocation/analysis/elastic_program.py",
        "relief",
    ): "one program, row by row, as it is written on paper",
}
"""(module, function) → why it is longer."""


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return 0 if not body else (function.end_lineno or 0) - body[0].lineno + 1


def test_bodies_are_short_or_argued_for() -> None:
    long = {
        (path.relative_to(PACKAGE).as_posix(), node.name)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and lines_of(node) > MOST_LINES
    }
    assert long == set(ARGUED)
