"""``mast-opt report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mast_opt.cli.claims import number_in, text_in
from mast_opt.cli.exits import Exit
from mast_opt.cli.options import Force, Instance, Json, TheRun
from mast_opt.cli.record import verdict_keys
from mast_opt.cli.run import Answer
from mast_opt.io import read, read_events, read_plan_of
from mast_opt.solving import verify

if TYPE_CHECKING:
    from rich.console import Console


def command(
    path: Instance,
    plan: Annotated[Path, Parameter(help="The plan: what 'mast-opt solve --out' wrote, or tables of your own.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="The page to write, .html.")] = Path("report.html"),
    png: Annotated[Path | None, Parameter(help="Write the charts as a picture too, .png.")] = None,
    force: Force = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Draw a plan: one page that opens in any browser, without a network.

    Key figures, terms, heat map before and after, demand against supply, fill, flows, how the search went, and the
    table behind each picture; light and dark, wide and on a phone. Every figure is the verifier's.

        mast-opt report my-instance my-plan --out my-report.html
        mast-opt report my-instance my-plan --out my-report.html --png my-report.png
    """
    from mast_opt.report.html import write_report

    with run.phase("read", f"reading {path}"):
        problem = read(path)
        run.record["kind"] = problem.kind
        reading = read_plan_of(problem, plan)
        events = read_events(plan)
        for figure in ("objective", "bound"):
            number_in(reading.fields, figure)
    with run.phase("verify", "drawing"):
        write_report(problem, reading.plan, out, picture=png, fields=reading.fields, events=events, force=force)
    run.record.update(verdict_keys(verify(problem, reading.plan)))
    run.record.update(solver=text_in(reading.fields, "solver"), out=str(out), png=None if png is None else str(png))

    def show(console: Console) -> None:
        console.print(f"The report is in {out}" + (f", the picture in {png}." if png else "."), soft_wrap=True)

    return Answer(Exit.OK, show)
