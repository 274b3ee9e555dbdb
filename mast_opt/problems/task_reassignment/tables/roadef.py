"""Reader and writer of the ROADEF/EURO challenge 2012 text format (task reassignment): whitespace-separated integers.

A model file holds, in this order:

    resources      K, then for each: transient (0 or 1), load weight
    machines       M, then for each: neighbourhood, location, K capacities, K safety capacities, M move costs
    services       S, then for each: spread_min, number of services it depends on, those services
    processes      P, then for each: service, K needs, move cost
    balance goals  B, then for each: first resource, second resource, target, weight
    weights        of process moves, service moves and machine moves

An assignment file holds the machine of every process. Everything is numbered from 0. The format is that of
the challenge's problem statement (ROADEF/EURO challenge 2012, subject by Google).
"""

import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mast_opt.core.errors import Fault, InputError, InstanceError, UsageError
from mast_opt.core.limits import read_regular, unzipped
from mast_opt.problems.kind.header import MOST_WEIGHT, Objective
from mast_opt.problems.task_reassignment import entities
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import TERMS, Bools, Ints, TaskReassignment, labels
from mast_opt.problems.task_reassignment.tables.problem_tables import faults

LARGEST = 2**62


def read(model: Path, assignment: Path) -> TaskReassignment:
    """The instance in two files of the challenge, either of them plain or gzipped.

    Raises:
        InputError: a file cannot be opened.
        InstanceError: a file is not in the format; names the file, the token's line and what was expected.
    """
    content = _Integers(model)
    return _Reader(content, _Integers(assignment)).problem()


class _Integers:
    """The numbers of a file, taken one after another."""

    def __init__(self, path: Path) -> None:
        self.file = path.name
        self._tokens = _text(path).split()
        try:
            self._values = np.array(self._tokens, dtype=np.int64)
        except (ValueError, OverflowError):
            self._values = np.array([self._parsed(at) for at in range(len(self._tokens))], np.int64)
        wrong = np.flatnonzero((self._values < 0) | (self._values > LARGEST))
        if len(wrong):
            raise self.fault(int(wrong[0]), "a whole number from 0 to 2^62")
        self._at = 0

    def _parsed(self, at: int) -> int:
        """Number at a position of a ROADEF file. Raises InstanceError."""
        token = self._tokens[at]
        if not (token.isascii() and token.isdigit()) or int(token) > LARGEST:
            raise self.fault(at, "a whole number from 0 to 2^62")
        return int(token)

    def fault(self, at: int, expected: str) -> InstanceError:
        """An error about the token of a ROADEF file at that position."""
        return InstanceError([Fault(f"{self.file}, number {at + 1}", expected, value=self._tokens[at])])

    def take(self, count: int, what: str) -> Ints:
        """Take the next numbers of a ROADEF file."""
        left = len(self._values) - self._at
        if count > left:
            raise InstanceError(
                [Fault(self.file, f"{count} more numbers ({what}), but only {left} are left: is the file truncated?")]
            )
        taken = self._values[self._at : self._at + count]
        self._at += count
        return taken

    def count(self, what: str, least: int = 1) -> int:
        """Take a number of a ROADEF file that counts something."""
        number = int(self.take(1, f"the number of {what}")[0])
        if number < least:
            raise self.fault(self._at - 1, f"the number of {what}, at least {least}")
        return number

    def check(self, values: Ints, start: int, limit: int, what: str) -> None:
        """Raise an error at the first of the values that is not below the limit; they began at ``start``."""
        wrong = np.flatnonzero(values >= limit)
        if len(wrong):
            raise self.fault(start + int(wrong[0]), f"{what} below {limit}")

    @property
    def at(self) -> int:
        """Position of the next number in the file."""
        return self._at

    def end(self) -> None:
        """Refuse further numbers in the file."""
        if self._at < len(self._values):
            raise self.fault(self._at, "the end of the file")


