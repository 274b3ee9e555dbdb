"""Kueue in commands: advice for a folder of YAML (``simulate --kueue``), contexts of workers, the host of a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Run
from mast_opt.cli.options import named_values
from mast_opt.core.errors import UsageError
from mast_opt.core.wording import counted, shown

if TYPE_CHECKING:
    from rich.console import Console

    from mast_opt.live.hosts.kueue.host import KueueHost
    from mast_opt.live.hosts.kueue.nomination import DispatchParams


def contexts_of(worker: Sequence[str]) -> dict[str, str]:
    """Cluster → context, from NAME=CONTEXT. Raises UsageError."""
    contexts = named_values("--worker", worker, "east=admin@east", "NAME=CONTEXT")
    if not all(contexts.values()):
        raise UsageError("--worker: expected NAME=CONTEXT, with a context for each name")
    return contexts


def params_of(round_s: float, most: int, priorities: str | None) -> DispatchParams:
    """Parameters of the dispatcher; ``priorities`` are whole numbers with commas between them. Raises UsageError."""
    from mast_opt.live.hosts.kueue.nomination import DispatchParams

    if priorities is None:
        return DispatchParams(round_s, most)
    try:
        least = tuple(int(one) for one in priorities.split(","))
    except ValueError:
        raise UsageError(f"--priorities {priorities!r}; expected whole numbers with commas, as in 1000,100,0") from None
    return DispatchParams(round_s, most, least)


def kueue_host(
    kubeconfig: Path | None,
    manager: str | None,
    contexts: Mapping[str, str],
    replicas: Path | None,
    params: DispatchParams,
    *,
    shadow: bool,
    say: Callable[[str], object],
) -> KueueHost:
    """The host of a service.

    Args:
        kubeconfig: None: as for kubectl.
        manager: its context; None for the current one.
        contexts: cluster → context.
        say: takes a line when the manager cannot be reached, and when it can be again.
        params: of the dispatcher.

    Raises:
        ApiError, BackendUnavailable, InputError: it cannot be.
    """
    from mast_opt.live.hosts.kueue.api import LightkubeApi
    from mast_opt.live.hosts.kueue.host import KueueHost
    from mast_opt.live.hosts.kueue.manifests import read_replicas

    file = None if kubeconfig is None else str(kubeconfig)
    return KueueHost(
        LightkubeApi(file, manager, name="the manager"),
        {name: LightkubeApi(file, context, name=name) for name, context in contexts.items()},
        params,
        replicas=None if replicas is None else read_replicas(replicas, set(contexts)),
        shadow=shadow,
        on_problem=lambda words: say(f"Kueue: {words}." if words else "Kueue: the manager can be reached again."),
    )


def advise_folder(run: Run, folder: Path) -> Answer:
    """Advice for every workload that waits, as a table; in JSON, ``workloads``."""
    from mast_opt.live.hosts.kueue.manifests import read_manifests
    from mast_opt.live.hosts.kueue.nomination import advise
    from mast_opt.planner.importers.notices import with_warnings

    with run.phase("read", f"reading {folder}"):
        picture, warned = with_warnings(lambda: read_manifests(folder))
    run.warn(warned, strict=False)
    with run.phase("solve"):
        found = advise(picture.clusters, picture.waiting, replicas=picture.replicas)
    run.record.update(
        kind="kueue",
        name=folder.name,
        workloads=[
            {
                "workload": one.workload.key,
                "priority": one.workload.priority,
                "clusters": list(one.clusters),
                "stops": [name.partition(": ")[2] for name in one.victims],
                "reasons": dict(one.reasons),
            }
            for one in found
        ],
    )

    def show(console: Console) -> None:
        from rich.table import Table

        table = Table("workload", "priority", "cluster", "why")
        for one in found:
            first = one.clusters[0] if one.clusters else "waits"
            table.add_row(shown(one.workload.key), str(one.workload.priority), shown(first), shown(one.words))
        console.print(table)
        starting = sum(bool(one.clusters) for one in found)
        console.print(f"{counted(starting, 'workload')} of {len(found)} can start; {len(found) - starting} wait.")

    return Answer(Exit.OK, show)
