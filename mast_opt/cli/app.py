"""The commands there are. A further one is a file in ``mast_opt.cli.commands`` and a line here, or an entry point of
another package in the group ``mast_opt.commands``.

A command is a function called ``command`` that takes its options and the ``Run``, and returns an ``Answer``. Its
module is imported only when it is used, so that ``mast-opt --help`` stays quick.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

from cyclopts import App, CycloptsError, Group

from mast_opt.cli.help_text import reflowed
from mast_opt.cli.invocation import Answer, Run
from mast_opt.cli.streams import to_stdout
from mast_opt.core.errors import UsageError
from mast_opt.core.plugins import Extensions

_HELP_LINES = {
    "validate": "Check an instance: every fault and every conflict that can be seen without solving.",
    "solve": "Find a plan, prove how good it is, verify it and show it.",
    "verify": "Check a plan against its instance, without any solver's help.",
    "prove": "Write a proof of a plan's bound that the checkers of others accept, or check one.",
    "diff": "Show what changed between two plans, or from today to a plan.",
    "steps": "Order a plan's changes so that every limit holds at each step.",
    "explain": "Why there is no plan and what would help, or why a plan does what it does.",
    "marginal": "What one more TB, core, GPU or TB a day is worth, place by place.",
    "buy": "What to buy: the cheapest purchases with which no region is overloaded.",
    "whatif": "What happens if something changes: scenarios side by side, and one plan for all of them.",
    "periods": "Plan several periods: demand grows, hardware arrives, each plan begins where the last one ends.",
    "pareto": "Trade-off between two terms of the objective.",
    "report": "Draw a plan: one page that opens in any browser, without a network.",
    "simulate": "Run a trace of submitted jobs under a policy, in virtual time.",
    "serve": "Serve a live fleet over HTTP, with a log that survives a crash.",
    "drain": "Let servers of a running service take no job more, and run empty.",
    "dispatch": "Choose clusters for the workloads of Kueue.",
    "advise": "Say where a task of SkyPilot, or a job of Slurm, should run, without launching it.",
    "template": "Write an Excel workbook to fill in and solve.",
    "generate": "Make a synthetic instance.",
    "import": "Make an instance, or a trace of jobs, from public data.",
    "export": "Write an instance for other tools: .lp, .mps, .dat, .xlsx, .json or a folder of tables.",
    "bench": "Run a suite of benchmarks, or make the page of its results.",
    "backends": "List the solvers, their versions, and how to install those that are missing.",
    "plug-ins": "List what other packages add: kinds, solvers, policies, importers and commands.",
    "warm-up": "Compile everything now, so that no later command has to.",
}
_MODULES = {"import": "import_"}
"""Modules of commands whose names are keywords of Python."""
COMMANDS: Extensions[Callable[..., Any]] = Extensions(
    "mast_opt.commands",
    "command",
    {name: f"mast_opt.cli.commands.{_MODULES.get(name, name.replace('-', '_'))}:command" for name in _HELP_LINES},
)
"""name → command."""

_HELP = """Where data lives, where jobs run, which servers form which cluster: exact and heuristic placement for ML \
training over many regions.

A first run, from nothing to a plan:

    mast-opt generate data-placement my-instance --datasets 50 --workloads 80
    mast-opt validate my-instance
    mast-opt solve my-instance --time-limit 60 --out my-plan
    mast-opt verify my-instance my-plan
"""

_EPILOGUE = (
    "Exit codes: 0 done, 1 unexpected, 2 bad usage or input, 3 proven infeasible, 4 no plan within the limit, "
    "5 verify found violations, 130 interrupted. Results go to stdout, everything else to stderr; with --json, "
    "stdout is one JSON object."
)


def build_app(tokens: Sequence[str] = ()) -> App:
    """The parser of the command line; only the commands among the tokens are imported."""
    app = App(
        name="mast-opt",
        help=_HELP,
        help_epilogue=_EPILOGUE,
        help_format="plaintext",
        version=lambda: f"mast-opt {version('mast-opt')}",
        group_commands=Group("Commands", sort_key=0),
    )
    for position, name in enumerate(COMMANDS):
        line = _HELP_LINES.get(name) or f"From package {COMMANDS.package(name)}."
        if name in tokens and (name in _HELP_LINES or name == tokens[0]):  # its own help is its docstring
            command = COMMANDS[name]
            app.command(command, name=name, help=reflowed(inspect.getdoc(command) or line), sort_key=position)
        else:
            place = f"{COMMANDS.own[name]}" if name in COMMANDS.own else COMMANDS.others[name].value
            app.command(place, name=name, help=line, sort_key=position)
    return app


def command_line(run: Run) -> Callable[[], Answer] | None:
    """The call that the tokens ask for; None if that was help or the version, which are shown at once.

    Raises:
        UsageError: the tokens make no sense.
    """
    app = build_app(run.tokens)
    try:
        function, bound, given = app.parse_args(run.tokens, print_error=False, exit_on_error=False, console=run.out)
    except CycloptsError as error:
        chain = " ".join(["mast-opt", *(error.command_chain or ())])
        raise UsageError(f"{error}\nTry: {chain} --help") from error
    call = partial(function, *bound.args, **bound.kwargs)
    if "run" not in given:
        to_stdout(call)
        return None

    def answer() -> Answer:
        with COMMANDS.blaming(run.tokens[0]):
            found: Answer = call(run=run)
        return found

    return answer
