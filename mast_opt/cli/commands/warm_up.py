"""``mast-opt warm-up``."""

import threading
import time
from collections.abc import Callable

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.options import Json, TheRun
from mast_opt.planner.solving import warm_up
from mast_opt.problems.registry import kind_named
from mast_opt.problems.registry import kinds as every_kind

SIMULATION = "simulation"
"""Name of the simulation, which is no kind of problem but compiled too."""


def command(*kinds: str, json: Json = False, run: TheRun) -> Answer:
    """Compile what the solvers of these kinds of problems and simulations need, or everything, so that no later command
    has to.

    Compiling takes up to a minute a kind, once for an installation; where everything is compiled already, this takes
    seconds. A solve compiles what it needs itself, before its time limit begins.

        mast-opt warm-up
        mast-opt warm-up data-placement job-placement
        mast-opt warm-up simulation
    """
    names = list(dict.fromkeys(kinds)) or [*(kind.name for kind in every_kind()), SIMULATION]
    for name in names:
        if name != SIMULATION:
            kind_named(name)
    seconds: dict[str, float] = {}
    compiled: set[str] = set()
    run.hear_compiler()
    with Interrupt(run, "what is compiled already") as interrupt, run.phase("compile"):
        for name in names:
            began = time.perf_counter()
            with run.shown(f"compiling for {name}, once"):
                _warm_up(name, compiled.add, interrupt.cancel)
            seconds[name] = time.perf_counter() - began
    run.record["warm_up"] = [{"kind": name, "compiled": name in compiled, "seconds": seconds[name]} for name in names]

    def show(out: Console) -> None:
        for name in names:
            done = "compiled" if name in compiled else "was compiled already; loaded"
            out.print(f"{name} {done} in {seconds[name]:.1f} s", soft_wrap=True)

    return Answer(Exit.OK, show)


def _warm_up(name: str, on_compile: Callable[[str], None], cancel: threading.Event) -> None:
    """Compile the kernels of one kind, or of simulations, for ``mast-opt warm-up``."""
    if name != SIMULATION:
        warm_up(name, on_compile=on_compile, cancel=cancel)
        return
    from mast_opt.live.simulation.warm_up import warm_up_simulation

    warm_up_simulation(on_compile=lambda: on_compile(SIMULATION), cancel=cancel)
