"""``mast-opt plug-ins``."""

from dataclasses import asdict
from itertools import chain

from mast_opt.cli.app import COMMANDS
from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.options import Json, TheRun
from mast_opt.live.simulation.run import ENGINE_POLICIES
from mast_opt.live.simulation.traces.importers import TRACE_IMPORTERS
from mast_opt.planner.importers import IMPORTERS
from mast_opt.problems import plugin_heuristics
from mast_opt.problems.backends import BACKENDS
from mast_opt.problems.registry import KINDS


def command(*, json: Json = False, run: TheRun) -> Answer:
    """List what other packages add: kinds of problem, solvers, policies, importers and commands.

    Loads all of it, and says why something cannot be used.

        mast-opt plug-ins
        mast-opt plug-ins --json
    """
    groups = (KINDS, BACKENDS, ENGINE_POLICIES, IMPORTERS, TRACE_IMPORTERS, COMMANDS)
    heuristics = plugin_heuristics.plug_ins(dict(KINDS.usable()))
    found = list(chain(heuristics, *(group.plug_ins() for group in groups)))
    run.record["plug_ins"] = [asdict(one) for one in found]

    def show(out: Console) -> None:
        from mast_opt.planner.report.terminal.sections import print_words

        if not found:
            print_words(out, "No other package adds anything here.")
            return
        for one in found:
            reason = f"not used: {one.reason}" if one.reason else ""
            out.print(one.name, one.package, f"({one.group})", reason, highlight=False, soft_wrap=True)

    return Answer(Exit.OK, show)
