"""``mast-opt generate``."""

import inspect
from pathlib import Path
from shlex import join
from typing import Annotated, Literal

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.help_text import entry
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.options import Force, Json, TheRun, at_least
from mast_opt.core.errors import UsageError
from mast_opt.core.wording import did_you_mean
from mast_opt.planner.io import write
from mast_opt.problems.registry import generate, kind_named, kinds

_OPTIONS = ("family", "seed", "format", "force", "json")


def command(
    kind: Annotated[str, Parameter(help="Kind of problem.")],
    out: Annotated[Path, Parameter(help="Where to: a new folder, or a file that ends in .xlsx or .json.")],
    /,
    *,
    family: Annotated[str | None, Parameter(help="See below; the first one unless given.")] = None,
    seed: Annotated[int, at_least(0, "Of every random draw.")] = 0,
    format: Annotated[Literal["csv", "parquet"] | None, Parameter(help="Of the tables in a folder.")] = None,
    force: Force = False,
    json: Json = False,
    run: TheRun,
    **sizes: Annotated[str, Parameter(help="Sizes, such as --datasets 50; see below.")],
) -> Answer:
    """Make a synthetic instance; the same arguments give the same instance.

    The families, and the sizes that each takes with their defaults, are listed below.

        mast-opt generate data-placement my-instance --datasets 50 --workloads 80
        mast-opt generate data-placement fleet.xlsx --family links --seed 7
    """
    named = {name.replace("-", "_"): text for name, text in sizes.items()}
    problem = generate(kind, family, seed=seed, **{name: _whole(kind, name, text) for name, text in named.items()})
    write(problem, out, format, force=force)
    run.record.update(kind=kind, name=problem.name, out=str(out))

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.sections import print_words

        print_words(console, f"{problem.name} is in {out}. Solve it:\n  {join(['mast-opt', 'solve', str(out)])}")

    return Answer(Exit.OK, show)


def _families() -> str:
    """Help of ``mast-opt generate``: families of each kind with their sizes."""
    lines = []
    for about in kinds():
        lines.append(f"{about.name}, families and sizes:")
        if about.generate.sizes_help:
            lines.append(entry(f"({about.generate.sizes_help})"))
        for name, family in about.generate.families.items():
            sizes = " ".join(f"--{size.replace('_', '-')} {default}" for size, default in family.sizes.items())
            lines += [entry(f"{name}: {family.help}"), entry(sizes, indent=6)]
        lines.append("")
    return "\n".join(lines)


def _whole(kind: str, name: str, text: str) -> int:
    """A size as a number. Raises UsageError for what is none, and for what no family of the kind knows as a size."""
    known = {size for family in kind_named(kind).generate.families.values() for size in family.sizes}
    if name not in known:
        options = (*_OPTIONS, *(size.replace("_", "-") for size in sorted(known)))
        near = did_you_mean(name.replace("_", "-"), options) or f"; expected some of: {', '.join(sorted(known))}"
        raise UsageError(f"{kind} has no size called {name!r}{near}")
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--{name.replace('_', '-')} {text}: expected a whole number") from None


command.__doc__ = f"{inspect.cleandoc(command.__doc__ or '')}\n\n{_families()}"
