"""``mast-opt dispatch``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer
from mast_opt.cli.kueue import contexts_of
from mast_opt.cli.options import Json, TheRun
from mast_opt.core.errors import UsageError
from mast_opt.core.wording import counted, shown

if TYPE_CHECKING:
    from rich.console import Console

    from mast_opt.live.hosts.kueue.dispatcher import Decision


def command(
    *,
    worker: Annotated[
        list[str],
        Parameter(help="NAME=CONTEXT: a cluster of MultiKueueConfig, and its context. Repeatable.", negative=()),
    ],
    kubeconfig: Annotated[Path | None, Parameter(help="File of all contexts; unless given, as for kubectl.")] = None,
    manager: Annotated[str | None, Parameter(help="Context of the manager; the current one unless given.")] = None,
    replicas: Annotated[Path | None, Parameter(help="CSV dataset,cluster: where data is.")] = None,
    shadow: Annotated[bool, Parameter(help="Look and decide, and change nothing.", negative=())] = False,
    once: Annotated[bool, Parameter(help="Take one turn and print it.", negative=())] = False,
    every: Annotated[
        float, Parameter(help="Seconds between two turns in which nothing changes.", validator=Number(gt=0))
    ] = 5.0,
    round: Annotated[
        float,
        Parameter(help="Seconds after which one cluster more is nominated for a workload.", validator=Number(gt=0)),
    ] = 300.0,
    most: Annotated[
        int, Parameter(help="Clusters that a workload is nominated for at once.", validator=Number(gte=1, lte=20))
    ] = 3,
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
    from mast_opt.live.hosts.kueue.api import LightkubeApi
    from mast_opt.live.hosts.kueue.dispatcher import Dispatcher
    from mast_opt.live.hosts.kueue.manifests import read_replicas
    from mast_opt.live.hosts.kueue.nomination import DispatchParams

    if json and not once:
        raise UsageError("--json prints one object; expected --once with it")
    contexts = contexts_of(worker)
    known = None if replicas is None else read_replicas(replicas, set(contexts))
    file = None if kubeconfig is None else str(kubeconfig)
    dispatcher = Dispatcher(
        LightkubeApi(file, manager, name="the manager"),
        {name: LightkubeApi(file, context, name=name) for name, context in contexts.items()},
        DispatchParams(round, most),
        replicas=known,
        shadow=shadow,
    )
    if once:
        decisions = dispatcher.turn()
        run.record.update(kind="kueue", decisions=[_as_record(one) for one in decisions])
        return Answer(Exit.OK, lambda console: _show(console, decisions))
    seen: dict[str, Decision] = {}
    with Interrupt(run, "what was nominated") as interrupt:
        dispatcher.run(interrupt.cancel, _printer(seen), every)
    return Answer(Exit.OK, lambda console: console.print(f"Stopped; {counted(len(seen), 'workload')} seen."))


def _as_record(one: Decision) -> dict[str, Any]:
    return {
        "workload": one.workload,
        "does": one.does,
        "clusters": list(one.clusters),
        "why": one.words,
        "done": one.done,
        "error": one.error,
    }


def _printer(seen: dict[str, Decision]) -> Callable[[Sequence[Decision]], None]:
    """A function that prints new decisions as lines of JSON."""
    import datetime
    import json

    def show(found: Sequence[Decision]) -> None:
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


def _show(console: Console, decisions: Sequence[Decision]) -> None:
    from rich.table import Table

    table = Table("workload", "does", "clusters", "why")
    for one in decisions:
        table.add_row(shown(one.workload), one.does, ", ".join(map(shown, one.clusters)), shown(one.error or one.words))
    console.print(table)
    done = sum(one.done for one in decisions)
    console.print(f"{counted(len(decisions), 'decision')}, {done} carried out.")
