"""Translation of a certificate: the limits and rows that it needs besides those of the program, and its prices of rows,
from which ``priced_blocks`` proves its bound.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray, exact_column_sums
from mast_opt.planner.proof.exact_program import ExactProgram
from mast_opt.planner.proof.job_limits import job_limits
from mast_opt.planner.proof.placement_rows import placement_rows, positions
from mast_opt.planner.proof.priced_blocks import Prices
from mast_opt.planner.proof.steps import Step
from mast_opt.planner.solving.export_files import formulated
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.verification import certificate as capacity_bound
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.mip import Mip
from mast_opt.problems.resource_allocation.formulation.formulation import LEVELS, LINEAR
from mast_opt.problems.resource_allocation.formulation.program import AllocationProgram
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.verification import price_bound
from mast_opt.problems.server_assignment.problem import ServerAssignment
from mast_opt.problems.server_assignment.verification import certificate_bound
from mast_opt.problems.server_assignment.verification.certificate import read_certificate
from mast_opt.problems.task_reassignment.problem import TaskReassignment

Arrays = Mapping[str, NDArray[Any]]

LESS = 1 - 1e-12
"""Factor of prices that may add up to a limit, which they must not pass once they are rounded."""
JOB_ROWS = ("admitted", "moved", "interrupted", "gang", "in_rack", "one_rack", "in_server", "one_server")
"""Rows of job placement that concern one job."""


def certificate_limits(
    problem: Problem[Any], arrays: Arrays | None
) -> Callable[[ExactProgram], tuple[ExactProgram, list[Step]]] | None:
    """The limits and rows on which a certificate rests and that the program lacks; None where there are none."""
    if isinstance(problem, DataPlacement) and arrays is not None:
        return partial(placement_rows, problem, arrays)
    return job_limits if isinstance(problem, JobPlacement) else None


def certificate_prices(problem: Problem[Any], arrays: Arrays | None, mip: Mip) -> Prices | None:
    """The prices on which the bound of a heuristic rests; None for a kind that has other certificates, or for a plan
    that has none.

    Raises:
        PlanError: the arrays are no certificate, or do not fit the problem.
    """
    if isinstance(problem, TaskReassignment):
        return _of_tasks(problem, mip)
    if arrays is None:
        return None
    if isinstance(problem, ServerAssignment):
        return _of_servers(problem, arrays, mip)
    if isinstance(problem, JobPlacement):
        return _of_jobs(problem, arrays, mip)
    return _of_shares(problem, arrays, mip) if isinstance(problem, ResourceAllocation) else None


def program_of(problem: Problem[Any], plan: Any, arrays: Arrays | None) -> tuple[Mip, FloatArray]:  # noqa: ANN401 - of any kind
    """The program whose bound is proven, and the plan in its columns. For a policy that is no linear program it is that
    of Σ weight · rate, with the weights of the certificate. Raises UsageError for such a policy without a certificate.
    """
    if arrays is not None and is_implied(problem):
        program, members = AllocationProgram(problem), problem.members
        gain = np.zeros(len(problem.configurations))
        np.add.at(gain, members.configuration, arrays["rate_weight"][members.job] * members.rate)
        program.linear(gain)
        return program.build(maximise=True), plan.share.astype(np.float64)
    formulation = formulated(problem)
    return formulation.mip, formulation.encode(plan)


def is_implied(problem: Problem[Any]) -> TypeGuard[ResourceAllocation]:
    """Whether the bound of a policy follows from one on Σ weight · rate by a formula that is not linear."""
    return isinstance(problem, ResourceAllocation) and problem.objective.policy not in (*LINEAR, *LEVELS)


class _Rows:
    """Prices of the rows of a program under construction."""

    def __init__(self, mip: Mip) -> None:
        self.mip = mip
        self.price = np.zeros(mip.shape[0])
        self.kept = np.zeros(mip.shape[0], np.bool_)

    def keep(self, *names: str) -> None:
        """Leave blocks of rows in the blocks of columns."""
        for block in self.mip.rows:
            if block.name in names:
                self.kept[block.start : block.start + block.size] = True

    def put(self, name: str, prices: NDArray[Any]) -> None:
        """Price the rows of a block by their indices; a row that is priced is not kept."""
        for cell, row in positions(self.mip.rows, name).items():
            if prices[cell]:
                self.price[row], self.kept[row] = prices[cell], False

    def done(self) -> Prices:
        """The prices and the rows that are kept, as an argument of ``priced``."""
        return Prices(self.price, self.kept)


def _of_servers(p: ServerAssignment, arrays: Arrays, mip: Mip) -> Prices:
    """Stocks, and what the pool stands in for, are priced; a reservation with its own rows is a block."""
    certificate_bound.certified_bound(p, arrays)
    prices, rows = read_certificate(p, arrays).prices, _Rows(mip)
    rows.keep(*(block.name for block in mip.rows if block.name != "once"))
    first = p.stocks.first
    once = np.zeros((len(p.types), len(p.switchboards)))
    once[p.servers.type[first], p.server_switchboard[first]] = -prices.once
    rows.put("once", once)
    if p.pool is not None:
        for (reservation, _), row in positions(mip.rows, "loss").items():
            rows.kept[row] &= reservation != p.pool
        loss = np.zeros((len(p.reservations), len(p.switchboards)))
        loss[p.pool] = -LESS * prices.loss
        rows.put("loss", loss)
    return rows.done()


def _of_jobs(p: JobPlacement, arrays: Arrays, mip: Mip) -> Prices:
    """Capacity is priced, and a job is a block. The price of a tier in which no job may use a server is that of the
    next one: its row is implied by that of the next."""
    capacity_bound.certified_bound(p, arrays)
    rows = _Rows(mip)
    rows.keep(*JOB_ROWS)
    prices = np.array(arrays["capacity"], np.float64)
    stated = np.zeros(prices.shape, np.bool_)
    for cell in positions(mip.rows, "capacity"):
        stated[cell] = True
    for tier in range(prices.shape[1] - 1):
        prices[:, tier + 1] += np.where(stated[:, tier], 0.0, prices[:, tier])
    rows.put("capacity", -prices)
    return rows.done()


def _of_tasks(p: TaskReassignment, mip: Mip) -> Prices:
    """The prices by which all machines become one: of load, of balance, and of what machines without goals hold."""
    rows = _Rows(mip)
    rows.keep("assigned")
    weights = p.objective.weights if not p.objective.order else {p.objective.order[0]: 1.0}
    machines, balanced = len(p.machines), p.machines.balanced
    need, away, room, safety = (
        np.array(exact_column_sums(part), object)
        for part in (
            p.processes.need, p.machines.capacity[~balanced], p.machines.capacity[balanced], p.machines.safety,
        )
    )  # fmt: skip
    load = np.where(need > safety, p.resources.load_weight * weights.get("load", 0.0), 0.0)
    rows.put("load", -np.tile(load.astype(np.float64), (machines, 1)))
    balance = np.zeros((len(p.balances.target), machines))
    capacity = np.zeros((machines, len(p.resources)))
    goals = zip(p.balances.first, p.balances.second, p.balances.target, p.balances.weight, strict=True)
    for goal, (first, second, target, weight) in enumerate(goals):
        over = max(0, need[second] - away[second])
        if int(target) * (room[first] - need[first]) > room[second] - over:
            price = float(weight) * weights.get("balance", 0.0)
            balance[goal, balanced] = -price
            capacity[~balanced, second] -= price if over else 0.0
    rows.put("balance", balance)
    rows.put("capacity", capacity)
    return rows.done()


def _of_shares(p: ResourceAllocation, arrays: Arrays, mip: Mip) -> Prices:
    """All rows are priced, so that a unit of the level costs what it is worth."""
    price_bound.certified_bound(p, arrays)
    rows = _Rows(mip)
    for name, array, sign in (
        ("one", "job_price", -1.0),
        ("capacity", "resource_price", -1.0),
        ("floor", "floor_price", 1.0),
        ("group_floor", "group_floor_price", 1.0),
        ("reach", "rate_weight", 1.0),
    ):
        rows.put(name, sign * arrays[array])
    for level in positions(mip.columns, "level").values():
        entries = mip.index == level
        row = np.repeat(np.arange(mip.shape[0]), np.diff(mip.row_start))[entries]
        rows.price /= -(rows.price[row] @ mip.value[entries]) or 1.0
    return rows.done()
