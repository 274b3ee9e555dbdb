"""The rows on which a data-placement certificate rests, each with the steps that derive it.

The certificate prices rows of the program, their roundings by sizes of gangs, cuts along trees of reads, and the peaks
that whole gangs force (``problems/data_placement/verification`` derives them in words). A linear program with these
rows proves at least the certificate's bound.
"""

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.planner.proof.cuts import Base, mir
from mast_opt.planner.proof.exact_program import ExactProgram
from mast_opt.planner.proof.steps import Source, Step, Vector, completed, joined, split
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.verification.certificate import Certificate
from mast_opt.problems.data_placement.verification.peak_bound import bin_packing_peak_bound
from mast_opt.problems.mip import Block

ONE = Fraction(1)


def placement_rows(
    problem: DataPlacement, arrays: Mapping[str, NDArray[Any]], program: ExactProgram
) -> tuple[ExactProgram, list[Step]]:
    """The program with the peaks that gangs force, and the rows that the certificate prices.

    Raises:
        PlanError: the arrays are no certificate, or do not fit the problem.
    """
    certificate = Certificate.from_arrays(arrays)
    certificate.bound(problem)
    rows = _Rows(problem, program)
    program = rows.program = program.bounded(rows.peaks())
    return program, [*rows.roundings(certificate), *rows.trees(certificate)]


class _Edge(NamedTuple):
    """A read of a tree: what its ends are apart by, as columns, and the row that says so."""

    apart: dict[int, Fraction]
    """The end nearer to the root less the other one."""
    parted: dict[int, Fraction]
    """Columns that add up to at least that, and to at least 0."""
    row: Source | None
    down: bool
    below: Fraction
    """Need of the tree below the read."""


