"""Charts of plans, searches, frontiers and runs for notebooks and scripts: Vega-Lite specifications and drawings."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from mast_opt.core.arguments import a, a_flag, a_path, checked
from mast_opt.core.errors import UsageError
from mast_opt.live.loop.history import history
from mast_opt.live.reports.charts import charts_of
from mast_opt.live.simulation.simulate import Simulation
from mast_opt.planner.analysis.pareto import Frontier
from mast_opt.planner.io.atomic import check_free, new_file
from mast_opt.planner.report.html.content import convergence, table_of
from mast_opt.planner.report.html.palette import LIGHT, in_theme
from mast_opt.planner.report.html.png import sheet
from mast_opt.planner.report.html.render import WIDE, draw, fullest, specifications
from mast_opt.planner.solving import Solution
from mast_opt.problems.kind.presentation import Chart, Lines
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan, kind_of

SUFFIXES = (".svg", ".png", ".json")


@dataclass(frozen=True)
class Figure:
    """A chart that a notebook shows by itself, and that can be saved.

    ``specs`` are complete Vega-Lite specifications, for Altair (``altair.Chart.from_dict``) or a web page: one for most
    charts, and one for each side of a heat map that compares before and after.
    """

    title: str
    note: str
    specs: tuple[Mapping[str, Any], ...]
    table: Mapping[str, tuple[Any, ...]]
    """The figures of the chart as columns, name → a value a row, for ``polars.DataFrame(figure.table)``."""
    svg: str
    """The chart as a drawing, with title and legend, in light colours."""

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the chart to a file: ``.svg``, ``.png``, or ``.json`` for the Vega-Lite specifications.

        Raises:
            UsageError: another suffix.
            InputError: the file is there already (without ``force``), or cannot be written.
        """
        a_path("path", path)
        a_flag("force", force)
        target = Path(fspath(path))
        suffix = target.suffix.lower()
        if suffix not in SUFFIXES:
            raise UsageError(f"{target}: expected a name that ends in {', '.join(SUFFIXES)}")
        check_free(target, force=force)
        with new_file(target.absolute()) as partial:
            partial.write_bytes(self._content(suffix))

    def _content(self, suffix: str) -> bytes:
        """Content of the figure in the format of a file's suffix."""
        if suffix == ".json":
            return (json.dumps(list(self.specs), indent=1) + "\n").encode()
        if suffix == ".svg":
            return self.svg.encode()
        import vl_convert

        return bytes(vl_convert.svg_to_png(self.svg, scale=2))

    def __repr__(self) -> str:
        return f"Figure({self.title!r})"

    def _repr_svg_(self) -> str:
        """The drawing of a chart, for Jupyter and others."""
        return self.svg


@checked()
def plot_plan(problem: Problem[PlanT], plan: PlanT) -> tuple[Figure, ...]:
    """The charts of a plan: demand over supply before and after, storage, copies, and what else its problem has.

    Raises:
        PlanError: the plan does not fit the instance.
    """
    kind = kind_of(problem)
    check_plan(kind, problem, plan)
    return tuple(_figure(chart) for chart in kind.presentation.charts(problem, plan))


@checked(solution=a(Solution))
def plot_search(solution: Solution[PlanT]) -> Figure:
    """The chart of a solve: incumbent and bound over time.

    Raises:
        UsageError: the solver reported no events.
    """
    chart = convergence(solution.events, solution.sense)
    if chart is None:
        raise UsageError(f"{solution.solver} reported neither an incumbent nor a bound, so there is nothing to draw")
    return _figure(chart)


@checked(frontier=a(Frontier))
def plot_frontier(frontier: Frontier[PlanT]) -> Figure:
    """The chart of a frontier: the least of the second term for each value of the first.

    Raises:
        UsageError: the frontier has no point.
    """
    first, second = frontier.terms
    if not frontier.points:
        raise UsageError(f"the frontier of {first} and {second} has no point, so there is nothing to draw")
    points = tuple((point.terms[first], point.terms[second]) for point in frontier.points)
    note = f"Each step is a plan; between two of them, the left one is the best found. Solver: {frontier.solver}."
    return _figure(Lines(f"{second} against {first}", first, second, ((second, points),), note))


@checked(run=a(Simulation))
def plot_run(run: Simulation) -> tuple[Figure, ...]:
    """The charts of a simulated run over time: jobs that wait, GPUs, regions, data and moves."""
    return tuple(_figure(chart) for chart in charts_of(history(run.events())))


def _figure(chart: Chart) -> Figure:
    """A chart as a figure for notebooks: its table, specifications and drawing."""
    picture = draw(chart)
    section = table_of(chart)
    columns = {head.title: tuple(row[at] for row in section.rows) for at, head in enumerate(section.heads)}
    drawn = in_theme(sheet([picture]), LIGHT)
    specs = (json.loads(in_theme(json.dumps(spec), LIGHT)) for spec in specifications(fullest(chart), WIDE))
    return Figure(chart.title, chart.note, tuple(specs), columns, drawn)
