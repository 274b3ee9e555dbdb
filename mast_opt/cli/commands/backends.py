"""``mast-opt backends``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer
from mast_opt.cli.options import Json, TheRun
from mast_opt.core.wording import shown
from mast_opt.registry import kind_names
from mast_opt.solving.solver_list import solvers

if TYPE_CHECKING:
    from rich.console import Console


def command(*, json: Json = False, run: TheRun) -> Answer:
    """List the solvers: which can be used here, in which version, and how to install the others.

    Loads every solver library there is, so it takes a moment.

        mast-opt backends
        mast-opt backends --json
    """
    every = solvers()
    described = [found for found in every if found.exact]
    own = {kind: [found.name for found in every if kind in found.kinds and not found.exact] for kind in kind_names()}
    run.record["solvers"] = [
        {"name": found.name, "package": found.package, "version": found.version, "reason": found.reason}
        for found in described
    ]
    run.record["heuristics"] = own

    def show(out: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title_justify="left", header_style="bold")
        for head in ("solver", "version", "if it is missing"):
            table.add_column(head, overflow="fold")
        for found in described:
            version = Text(shown(found.version), style="green") if found.version else Text("missing", style="yellow")
            table.add_row(Text(shown(found.name)), version, Text(shown(found.reason or "")))
        out.print(table)
        for kind, names in own.items():
            if names:
                out.print(f"\nFor {kind} also mast-opt's own: {', '.join(names)}", soft_wrap=True)

    return Answer(Exit.OK, show)
