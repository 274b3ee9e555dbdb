"""Servers path: every half hour, which cluster should have which server so that a lost switchboard does no harm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.events import MOVE, PlanStep
from mast_opt.live.loop.slow_path import CarriedOut, Planned, Question
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.planner.io import checksum
from mast_opt.problems.job_placement.units import WHOLE
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.server_assignment import entities
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import TERMS, ServerAssignment

ValueT = TypeVar("ValueT")

NAME = "servers"
SEPARATOR = " \N{RIGHTWARDS ARROW} "
"""Separator of cluster and GPU type in the label of a reservation."""


@dataclass(frozen=True)
class ServersPathParams:
    """Parameters of the servers path.

    Args:
        every_s: how often it asks for a plan.
    """

    every_s: int = 1800

    def __post_init__(self) -> None:
        if self.every_s < 1:
            raise UsageError(f"every_s of the servers path is {self.every_s}; expected at least 1")


class ServersPath:
    """Asks for the server assignment of now: a reservation for each cluster and GPU type, of what 95% of the last seven
    days used at most, with a buffer of its own for the loss of any switchboard. Servers stay in their region.

    Idle servers move; those in use are left to a later plan.

    Args:
        switchboards: server → switchboard, of every server.
    """

    name: str = NAME

    def __init__(self, switchboards: Mapping[str, str], params: ServersPathParams | None = None) -> None:
        self.params = params or ServersPathParams()
        self.every_ms: int = self.params.every_s * 1000
        self._switchboards = switchboards

    def ask(self, snapshot: Snapshot) -> Question | None:
        """Instance for the assignment of servers, made from the state."""
        problem = server_instance(snapshot, self._switchboards)
        return None if problem is None else Question(problem, checksum(problem))

    def carry_out(self, snapshot: Snapshot, planned: Planned) -> CarriedOut:
        """Steps of the server assignment that still fit the state, and those that are dropped."""
        problem, plan = planned.problem, planned.plan
        assert isinstance(problem, ServerAssignment)
        assert isinstance(plan, Plan)
        busy = _busy(snapshot)
        steps, dropped = [], []
        for s in np.flatnonzero(plan.reservation != problem.servers.owner).tolist():
            name, q = problem.servers.labels[s], int(plan.reservation[s])
            if q == len(problem.reservations):
                continue  # nobody claims it: it stays where it is
            cluster = problem.reservations.labels[q].split(SEPARATOR)[0]
            if name in busy:
                dropped.append(f"move {name} {cluster}: a job runs on it")
            elif snapshot.inventory.server_of[name].cluster != cluster:
                steps.append(PlanStep(MOVE, name, cluster))
        return CarriedOut(tuple(steps), tuple(dropped))


def server_instance(snapshot: Snapshot, switchboards: Mapping[str, str]) -> ServerAssignment | None:
    """The instance of the servers path now; None if there is no choice: no region has two clusters.

    A server that moves counts as one of the cluster that it moves to. The RRU of a server are its GPUs.
    """
    inventory = snapshot.inventory
    servers = [server for server in inventory.in_service() if server.gpus]
    regions = list(dict.fromkeys(server.region for server in servers))
    clusters = {server.cluster: server.region for server in inventory.server_of.values()}
    if len(clusters) == len(set(clusters.values())) or not servers:
        return None
    kinds = list(dict.fromkeys((server.region, server.gpu_type, server.gpus) for server in servers))
    reservations = list(
        dict.fromkeys((cluster, kind[1]) for cluster, region in clusters.items() for kind in kinds if kind[0] == region)
    )
    boards = list(dict.fromkeys((switchboards[server.name], server.region) for server in servers))
    racks = list(dict.fromkeys((switchboards[server.name], server.rack) for server in servers))
    board_at = {board: at for at, (board, _) in enumerate(boards)}
    region_at, kind_at = _positions(regions), _positions(kinds)
    rack_at, owner_at = _positions(racks), _positions(reservations)
    busy = _busy(snapshot)
    value = np.array(
        [
            [gpus * WHOLE if clusters[cluster] == region and gpu_type == kind else 0 for region, kind, gpus in kinds]
            for cluster, gpu_type in reservations
        ],
        np.int64,
    )
    asked = [snapshot.use.p95_mgpu(cluster, kind, snapshot.now_ms) for cluster, kind in reservations]
    none = np.zeros(0, np.int64)
    owner = [owner_at[inventory.moving.get(server.name, server.cluster), server.gpu_type] for server in servers]
    return ServerAssignment(
        name="servers of now",
        datacenters=tuple(regions),
        switchboards=entities.Switchboards(
            labels=tuple(board for board, _ in boards),
            datacenter=np.array([region_at[region] for _, region in boards], np.int64),
        ),
        racks=entities.Racks(
            labels=tuple(rack for _, rack in racks),
            switchboard=np.array([board_at[board] for board, _ in racks], np.int64),
        ),
        types=tuple(f"{region} {kind} {gpus}" for region, kind, gpus in kinds),
        servers=entities.Servers(
            labels=tuple(server.name for server in servers),
            type=np.array([kind_at[one.region, one.gpu_type, one.gpus] for one in servers], np.int64),
            rack=np.array([rack_at[switchboards[one.name], one.rack] for one in servers], np.int64),
            owner=np.array(owner, np.int64),
            in_use=np.array([server.name in busy or server.name in inventory.moving for server in servers], np.bool_),
        ),
        reservations=entities.Reservations(
            labels=tuple(SEPARATOR.join(reservation) for reservation in reservations),
            asked_mrru=np.array(asked, np.int64),
            buffer=np.full(len(reservations), entities.EMBEDDED, np.int64),
            spread_limited=np.zeros(len(reservations), np.bool_),
            spread_limit_milli=np.zeros(len(reservations), np.int64),
            value_mrru=value,
        ),
        affinities=entities.Affinities(reservation=none, datacenter=none, share_milli=none, tolerance_milli=none),
        objective=Objective(weights=dict(TERMS)),
    )


def _positions(values: Sequence[ValueT]) -> dict[ValueT, int]:
    """Value → position, of values without repetition."""
    return {value: at for at, value in enumerate(values)}


def _busy(snapshot: Snapshot) -> frozenset[str]:
    """Servers on which a job holds something."""
    return frozenset(share.server for record in snapshot.jobs.values() for share in record.shares)