def _text(path: Path) -> str:
    """Text of a file of the ROADEF challenge, unzipped. Raises InputError."""
    try:
        raw = read_regular(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); expected a file of the ROADEF challenge"
        ) from error
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = unzipped(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise InstanceError([Fault(path.name, f"a complete gzip file ({error})")]) from error
    try:
        return raw.decode("ascii")
    except UnicodeDecodeError as error:
        raise InstanceError(
            [Fault(path.name, "text made of whole numbers", value=repr(raw[error.start : error.start + 8]))]
        ) from error


class _Reader:
    """One section after another, in the order of the file."""

    def __init__(self, model: _Integers, assignment: _Integers) -> None:
        self._model = model
        self._assignment = assignment

    def problem(self) -> TaskReassignment:
        """Problem that the files state."""
        model = self._model
        transient, load_weight = self._resources()
        resources = len(transient)
        neighbourhood, location, capacity, safety, cost = self._machines(resources)
        spread_min, dependent, dependency = self._services()
        service, need, move_cost = self._processes(resources, len(spread_min))
        balances = self._balances(resources)
        start = model.at
        weights = dict(zip(("process_move", "service_move", "machine_move"), model.take(3, "weights").tolist()))
        for at, weight in enumerate(weights.values()):
            if weight > MOST_WEIGHT:
                raise model.fault(start + at, f"a weight of at most {MOST_WEIGHT:g}")
        model.end()
        initial = self._initial(len(service), len(capacity))
        neighbourhoods, near = np.unique(neighbourhood, return_inverse=True)
        locations, where = np.unique(location, return_inverse=True)
        group, group_cost = _groups(cost)
        name = model.file.removesuffix(".gz").removesuffix(".txt").removeprefix("model_")
        problem = TaskReassignment(
            name=name,
            provenance="ROADEF/EURO challenge 2012, machine reassignment (Google)",
            resources=entities.Resources(labels=labels("r", resources), transient=transient, load_weight=load_weight),
            machines=entities.Machines(
                labels=labels("m", len(capacity)),
                location=where,
                neighbourhood=near,
                move_group=group,
                capacity=capacity,
                safety=safety,
                balanced=np.ones(len(capacity), np.bool_),
            ),
            locations=tuple(f"l{place}" for place in locations.tolist()),
            neighbourhoods=tuple(f"n{place}" for place in neighbourhoods.tolist()),
            move_groups=entities.MoveGroups(labels=labels("g", len(group_cost)), move_cost=group_cost),
            services=entities.Services(labels=labels("s", len(spread_min)), spread_min=spread_min),
            processes=entities.Processes(
                labels=labels("p", len(service)), service=service, need=need, move_cost=move_cost, initial=initial
            ),
            dependencies=entities.Dependencies(service=dependent, needs=dependency),
            balances=entities.Balances(
                first=balances[:, 0].copy(),
                second=balances[:, 1].copy(),
                target=balances[:, 2].copy(),
                weight=balances[:, 3].copy(),
            ),
            objective=Objective({**TERMS, **{term: float(weight) for term, weight in weights.items()}}),
        )
        found = faults(problem)
        if found:
            raise InstanceError(found)
        return problem

    def _resources(self) -> tuple[Bools, Ints]:
        """Resources of the model: whether transient, and their load weights."""
        count = self._model.count("resources")
        start = self._model.at
        table = self._model.take(2 * count, "resources").reshape(count, 2)
        for row in np.flatnonzero(table[:, 0] > 1).tolist():
            raise self._model.fault(start + 2 * row, "0 or 1, whether the resource is transient")
        return table[:, 0] == 1, table[:, 1].copy()

    def _machines(self, resources: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Machines of the model: neighbourhoods, locations, capacities, safety and move costs."""
        count = self._model.count("machines")
        start, width = self._model.at, 2 + 2 * resources + count
        table = self._model.take(count * width, "machines").reshape(count, width)
        cost = table[:, 2 + 2 * resources :]
        for m in np.flatnonzero(np.diagonal(cost)).tolist():
            at = start + m * width + 2 + 2 * resources + m
            raise self._model.fault(at, f"0 as the cost of moving from machine {m} to itself")
        capacity, safety = table[:, 2 : 2 + resources], table[:, 2 + resources : 2 + 2 * resources]
        return table[:, 0], table[:, 1], capacity.copy(), safety.copy(), cost

    def _services(self) -> tuple[Ints, Ints, Ints]:
        """Services of a ROADEF file: spreads and dependencies."""
        model = self._model
        count = model.count("services")
        spread_min, dependencies = [], []
        for _ in range(count):
            head = model.take(2, "services")
            spread_min.append(int(head[0]))
            start = model.at
            needed = model.take(int(head[1]), "dependencies of a service")
            model.check(needed, start, count, "a service")
            dependencies.append(np.unique(needed))
        dependent = np.repeat(np.arange(count), [len(needed) for needed in dependencies])
        return np.array(spread_min, np.int64), dependent, np.concatenate(dependencies)

    def _processes(self, resources: int, services: int) -> tuple[Ints, Ints, Ints]:
        """Processes of the model: services, needs and move costs."""
        model = self._model
        count = model.count("processes")
        start, width = model.at, resources + 2
        table = model.take(count * width, "processes").reshape(count, width)
        for row in np.flatnonzero(table[:, 0] >= services).tolist():
            raise model.fault(start + row * width, f"a service below {services}")
        return table[:, 0].copy(), table[:, 1:-1].copy(), table[:, -1].copy()

    def _balances(self, resources: int) -> Ints:
        """Balance goals of the model."""
        model = self._model
        count = model.count("balance goals", least=0)
        start = model.at
        table = model.take(4 * count, "balance goals").reshape(count, 4)
        for row, column in np.argwhere(table[:, :2] >= resources).tolist():
            raise model.fault(start + 4 * row + column, f"a resource below {resources}")
        return table

    def _initial(self, processes: int, machines: int) -> Ints:
        """Initial machine of each process."""
        initial = self._assignment.take(processes, "one machine for each process").copy()
        self._assignment.check(initial, 0, machines, "a machine")
        self._assignment.end()
        return initial


def _groups(cost: Ints) -> tuple[Ints, Ints]:
    """Machines with equal rows and columns of move costs, and the costs between such groups."""
    both_ways = np.concatenate([cost, cost.T], axis=1)
    _, first, group = np.unique(both_ways, axis=0, return_index=True, return_inverse=True)
    return group, cost[np.ix_(first, first)].copy()


def write_model(problem: TaskReassignment, path: Path) -> None:
    """Write a model file. Raises UsageError for what the format cannot say."""
    path.write_text(model_text(problem), encoding="ascii")


def write_assignment(problem: TaskReassignment, plan: Plan, path: Path) -> None:
    """Write the new assignment as an assignment file: machine numbers in process order."""
    path.write_text(assignment_text(plan.machine), encoding="ascii")


def assignment_text(machine: Ints) -> str:
    """The content of an assignment file: the machine of every process, in their order."""
    return " ".join(map(str, machine.tolist())) + "\n"


def model_text(problem: TaskReassignment) -> str:
    """The content of a model file.

    Raises:
        UsageError: the objective weights are not whole numbers, the objective is lexicographic, or balance goals do not
            count on some machine.
    """
    p = problem
    weight = {name: _whole(name, value) for name, value in p.objective.weights.items()}
    if p.objective.lexicographic:
        raise UsageError("the challenge's format has no lexicographic objectives; write tables instead")
    if len(p.balances.target) and not p.machines.balanced.all():
        raise UsageError("the challenge's format has no machines without balance goals; write tables instead")
    order = np.argsort(p.dependencies.service, kind="stable")
    count = np.bincount(p.dependencies.service, minlength=len(p.services))
    needed = np.split(p.dependencies.needs[order], np.cumsum(count)[:-1])
    cost = p.move_groups.move_cost[np.ix_(p.machines.move_group, p.machines.move_group)].copy()
    np.fill_diagonal(cost, 0)
    machines = np.concatenate(
        [p.machines.neighbourhood[:, None], p.machines.location[:, None], p.machines.capacity, p.machines.safety, cost],
        axis=1,
    )
    processes = np.concatenate([p.processes.service[:, None], p.processes.need, p.processes.move_cost[:, None]], axis=1)
    balances = [p.balances.first, p.balances.second, p.balances.target, p.balances.weight * weight["balance"]]
    lines = [
        *_section(np.stack([p.resources.transient.astype(np.int64), p.resources.load_weight * weight["load"]], axis=1)),
        *_section(machines),
        *_section([[spread, len(row), *row.tolist()] for spread, row in zip(p.services.spread_min.tolist(), needed)]),
        *_section(processes),
        *_section(np.stack(balances, axis=1)),
        " ".join(str(weight[name]) for name in ("process_move", "service_move", "machine_move")),
    ]
    return "\n".join(lines) + "\n"


def _section(rows: Ints | list[list[int]]) -> Iterable[str]:
    """Lines of a section of a ROADEF file: the number of rows, then the rows."""
    yield str(len(rows))
    for row in rows:
        yield " ".join(map(str, row))


def _whole(name: str, weight: float) -> int:
    """Weight as a whole number, as the ROADEF format takes it. Raises UsageError."""
    if weight != int(weight):
        raise UsageError(f"the weight of {name} is {weight:g}; the challenge's format takes whole numbers only")
    return int(weight)
