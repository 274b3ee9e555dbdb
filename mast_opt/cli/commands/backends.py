"""``mast-opt backends``."""

from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.options import Json, TheRun
from mast_opt.core.errors import UsageError
from mast_opt.core.wording import did_you_mean, shown
from mast_opt.planner.solving import solver_names
from mast_opt.planner.solving.auto_strategy import AUTO, AutoParams
from mast_opt.planner.solving.solver_list import solvers
from mast_opt.problems import backends
from mast_opt.problems.registry import kinds
from mast_opt.problems.search.params import Params, value_text


def command(
    solver: Annotated[
        str | None,
        Parameter(help="A solver of mast-opt's own, or a kind with methods of its own: list the parameters instead."),
    ] = None,
    /,
    *,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """List the solvers: which can be used here, in which version, and how to install the others.

    Loads every solver library there is, so it takes a moment. With the name of a solver of mast-opt's own, its
    parameters: the default, what is allowed, what it decides, and why the default is what it is. The same with the name
    of a kind that backends solve by methods of its own, such as resource-allocation, and what a backend
    cannot solve of it.

        mast-opt backends
        mast-opt backends ras
        mast-opt backends auto
        mast-opt backends --json
    """
    own_solvers = {kind.name: kind.solvers for kind in kinds()}
    classes = {name: cls for found in own_solvers.values() for name, cls in found.params.items()}
    classes[AUTO] = AutoParams
    classes |= {kind: found.method_params for kind, found in own_solvers.items() if found.method_params is not None}
    run.record["parameters"] = {name: _described(cls) for name, cls in classes.items() if solver in (None, name)}
    if solver is not None:
        chosen = _class_of(solver, classes)
        limits = _grid_limits(own_solvers[solver].grid_limits) if solver in own_solvers else {}
        run.record["limits"] = limits
        return Answer(Exit.OK, lambda out: _show_parameters(out, chosen, limits))
    every = solvers()
    described = [found for found in every if found.exact]
    own = {kind: [found for found in every if kind in found.kinds and not found.exact] for kind in own_solvers}
    run.record["solvers"] = [
        {"name": found.name, "package": found.package, "version": found.version, "reason": found.reason}
        for found in described
    ]
    run.record["heuristics"] = {kind: [one.name for one in found] for kind, found in own.items()}

    def show(out: Console) -> None:
        from rich.text import Text

        from mast_opt.planner.report.terminal.sections import show_table

        rows: list[tuple[str | Text, ...]] = []
        for found in described:
            version = Text(shown(found.version), style="green") if found.version else Text("missing", style="yellow")
            rows.append((shown(found.name), version, shown(found.reason or "")))
        heads = ("solver", "version", "if it is missing")
        show_table(out, "", heads, rows, heads)
        for kind, heuristics in own.items():
            if heuristics:
                names = ", ".join(f"{one.name} ({one.package})" if one.package else one.name for one in heuristics)
                out.print(f"\nFor {kind} also these heuristics: {shown(names)}", soft_wrap=True)
        out.print(f"\n{AUTO} runs {AutoParams().exact} and one of these side by side.", soft_wrap=True)

    return Answer(Exit.OK, show)


def _class_of(solver: str, classes: Mapping[str, type[Params]]) -> type[Params]:
    """The parameters of a solver. Raises UsageError where it has none, or there is no such solver."""
    if solver in classes:
        return classes[solver]
    names = dict.fromkeys(name for kind in kinds() for name in solver_names(kind))
    if solver in names:
        raise UsageError(f"{solver} has no parameters; these solvers have some: {', '.join(classes)}")
    hint = did_you_mean(solver, names) or f"; expected one of: {', '.join(names)}"
    raise UsageError(f"there is no solver called {solver!r}{hint}")


def _described(cls: type[Params]) -> dict[str, Any]:
    """Name → what is known of a parameter."""
    return {
        name: {
            "default": one.default,
            "expected": one.expected,
            "effect": one.effect,
            "reason": one.reason,
        }
        for name, one in cls.parameters().items()
    }


def _grid_limits(words: str) -> dict[str, str]:
    """Backend → what it solves of a kind, for the backends that do not solve all of it."""
    return {name: words for name in backends.names() if words and getattr(backends.get(name), "grid", False)}


def _show_parameters(out: Console, cls: type[Params], limits: Mapping[str, str]) -> None:
    """Print the parameters of a solver, each with its default, range and effect."""
    from rich.padding import Padding
    from rich.text import Text

    for name, words in limits.items():
        out.print(Text(f"{name} solves {words}.\n"), soft_wrap=True)
    for name, one in cls.parameters().items():
        head = Text.assemble((name, "bold"), f" = {value_text(one.default)}", (f"  {one.expected}", "dim"))
        out.print(head, soft_wrap=True)
        out.print(Padding(Text(f"{one.effect} {one.reason}"), (0, 0, 1, 4)))
