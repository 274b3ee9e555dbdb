"""The problem as its documentation defines it, in plain Python, over every assignment there is."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from mast_opt.problems.server_assignment import ServerAssignment
from mast_opt.problems.server_assignment.problem import BUFFERS


class Brute:
    """Dictionaries and loops; no array and nothing of the package's own figures."""

    def __init__(self, problem: ServerAssignment) -> None:
        self.p = p = problem
        self.servers = range(len(p.servers))
        self.claims = range(len(p.reservations))
        self.boards = range(len(p.switchboards))
        self.type = p.servers.type.tolist()
        self.board = [p.racks.switchboard.tolist()[rack] for rack in p.servers.rack.tolist()]
        self.owner = p.servers.owner.tolist()
        self.in_use = p.servers.in_use.tolist()
        self.value = p.reservations.value_mrru.tolist()
        self.asked = p.reservations.asked_mrru.tolist()
        self.buffer = [BUFFERS[kind] for kind in p.reservations.buffer.tolist()]
        self.today = self.degrees(self.owner)

    def held(self, assigned: list[int], q: int, b: int) -> int:
        return sum(self.value[q][self.type[s]] for s in self.servers if assigned[s] == q and self.board[s] == b)

    def degrees(self, assigned: list[int]) -> dict[tuple[str, ...] | str, Fraction]:
        """How far each rule is broken, by its name; and the buffer."""
        p = self.p
        held = {(q, b): self.held(assigned, q, b) for q in self.claims for b in self.boards}
        total = {q: sum(held[q, b] for b in self.boards) for q in self.claims}
        found: dict[tuple[str, ...] | str, Fraction] = {"buffer": Fraction(0)}
        for q in self.claims:
            backs = [q]
            if self.buffer[q] == "pool":
                backs += [other for other in self.claims if self.buffer[other] == "shared"]
            largest = max(sum(held[other, b] for other in backs) for b in self.boards)
            if self.buffer[q] in ("shared", "none"):
                largest = 0
            found["buffer"] += largest
            found["short", p.reservations.labels[q]] = Fraction(max(0, self.asked[q] - (total[q] - largest)))
            if p.reservations.spread_limited[q]:
                limit = int(p.reservations.spread_limit_milli[q]) * self.asked[q] // 1000
                for b in self.boards:
                    found["excess", p.reservations.labels[q], p.switchboards.labels[b]] = Fraction(
                        max(0, held[q, b] - limit)
                    )
        for a, (q, d) in enumerate(
            zip(p.affinities.reservation.tolist(), p.affinities.datacenter.tolist(), strict=True)
        ):
            there = sum(held[q, b] for b in self.boards if p.switchboards.datacenter[b] == d)
            share, tolerance = (
                Fraction(int(at[a]), 1000) for at in (p.affinities.share_milli, p.affinities.tolerance_milli)
            )
            off = abs(there - share * total[q]) - tolerance * total[q]
            found["slack", p.reservations.labels[q], p.datacenters[d]] = max(Fraction(0), off)
        return found

    def broken(self, assigned: list[int]) -> dict[str, Fraction]:
        """What nobody may do, by the name of the row: give what is of no use, break more what today breaks; and by how
        much, in servers or mrru."""
        p, found = self.p, dict[str, Fraction]()
        for s in self.servers:
            q = assigned[s]
            if q in self.claims and q != self.owner[s] and self.value[q][self.type[s]] == 0:
                name = f"n[{p.types[self.type[s]]},{p.switchboards.labels[self.board[s]]},{p.reservations.labels[q]}]"
                found[name] = found.get(name, Fraction(0)) + 1
        then = self.degrees(assigned)
        rows = {"short": "no_shorter", "excess": "no_denser", "slack": "no_farther"}
        for rule, degree in self.today.items():
            if rule != "buffer" and 0 < degree < then[rule]:
                found[f"{rows[rule[0]]}[{','.join(rule[1:])}]"] = then[rule] - degree
        return found

    def allowed(self, assigned: list[int]) -> bool:
        return not self.broken(assigned)

    def objective(self, assigned: list[int]) -> float:
        then, asked, servers = self.degrees(assigned), sum(self.asked), len(self.servers)
        taken = [s for s in self.servers if self.owner[s] in self.claims and assigned[s] != self.owner[s]]

        def of(name: str, *, broken_today: bool = False) -> Fraction:
            rules = [rule for rule in then if rule != "buffer" and rule[0] == name]
            return sum((then[rule] for rule in rules if not broken_today or self.today[rule] > 0), Fraction(0))

        per_asked = {
            "shortfall": of("short"),
            "spread": of("excess"),
            "buffer": then["buffer"],
            "affinity": of("slack"),
            "repair": of("excess", broken_today=True) + of("slack", broken_today=True),
        }
        per_server = {
            "moves_in_use": sum(self.in_use[s] for s in taken),
            "moves_idle": sum(not self.in_use[s] for s in taken),
            "use": sum(assigned[s] in self.claims for s in self.servers),
        }
        terms = {name: amount / asked if asked else Fraction(0) for name, amount in per_asked.items()}
        terms |= {name: Fraction(amount, servers) for name, amount in per_server.items()}
        return float(sum(Fraction(weight) * terms[name] for name, weight in self.p.objective.weights.items()))

    def assignments(self) -> Iterator[list[int]]:
        """Every assignment, but one of those that differ only by equal servers."""
        for assigned in product(range(len(self.p.reservations) + 1), repeat=len(self.p.servers)):
            if self._first(assigned):
                yield list(assigned)

    def optimum(self) -> float:
        return min(self.objective(assigned) for assigned in self.assignments() if self.allowed(assigned))

    def _first(self, assigned: tuple[int, ...]) -> bool:
        """Among servers that nothing distinguishes, positions ascend."""
        last: dict[tuple[object, ...], int] = {}
        for s in self.servers:
            alike = (self.type[s], self.board[s], self.owner[s], self.in_use[s])
            if assigned[s] < last.get(alike, 0):
                return False
            last[alike] = assigned[s]
        return True