class _Rows:
    """Positions of the rows and columns of a data-placement program, and what follows from them."""

    def __init__(self, problem: DataPlacement, program: ExactProgram) -> None:
        self.p, self.program = problem, program
        mip = program.mip
        self.at = {
            name: positions(mip.rows, name) for name in ("served", "local", "storage", "cpu", "tally", "gpu", "worst")
        }
        self.place, self.peak = positions(mip.columns, "place"), positions(mip.columns, "peak")
        self.runs: dict[tuple[int, int], list[int]] = defaultdict(list)
        """(workload, region) → columns of indivisible work."""
        for (workload, region, _), column in positions(mip.columns, "run").items():
            self.runs[workload, region].append(column)

    def _demand(self, region: int, kind: int, tier: int) -> dict[Source, Fraction]:
        """The rows whose sum is the demand of all tiers up to one, less the work that makes it up."""
        return {("row", self.at["tally"][region, kind, one], 1): ONE for one in range(tier + 1)}

    def _base(self, row: str, region: int, kind: int, tier: int) -> dict[Any, Fraction]:
        """A row ``gpu`` or ``worst`` with the work in place of its demand."""
        demand = {source: -factor for source, factor in self._demand(region, kind, tier).items()}
        return {("row", self.at[row][region, kind, tier], 1): ONE, **demand}

    def roundings(self, certificate: Certificate) -> list[Step]:
        """The priced roundings of the rows ``gpu`` and ``worst`` by sizes of gangs."""
        found, nowhere = [], np.zeros(len(self.program.cost))
        for row, prices in (("gpu", certificate.over), ("worst", certificate.worst)):
            for region, kind, tier, order in np.argwhere(prices[..., 1:] > 0).tolist():
                size = int(certificate.gang[kind, order])
                scale = Fraction(1, 10 ** len(str(size)))
                base = Base({side: factor * scale for side, factor in self._base(row, region, kind, tier).items()})
                found.append(mir(self.program, base, size * scale, nowhere))
        return [step for step in found if step is not None]

    def peaks(self) -> list[Step]:
        """The peaks that whole gangs force, by GPU type and tier, where they are above the level of the tier."""
        p, found = self.p, []
        floor = bin_packing_peak_bound(p)
        options = np.bincount(p.options.workload, minlength=len(p.workloads))
        alone = (options == 1)[p.options.workload] & ~p.workloads.splittable[p.options.workload] & (p.options.mgpu > 0)
        for kind, tier in np.argwhere(floor > p.peak_level + 1e-9).tolist():
            mine = alone & (p.options.gpu_type == kind) & (p.workloads.tier[p.options.workload] <= tier)
            work = dict(zip(p.options.workload[mine].tolist(), p.options.mgpu[mine].tolist(), strict=True))
            steps = [self._peak(kind, tier, work, size) for size in sorted(set(work.values()))]
            best = max((step for step in steps if step is not None), key=lambda step: step.rhs, default=None)
            if best is not None and best.rhs > 0:
                found.append(best)
        return found

    def _peak(self, kind: int, tier: int, work: dict[int, int], size: int) -> Step | None:
        """The peak that multiples of one size force: some region holds more of them than a lower peak allows."""
        supply = {region: int(amount) for region, amount in enumerate(self.p.regions.supply_mgpu[:, kind]) if amount}
        units = sum(amount // size for amount in work.values())
        least = _least_filling(units, [Fraction(amount, size) for amount in supply.values()])
        column = self.peak[kind, tier]
        sides, cases = [], []
        for region, amount in supply.items():
            most = -(-least * amount // size) - 1
            mine = [(mgpu // size, self.runs[workload, region]) for workload, mgpu in work.items() if mgpu >= size]
            count = {at: Fraction(times) for times, columns in mine for at in columns}
            below, above = split(count, Fraction(most))
            base = self._base("worst", region, kind, tier)
            using: dict[Source, Fraction] = {side: -factor / amount for side, factor in base.items()}
            cases.append(completed(self.program, "G", {column: ONE}, {**using, above: Fraction(size, amount)}))
            sides.append((below, above))
        using = {("row", self.at["served"][workload,], 1): Fraction(mgpu // size) for workload, mgpu in work.items()}
        last = completed(self.program, "G", {}, {**using, **{below: -ONE for below, _ in sides}})
        if last is None or last.rhs <= 0:
            return None
        for (below, above), case in zip(sides, cases, strict=True):
            last = joined(last, below, case, above)
        return last

    def trees(self, certificate: Certificate) -> list[Step]:
        """The priced tree cuts."""
        kept, found = certificate.trees, []
        for tree in np.flatnonzero(kept.price > 0).tolist():
            reads = slice(int(kept.start[tree]), int(kept.start[tree + 1]))
            found.append(
                self._tree(
                    int(kept.root[tree]),
                    int(kept.region[tree]),
                    int(kept.limit[tree]),
                    kept.read[reads].tolist(),
                    kept.parent[reads].tolist(),
                )
            )
        return [step for step in found if step is not None]

    def _node(self, node: int, region: int) -> dict[int, Fraction]:
        """The columns that say whether a dataset, or a workload counted after them, is in a region."""
        datasets = len(self.p.datasets)
        if node < datasets:
            return {self.place[node, region]: ONE}
        return dict.fromkeys(self.runs[node - datasets, region], ONE)

    def _edges(
        self, root: int, region: int, limit: int, reads: list[int], parents: list[int]
    ) -> tuple[list[_Edge], int]:
        """The reads of a tree, and what all of it needs."""
        p, datasets = self.p, len(self.p.datasets)
        need = [p.workloads.cpu_mcores, p.workloads.output_mb][limit].tolist()
        sizes = [0] * datasets if limit == 0 else p.datasets.size_mb.tolist()
        nodes: list[int] = []
        for read, parent in zip(reads, parents, strict=True):
            before = root if parent < 0 else nodes[parent]
            ends = int(p.reads.dataset[read]), datasets + int(p.reads.workload[read])
            nodes.append(ends[1] if before == ends[0] else ends[0])
        below = [(sizes + need)[node] for node in nodes]
        for at in reversed(range(len(nodes))):
            if parents[at] >= 0:
                below[parents[at]] += below[at]
        edges = []
        for at, (read, parent) in enumerate(zip(reads, parents, strict=True)):
            before = root if parent < 0 else nodes[parent]
            near, far = self._node(before, region), self._node(nodes[at], region)
            apart = near | {column: -number for column, number in far.items()}
            row = self.at["local"].get((int(p.reads.workload[read]), int(p.reads.dataset[read]), region))
            entries = [] if row is None else self.program.rows[row]
            remote = {column: -number for column, number in entries if column not in apart}
            down = before < datasets
            source: Source | None = None if row is None else ("row", row, 1)
            edges.append(_Edge(apart, apart | remote if down else remote, source, down, Fraction(below[at])))
        return edges, (sizes + need)[root] + sum(below[at] for at, parent in enumerate(parents) if parent < 0)

    def _tree(self, root: int, region: int, limit: int, reads: list[int], parents: list[int]) -> Step | None:
        """Σ min(need below, spare) · parted ≥ spare · root: one split for each read whose tree alone is too much."""
        edges, total = self._edges(root, region, limit, reads, parents)
        capacity: Source = ("row", self.at[("cpu", "storage")[limit]][region,], 1)
        room = self.program.constraint(capacity)[0]
        spare = total - room
        if spare <= 0:
            return None
        unit = Fraction(1, 10 ** len(str(int(spare))))
        row: dict[int, Fraction] = dict.fromkeys(self._node(root, region), -spare * unit)
        parts: dict[Source, Fraction] = {}
        """The rows that say that reads are parted by at least 0."""
        for edge in edges:
            factor = min(edge.below, spare) * unit
            for column, number in edge.parted.items():
                row[column] = row.get(column, Fraction(0)) + factor * number
            if edge.down and edge.row is not None:
                parts[edge.row] = -factor
        out, inside = split(self._node(root, region), Fraction(0))
        heavy = [(edge, *split(edge.apart, Fraction(0))) for edge in edges if edge.below > spare]
        using: dict[Source, Fraction] = {capacity: -unit, inside: room * unit}
        using |= {edge.row: -edge.below * unit for edge in edges if edge.row and not edge.down and edge.below <= spare}
        using |= {edge.row: -spare * unit for edge in edges if edge.row and edge.down and edge.below > spare}
        using |= {together: -edge.below * unit for edge, together, _ in heavy}
        last = completed(self.program, "G", row, using)
        for edge, together, parted in reversed(heavy):
            last = joined(last, together, self._parted(row, edge, parted, parts, root, spare * unit), parted)
        return joined(last, inside, completed(self.program, "G", row, {**parts, out: -spare * unit}), out)

    def _parted(
        self, row: Vector, edge: _Edge, parted: Step, parts: dict[Source, Fraction], root: int, spare: Fraction
    ) -> Step | None:
        """The row of a tree where the ends of one read are parted."""
        using = dict(parts)
        if edge.row is not None:
            using[edge.row] = Fraction(0) if edge.down else using.get(edge.row, Fraction(0)) - spare
        using[parted] = spare
        if root >= len(self.p.datasets):
            using["row", self.at["served"][root - len(self.p.datasets),], 1] = -spare
        return completed(self.program, "G", row, using)


def positions(blocks: tuple[Block, ...], name: str) -> dict[tuple[int, ...], int]:
    """Indices of the members of a block → their positions."""
    block = next((one for one in blocks if one.name == name), None)
    if block is None:
        return {}
    cells = block.cells or np.indices(block.shape).reshape(len(block.shape), block.size)
    keys = zip(*(cell.tolist() for cell in cells), strict=True) if block.shape else [()]
    return {key: block.start + at for at, key in enumerate(keys)}


def _least_filling(units: int, rooms: list[Fraction]) -> Fraction:
    """The least t with Σ ⌊t · room⌋ ≥ units: a right side that a proof rounds up to."""
    low, high = Fraction(0), (units + len(rooms)) / sum(rooms, Fraction(0))
    near = high
    for _ in range(60):
        middle = Fraction(float(low + high) / 2)
        low, high = (low, middle) if sum(middle * room // 1 for room in rooms) >= units else (middle, high)
        near = high
    steps = {-(-low * room // 1) / room for room in rooms} | {near}
    return min(t for t in steps if sum(t * room // 1 for room in rooms) >= units)
