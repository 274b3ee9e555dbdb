"""Verifier of server-assignment plans: checks the statement of the problem, sharing no code with any solver.

Everything is integer arithmetic without tolerance. A broken limit is named as its row in
``models/server_assignment.mod``; a server handed to a reservation that has no use for it is a broken ``n``, of which
there is no column.
"""

import numpy as np

from mast_opt.core.verdict import Verdict, Violation
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import SHARE, ServerAssignment
from mast_opt.problems.server_assignment.verification.measures import Measure

MRRU = "mRRU"


def verify(problem: ServerAssignment, plan: Plan) -> Verdict:
    """Every violation of the plan, and its terms, metrics and objective recomputed from the plan alone.

    Raises:
        ValueError: the plan is not one position for each server, from 0 to the number of reservations.
    """
    servers, reservations = len(problem.servers), len(problem.reservations)
    if plan.reservation.shape != (servers,):
        raise ValueError(f"reservation has shape {plan.reservation.shape}, expected {(servers,)}")
    if servers and not (plan.reservation.min() >= 0 and plan.reservation.max() <= reservations):
        raise ValueError(f"a reservation's position is outside 0 … {reservations}")
    check = _Check(problem, plan)
    violations = (*check.worthless(), *check.no_shorter(), *check.no_denser(), *check.no_farther())
    terms = check.terms()
    objective = float(sum(weight * terms[name] for name, weight in problem.objective.weights.items()))
    return Verdict(violations, objective, terms, check.metrics())


class _Check:
    """One method for each group of limits; ``now`` is today's assignment, ``then`` the plan's."""

    def __init__(self, problem: ServerAssignment, plan: Plan) -> None:
        self.p = problem
        self.plan = plan
        self.now = Measure(problem, problem.servers.owner)
        self.then = Measure(problem, plan.reservation)

    def worthless(self) -> list[Violation]:
        """n: a server goes where it is worth something, or stays where it is."""
        p, then = self.p, self.then
        wrong = then.given[(then.worth == 0) & (then.holder != p.servers.owner[then.given])]
        at = np.stack([p.servers.type[wrong], p.server_switchboard[wrong], self.plan.reservation[wrong]], axis=1)
        cells, count = np.unique(at, axis=0, return_counts=True)
        return [
            Violation(
                "n", (p.types[t], p.switchboards.labels[b], p.reservations.labels[q]), float(number), 0.0, "servers"
            )
            for (t, b, q), number in zip(cells.tolist(), count.tolist(), strict=True)
        ]

    def no_shorter(self) -> list[Violation]:
        """A reservation that is short today may not be shorter."""
        now, then = self.now.short, self.then.short
        return [
            Violation("no_shorter", (self.p.reservations.labels[q],), float(then[q] - now[q]), float(now[q]), MRRU)
            for q in np.flatnonzero((now > 0) & (then > now)).tolist()
        ]

    def no_denser(self) -> list[Violation]:
        """Violations of the rule that a reservation above its spread limit today may not hold more there."""
        now, then = self.now.excess, self.then.excess
        return [
            Violation(
                "no_denser",
                (self.p.reservations.labels[q], self.p.switchboards.labels[b]),
                float(then[q, b] - now[q, b]),
                float(now[q, b]),
                MRRU,
            )
            for q, b in np.argwhere((now > 0) & (then > now)).tolist()
        ]

    def no_farther(self) -> list[Violation]:
        """Violations of the rule that a reservation outside the tolerance of an affinity today may not be farther
        outside."""
        p, now, then = self.p, self.now.slack_milli, self.then.slack_milli
        return [
            Violation(
                "no_farther",
                (p.reservations.labels[p.affinities.reservation[a]], p.datacenters[p.affinities.datacenter[a]]),
                float(then[a] - now[a]) / SHARE,
                float(now[a]) / SHARE,
                MRRU,
            )
            for a in np.flatnonzero((now > 0) & (then > now)).tolist()
        ]

    def terms(self) -> dict[str, float]:
        """Terms of the objective, from the plan alone."""
        p, now, then = self.p, self.now, self.then
        asked, servers = int(p.reservations.asked_mrru.sum()), len(p.servers)
        in_use = int(p.servers.in_use[then.taken].sum())
        still = int(then.excess[now.excess > 0].sum()) + int(then.slack_milli[now.slack_milli > 0].sum()) / SHARE
        return {
            "shortfall": _share(int(then.short.sum()), asked),
            "moves_in_use": _share(in_use, servers),
            "moves_idle": _share(len(then.taken) - in_use, servers),
            "spread": _share(int(then.excess.sum()), asked),
            "buffer": _share(int(then.lost.sum()), asked),
            "affinity": _share(int(then.slack_milli.sum()) / SHARE, asked),
            "use": _share(len(then.given), servers),
            "repair": _share(still, asked),
        }

    def metrics(self) -> dict[str, float]:
        """``worst_domain_share`` and ``worst_rack_share``: the largest share of what any reservation holds that is at
        one switchboard, in one rack."""
        then = self.then
        has = then.total > 0
        return {
            "shortfall_rru": int(then.short.sum()) / 1000,
            "moved_servers": float(len(then.taken)),
            "moved_in_use": float(self.p.servers.in_use[then.taken].sum()),
            "buffer_rru": int(then.lost.sum()) / 1000,
            "assigned_servers": float(len(then.given)),
            "worst_domain_share": float((then.held.max(axis=1)[has] / then.total[has]).max(initial=0.0)),
            "worst_rack_share": float((then.held_in_rack[has] / then.total[has]).max(initial=0.0)),
        }


def _share(amount: float, of: int) -> float:
    """Share of servers in the verifier's measures, 0 of none."""
    return amount / of if of else 0.0
