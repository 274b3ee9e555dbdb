"""Slow paths of a simulated run: their parameters, and what the trace has to say for them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from mast_opt.core.errors import Fault, InstanceError, UsageError
from mast_opt.core.wording import did_you_mean
from mast_opt.live.loop.demand import DAY_MS, DemandClass
from mast_opt.live.loop.jobs import JobClasses
from mast_opt.live.loop.slow_path import SlowPath
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.simulation.host import MOVE_MS
from mast_opt.live.simulation.network import SimulatedNetwork
from mast_opt.live.simulation.params import values_of
from mast_opt.live.simulation.solves import SimulatedSolver, SolveSettings
from mast_opt.live.simulation.traces.trace import JobTrace
from mast_opt.live.slow_paths import data_path, servers_path
from mast_opt.live.slow_paths.data_path import DataPath, DataPathParams
from mast_opt.live.slow_paths.forecasts import Forecast, WithErrors, by_arrivals, weighted_mean
from mast_opt.live.slow_paths.network_limits import NetworkLimits
from mast_opt.live.slow_paths.servers_path import ServersPath, ServersPathParams


class Foresight:
    """The demand of each class in the next days, as if no job had to wait. A ``slow_paths.forecasts.Forecast``.

    Args:
        trace: that is run.
        days: that are averaged.
    """

    def __init__(self, trace: JobTrace, days: int) -> None:
        self._span_ms = days * DAY_MS
        jobs, classes = trace.submissions, JobClasses()
        spans: dict[DemandClass, list[tuple[int, int, int]]] = {}
        for j, name in enumerate(jobs.labels):
            one, begin_ms = classes.of(name, jobs.spec(j)), int(jobs.submitted_ms[j])
            spans.setdefault(one.demand, []).append((begin_ms, begin_ms + int(jobs.duration_ms[j]), one.asked_mgpu))
        self._spans = {of: np.array(rows, np.int64) for of, rows in spans.items()}

    def __call__(self, snapshot: Snapshot, of: DemandClass) -> int:
        """Milli-GPUs that jobs of the class will really use, on average over the span."""
        begin, end, mgpu = self._spans[of].T
        till = snapshot.now_ms + self._span_ms
        return int((np.clip(np.minimum(end, till) - np.maximum(begin, snapshot.now_ms), 0, None) * mgpu).sum()) // (
            self._span_ms
        )


PATHS = (data_path.NAME, servers_path.NAME)
PREFIX = "slow."
READS = {data_path.NAME: frozenset({"namespace", "workload"}), servers_path.NAME: frozenset[str]()}
"""Slow path → optional columns of submissions that only its plans look at."""
BOUND = ("relaxation.iterations", 1)
"""Parameter of ``tetris`` for its bound, on which no plan depends: five iterations in each of 60 rounds improve the
bound of 14,000 workloads in 30 regions by 0.04%, and double the time of the solve."""
FORECASTS = (MEAN, ARRIVALS, PERFECT) = ("mean", "arrivals", "perfect")


@dataclass(frozen=True)
class DataRunParams(DataPathParams):
    """Parameters ``slow.data.…`` of a run.

    Args:
        takes_s: virtual time from question to plan.
        iterations: of ``tetris``.
        seed: of ``tetris``, and of the errors of forecasts.
        forecast: ``mean``: weighted mean of demand so far, of what waits too; ``arrivals``: of what came, as if nothing
            waited; ``perfect``: what the trace asks for in ``copy_days``.
        forecast_error: σ of the logarithm of a forecast's error, see ``WithErrors``.
        again: iterations that go on from the plan before, where little has changed; 0 to begin from scratch.
        exact_shares: whether a MIP solver ends each solve with the best shares of work over regions. They change the
            planned ratios and the order of copies, but no replica, and take most of the time of a small solve.
    """

    takes_s: int = 18_000
    iterations: int = 20
    seed: int = 0
    forecast: str = MEAN
    forecast_error: float = 0.0
    again: int = 0
    exact_shares: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.forecast not in FORECASTS:
            raise UsageError(f"forecast of the data path is {self.forecast!r}; expected one of {', '.join(FORECASTS)}")

    def forecast_of(self, trace: JobTrace) -> Forecast:
        """The forecast that these parameters ask for."""
        known: dict[str, Forecast] = {MEAN: weighted_mean, ARRIVALS: by_arrivals}
        plain = known.get(self.forecast) or Foresight(trace, self.copy_days)
        return WithErrors(plain, self.forecast_error, self.seed) if self.forecast_error else plain


@dataclass(frozen=True)
class ServersRunParams(ServersPathParams):
    """Parameters ``slow.servers.…`` of a run.

    Args:
        takes_s: virtual time from question to plan.
        iterations: of ``ras``.
        seed: of ``ras``.
        move_s: virtual time in which a server becomes part of another cluster.
        again: iterations that go on from the plan before, where little has changed; 0 to begin from scratch.
    """

    takes_s: int = 600
    iterations: int = 20
    seed: int = 0
    move_s: int = MOVE_MS // 1000
    again: int = 0


@dataclass(frozen=True, eq=False)
class SlowRun:
    """Slow paths of a run, with their simulated solver and network."""

    paths: Sequence[SlowPath] = ()
    solver: SimulatedSolver | None = None
    network: SimulatedNetwork | None = None
    move_ms: int = MOVE_MS
    stated: Mapping[str, Any] = field(default_factory=dict)
    """All parameters, defaults too, by their names on the command line."""


def slow_run(trace: JobTrace, names: Collection[str], given: Mapping[str, str]) -> SlowRun:
    """The slow paths of these names.

    Args:
        names: some of ``PATHS``.
        given: parameters, as text, such as ``slow.data.every_s``.

    Raises:
        UsageError: no such path or parameter, or a value that it cannot have.
        InstanceError: the trace does not say what a path needs.
    """
    for name in names:
        if name not in PATHS:
            known = ", ".join(PATHS)
            raise UsageError(f"there is no slow path {name!r}; expected some of: {known}{did_you_mean(name, PATHS)}")
    of_path: dict[str, dict[str, str]] = {name: {} for name in PATHS if name in names}
    for text, value in given.items():
        path, _, name = text.removeprefix(PREFIX).partition(".")
        if path not in of_path:
            on = ", ".join(of_path) or "none"
            raise UsageError(f"parameter {text} is of a slow path that is not on; on are: {on} (see --slow)")
        of_path[path][name] = value
    _check_trace(trace, of_path)
    around = trace.surroundings
    paths: list[SlowPath] = []
    settings: dict[str, SolveSettings] = {}
    stated: dict[str, Any] = {}
    move_ms = MOVE_MS
    if data_path.NAME in of_path:
        data = values_of(DataRunParams, of_path[data_path.NAME], f"{PREFIX}{data_path.NAME}.")
        limits = NetworkLimits(around.ingress_mb_per_day, around.links)
        origins = {name: regions[0] for name, regions in trace.replicas.items() if len(regions) == 1}
        paths.append(DataPath(limits, data, origins, data.forecast_of(trace)))
        params = dict([BOUND] if data.exact_shares else [BOUND, ("completion.read_cells", 0)])
        settings[data_path.NAME] = SolveSettings(
            "tetris", data.iterations, data.takes_s * 1000, data.seed, params, data.again
        )
        stated |= _stated(data_path.NAME, "tetris", data)
    if servers_path.NAME in of_path:
        servers = values_of(ServersRunParams, of_path[servers_path.NAME], f"{PREFIX}{servers_path.NAME}.")
        paths.append(ServersPath(around.switchboards, servers))
        settings[servers_path.NAME] = SolveSettings(
            "ras", servers.iterations, servers.takes_s * 1000, servers.seed, again=servers.again
        )
        move_ms = servers.move_s * 1000
        stated |= _stated(servers_path.NAME, "ras", servers)
    network = SimulatedNetwork(around.ingress_mb_per_day, around.links)
    return SlowRun(paths, SimulatedSolver(settings), network, move_ms, stated)


def _stated(path: str, solver: str, params: DataRunParams | ServersRunParams) -> dict[str, Any]:
    """Name → value of a slow path's parameters, as a run states them."""
    return {f"{PREFIX}{path}.{name}": value for name, value in {"solver": solver, **asdict(params)}.items()}


def _check_trace(trace: JobTrace, paths: Collection[str]) -> None:
    """Raises InstanceError where a trace lacks what slow paths need: sizes of datasets, switchboards."""
    around = trace.surroundings
    faults = []
    if data_path.NAME in paths and not around.datasets:
        faults.append(Fault("datasets", "the sizes of datasets, which the data path needs (--slow data)"))
    if servers_path.NAME in paths:
        without = [server.name for server in trace.servers if server.name not in around.switchboards]
        faults += [
            Fault("switchboards", "a switchboard for each server, which the servers path needs", value=name)
            for name in without[:20]
        ]
        regions: dict[str, set[str]] = {}
        for server in trace.servers:
            regions.setdefault(around.switchboards.get(server.name, ""), set()).add(server.region)
        faults += [
            Fault("switchboards", f"servers of one region at switchboard {board}", value=", ".join(sorted(found)))
            for board, found in sorted(regions.items())
            if board and len(found) > 1
        ]
    if faults:
        raise InstanceError(faults, "the simulation cannot run this trace")
