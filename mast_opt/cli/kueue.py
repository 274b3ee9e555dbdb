"""Kueue in commands: advice for a folder of YAML (``simulate --kueue``), contexts of workers, the host of a service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.cli.options import above, named_values, repeated
from mast_opt.core.errors import UsageError
from mast_opt.core.wording import counted, shown

if TYPE_CHECKING:
    from mast_opt.live.hosts.kueue.api import LightkubeApi
    from mast_opt.live.hosts.kueue.nomination import DispatchParams


HookName = Literal["boost", "gates", "data"]


def contexts_of(worker: Sequence[str]) -> dict[str, str]:
    """Cluster → context, from NAME=CONTEXT. Raises UsageError."""
    contexts = named_values("--worker", worker, "east=admin@east", "NAME=CONTEXT")
    if not all(contexts.values()):
        raise UsageError("--worker: expected NAME=CONTEXT, with a context for each name")
    return contexts


@Parameter(name="*", group=Group("Kueue"))
@dataclass(frozen=True)
class KueueOptions:
    """Options of commands that act on the workloads of Kueue."""

    kubeconfig: Annotated[Path | None, Parameter(help="Kubeconfig file; default as for kubectl.")] = None
    manager: Annotated[str | None, Parameter(help="Context of the manager; the current one unless given.")] = None
    worker: Annotated[list[str] | None, repeated("NAME=CONTEXT: a cluster of MultiKueueConfig and its context.")] = None
    replicas: Annotated[Path | None, Parameter(help="CSV with columns dataset,cluster: where data is.")] = None
    round: Annotated[float, above(0, "Seconds after which one more cluster is nominated for a workload.")] = 300.0
    most: Annotated[
        int, Parameter(help="Clusters that a workload is nominated for at once.", validator=Number(gte=1, lte=20))
    ] = 3
    hook: Annotated[list[HookName] | None, repeated("Hook of Kueue 0.17 and later to use.")] = None
    shadow: Annotated[bool, Parameter(help="Compute decisions but change nothing.", negative=())] = False

    def connected(self) -> "tuple[LightkubeApi, dict[str, LightkubeApi], Mapping[str, frozenset[str]] | None]":
        """The manager, the workers by name, and where data is.

        Raises:
            ApiError, BackendUnavailable, InputError, UsageError: no connection, or invalid options.
        """
        from mast_opt.live.hosts.kueue.api import LightkubeApi
        from mast_opt.live.hosts.kueue.manifests import ReplicaFile

        contexts = contexts_of(self.worker or ())
        if not contexts:
            raise UsageError("expected --worker NAME=CONTEXT, for each cluster of MultiKueueConfig")
        known = None if self.replicas is None else ReplicaFile(self.replicas, set(contexts))
        file = None if self.kubeconfig is None else str(self.kubeconfig)
        workers = {name: LightkubeApi(file, context, name=name) for name, context in contexts.items()}
        return LightkubeApi(file, self.manager, name="the manager"), workers, known


def params_of(kueue: KueueOptions, priorities: str | None) -> "DispatchParams":
    """Parameters of the dispatcher; ``priorities`` are whole numbers with commas between them. Raises UsageError."""
    from mast_opt.live.hosts.kueue.nomination import DispatchParams, Hook

    hooks = frozenset(Hook(one) for one in kueue.hook or ())
    if Hook.DATA in hooks and kueue.replicas is None:
        raise UsageError("--hook data: expected --replicas, which says where data has arrived")
    if priorities is None:
        return DispatchParams(kueue.round, kueue.most, hooks=hooks)
    try:
        least = tuple(int(one) for one in priorities.split(","))
    except ValueError:
        raise UsageError(f"--priorities {priorities!r}; expected whole numbers with commas, as in 1000,100,0") from None
    return DispatchParams(kueue.round, kueue.most, least, hooks)


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
