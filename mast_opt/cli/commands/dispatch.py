"""``mast-opt dispatch``."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.kueue import KueueOptions, params_of
from mast_opt.cli.options import Json, TheRun, above
from mast_opt.core.errors import UsageError
from mast_opt.core.wording import counted, shown

if TYPE_CHECKING:
    from mast_opt.live.hosts.kueue.dispatcher import Decision


def command(
    *,
    kueue: KueueOptions = KueueOptions(),
    once: Annotated[bool, Parameter(help="Take one turn and print it.", negative=())] = False,
    every: Annotated[float, above(0, "Seconds between two turns in which nothing changes.")] = 5.0,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Choose clusters for the workloads of Kueue: a dispatcher for MultiKueue, and a controller of admission checks.

    It nominates the cluster with the best bid, and after a round one more. It answers admission checks whose controller
    is mast-opt.io/admission-check. It acts as what the kubeconfig lets it; docs/how-to/kueue.md has the role that it
    needs. Decisions are lines on stdout, until Ctrl-C or a termination request; with --once --json, one object.

        mast-opt dispatch --worker east=east-admin --worker west=west-admin --shadow --once
        mast-opt dispatch --worker east=east-admin --worker west=west-admin --replicas replicas.csv
    """
    from mast_opt.live.hosts.kueue.dispatcher import Dispatcher

    if json and not once:
        raise UsageError("--json prints one object; expected --once with it")
    if set(kueue.hook or ()) - {"data"}:
        raise UsageError("--hook boost and --hook gates go with mast-opt serve --host kueue, which chooses victims")
    manager, workers, replicas = kueue.connected()
    params = params_of(kueue, None)
    dispatcher = Dispatcher(manager, workers, params, replicas=replicas, shadow=kueue.shadow)
    if once:
        decisions = dispatcher.turn()
        run.record.update(kind="kueue", decisions=[_as_record(one) for one in decisions])
        return Answer(Exit.OK, lambda console: _show(console, decisions))
    seen: dict[str, Decision] = {}
    with Interrupt(run, "what was nominated") as interrupt:
        dispatcher.run(interrupt.cancel, _printer(seen), every)
    return Answer(Exit.OK, lambda console: console.print(f"Stopped; {counted(len(seen), 'workload')} seen."))


def _as_record(one: "Decision") -> dict[str, Any]:
    """JSON of a decision of ``mast-opt dispatch``."""
    return {
        "workload": one.workload,
        "does": one.does,
        "clusters": list(one.clusters),
        "why": one.words,
        "done": one.done,
        "error": one.error,
    }


def _printer(seen: "dict[str, Decision]") -> "Callable[[Sequence[Decision]], None]":
    """A function that prints new decisions as lines of JSON."""
    import datetime
    import json

    def show(found: "Sequence[Decision]") -> None:
        for one in found:
            before = seen.get(one.workload)
            if before is not None and (before.does, before.clusters, before.words, before.error) == (
                one.does,
                one.clusters,
                one.words,
                one.error,
            ):
                continue
            seen[one.workload] = one
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
            sys.stdout.write(json.dumps({"at": now, **_as_record(one)}) + "\n")
        sys.stdout.flush()

    return show


def _show(console: Console, decisions: "Sequence[Decision]") -> None:
    """Print the decisions of ``mast-opt dispatch`` as a table."""
    from rich.table import Table

    table = Table("workload", "does", "clusters", "why")
    for one in decisions:
        table.add_row(shown(one.workload), one.does, ", ".join(map(shown, one.clusters)), shown(one.error or one.words))
    console.print(table)
    done = sum(one.done for one in decisions)
    console.print(f"{counted(len(decisions), 'decision')}, {done} carried out.")
