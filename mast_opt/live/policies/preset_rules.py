"""Schedulers of the literature as rules of shares, for rounds.

The loop runs a gang whole or not at all; the rules that ``resizes`` say also how large. What a scheduler decides beyond
that is not carried out; ``docs/policies-in-time.md`` says what that is for each.
"""

from dataclasses import dataclass

import networkx as nx
import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.errors import BackendError
from mast_opt.live.policies import gandiva, gandiva_fair, gavel, sia, singularity, themis, tiresias
from mast_opt.live.policies.central_shares import Demand
from mast_opt.live.policies.share_rules import Competing, ShareRule

DAY_S = 86_400.0
LEAST_S = 1e-3


def in_order(keys: FloatArray, rate: FloatArray) -> FloatArray:
    """[J, G] shares that make rounds serve jobs by ascending key, ties by position."""
    rank = np.empty(len(keys))
    rank[np.argsort(keys, kind="stable")] = np.arange(len(keys))
    shares: FloatArray = np.where(rate > 0, 1.0 / (1.0 + rank[:, None]), 0.0)
    return shares


def spread(part: FloatArray, demand: Demand) -> FloatArray:
    """[J, G] a part of the time [J] over the types where each job runs, in proportion to their GPUs."""
    able = np.where(demand.rate > 0, demand.gpus, 0.0)
    shares: FloatArray = part[:, None] * able / np.maximum(able.sum(axis=1, keepdims=True), 1e-300)
    return shares


class Objective(ShareRule):
    """Gavel's policies that maximise something: total rate, Nash welfare, fairness among users.

    Args:
        policy: as in ``gavel.solve``, but for ``cost``.
    """

    def __init__(self, policy: str) -> None:
        self._policy = policy

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares that a policy of Gavel gives."""
        demand = jobs.demand
        users = list(dict.fromkeys(jobs.user))
        known = gavel.Jobs(
            rate=demand.rate,
            gang=demand.need.max(axis=1),
            entity=np.array([users.index(user) for user in jobs.user], np.int64),
            entity_weight=np.ones(len(users)),
            submitted_s=jobs.elapsed_s.max() - jobs.elapsed_s,
            pairs=gavel.Pairs(demand.pairs, demand.pair_rate) if len(demand.pairs) else None,
        )
        found = gavel.solve(known, demand.gpus, self._policy)
        if found.share is None or found.kept is None or found.pair_share is None:
            raise BackendError(f"no shares for {self._policy}: {found.status.value}")
        return np.concatenate([found.share * found.kept[:, None], found.pair_share])


class Themis(ShareRule):
    """Themis: the jobs with the worst finish-time ratios are offered the GPUs first, worst first; the others take what
    is left.

    Args:
        fairness: f: the best f of the jobs are left out of the offer.
    """

    every_round = True

    def __init__(self, fairness: float) -> None:
        self._fairness = fairness

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares by Themis' finish-time fairness."""
        demand = jobs.demand
        left = np.maximum(np.nan_to_num(jobs.left_s, nan=DAY_S), LEAST_S)
        alone = np.maximum(left + jobs.ran_s, LEAST_S) * np.maximum(
            1.0, len(left) * demand.need.max(axis=1) / demand.gpus.sum()
        )
        ratio = (jobs.elapsed_s + left) / alone
        offered = themis.worst_off(ratio, self._fairness)
        return in_order(np.where(offered, -ratio, -ratio + ratio.max() + 1.0), demand.rate)


class Tiresias(ShareRule):
    """Tiresias: queues by attained GPU-time, first come, first served inside each.

    Args:
        thresholds_gpu_s: between the queues.
        promote: a job that has waited so many times as long as it ran begins again in the first queue; 0 for never.
    """

    every_round = True

    def __init__(self, thresholds_gpu_s: tuple[float, ...], promote: float) -> None:
        self._rule, self._promote = tiresias.queues(thresholds_gpu_s), promote

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares in the order of Tiresias."""
        attained = jobs.attained_s
        if self._promote:
            waited = np.where(jobs.runs_on >= 0, 0.0, np.maximum(jobs.elapsed_s - jobs.ran_s, 0.0))
            attained = tiresias.promoted(attained, jobs.ran_s, waited, self._promote)
        known = tiresias.Waiting(jobs.demand.need.max(axis=1), attained, jobs.left_s)
        return in_order(self._rule(known), jobs.demand.rate)


class TimeSlices(ShareRule):
    """Gandiva: equal parts of all GPUs, over time, to every job, or pair of jobs: where GPUs are short, jobs are packed
    in pairs, and stay so until one ends. They are those that gain most over taking turns, by the mean of the types: a
    maximum-weight matching of the jobs that are in no pair, where Gandiva tries pairs at random."""

    def __init__(self) -> None:
        self._mates: dict[str, str] = {}
        """Each of two jobs in a pair → the other."""

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares by time slices."""
        demand = jobs.demand
        count, need = len(demand.need), demand.need.max(axis=1)
        short = len(demand.pairs) > 0 and need.sum() > demand.gpus.sum()
        packed = self._pairs(jobs.names, demand) if short else np.zeros(0, np.int64)
        alone = np.setdiff1d(np.arange(count), demand.pairs[packed])
        parts = np.zeros((count + len(demand.pairs), len(demand.gpus)))
        of_each = demand.gpus / max(1, len(alone) + len(packed))
        parts[alone] = np.where(demand.rate[alone] > 0, of_each / need[alone, None], 0.0)
        parts[count + packed] = np.where(demand.paired[packed], of_each / need[demand.pairs[packed, :1]], 0.0)
        shares: FloatArray = parts / np.maximum(1.0, parts.sum(axis=1, keepdims=True))
        return shares

    def _pairs(self, names: tuple[str, ...], demand: Demand) -> IntArray:
        """Positions of the pairs of jobs that are packed on the same GPUs."""
        place = {name: at for at, name in enumerate(names)}
        self._mates = {one: other for one, other in self._mates.items() if one in place and other in place}
        mate = np.array([place.get(self._mates.get(name, ""), -1) for name in names])
        one, other = demand.pairs.T
        kept = np.flatnonzero(mate[one] == other)
        free = np.flatnonzero((mate[one] < 0) & (mate[other] < 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = demand.pair_rate[free] / demand.rate[demand.pairs[free]]
        worth = np.where(demand.paired[free], np.nan_to_num(gain).sum(axis=1) - gandiva.TURNS, 0.0).mean(axis=1)
        graph = nx.Graph()
        for at, weight in zip(free.tolist(), worth.tolist(), strict=True):
            graph.add_edge(int(one[at]), int(other[at]), weight=weight, at=at)
        new = sorted(graph.edges[pair]["at"] for pair in nx.max_weight_matching(graph))
        for at in new:
            self._mates |= {names[one[at]]: names[other[at]], names[other[at]]: names[one[at]]}
        return np.concatenate([kept, np.array(new, np.int64)])


class Trades(ShareRule):
    """Gandiva-Fair: users have equal tickets and trade fast for slow GPUs; inside a user, jobs share alike."""

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares after the trades of Gandiva Fair."""
        demand = jobs.demand
        users = list(dict.fromkeys(jobs.user))
        member: BoolArray = np.array([[user == one for one in users] for user in jobs.user])
        need = demand.need.max(axis=1)
        wanted = need @ member
        value = ((demand.rate * need[:, None]).T @ member).T / wanted[:, None]
        trade = gandiva_fair.solve(value, demand.gpus, demand=np.minimum(wanted, demand.gpus.sum()))
        if trade.gpus is None:
            raise BackendError(f"no trade was found: {trade.status.value}")
        able = demand.rate > 0
        claims = ((able * need[:, None]).T @ member).T
        part = np.minimum(1.0, trade.gpus / np.maximum(claims, 1e-300))
        claimed: FloatArray = np.where(able, member @ part, 0.0)
        shares: FloatArray = claimed / np.maximum(1.0, claimed.sum(axis=1, keepdims=True))
        return shares


@dataclass(eq=False)
class Goodput(ShareRule):
    """Pollux and Sia: who runs, with how many tasks and on which type, for the highest sum of powers of goodput, for
    which throughput stands. A job without GPUs is to have its fewest tasks.

    With p = 1 and types taken for equal it is Pollux's sum of speedups; Sia has p = −0.5 and knows the types.

    Args:
        power: p.
        waiting: λ, the penalty of a job without GPUs.
        factor: on the goodput of a job that would be moved or stopped.
        typed: whether the type is chosen; if not, rates are means over types.
    """

    power: float
    waiting: float
    factor: float
    typed: bool
    resizes: bool = True

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares that maximise goodput."""
        demand, sizes = jobs.demand, jobs.sizes
        assert sizes is not None
        able, kinds = sizes.rate > 0, len(demand.gpus)
        mean = sizes.rate.sum(axis=1) / able.sum(axis=1)
        mean /= mean[np.searchsorted(sizes.job, sizes.job)]  # of its first row
        rate = sizes.rate if self.typed else np.where(able, mean[:, None], 0.0)
        size = np.repeat(np.unique(sizes.need), kinds)
        kind = np.tile(np.arange(kinds), len(size) // kinds)
        row = np.full((len(jobs.names), len(size)), -1)
        at = np.searchsorted(size, sizes.need)
        row[sizes.job[:, None], at[:, None] + np.arange(kinds)] = np.arange(len(at))[:, None]
        goodput = np.where(row >= 0, rate[row, kind] * demand.need.max(axis=1)[:, None], 0.0)
        here = (row >= 0) & (sizes.tasks[row] == sizes.held[:, None]) & (kind == jobs.runs_on[:, None])
        current = np.where(here.any(axis=1), here.argmax(axis=1), -1)
        found = sia.solve(
            goodput,
            size,
            kind,
            demand.gpus,
            power=self.power,
            waiting=self.waiting,
            current=current,
            factor=self.factor,
        )
        if found.configuration is None:
            raise BackendError(f"no configurations were found: {found.status.value}")
        shares = np.zeros(demand.rate.shape)
        runs = np.flatnonzero(found.configuration >= 0)
        chosen = found.configuration[runs]
        shares[runs, kind[chosen]] = 1.0
        self.tasks = np.full(len(jobs.names), np.iinfo(np.int64).max)
        np.minimum.at(self.tasks, sizes.job, sizes.tasks)
        self.tasks[runs] = sizes.tasks[row[runs, chosen]]
        return shares


@dataclass(eq=False)
class ServiceLevels(ShareRule):
    """Singularity: sizes by ``singularity.fitted``, so that jobs shrink before they are stopped; then parts of the time
    under guarantees by tier, and what is left goes by weight. An elastic job that runs stays on its GPU type.

    Where the guarantees are more than there is, all are cut by the same factor.

    Args:
        guarantees: [P] part of its demand that a tier has; tiers beyond have none.
        weights: [P] worth of a GPU by tier; tiers beyond have the last.
    """

    guarantees: tuple[float, ...]
    weights: tuple[float, ...]
    resizes: bool = True

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares by service levels."""
        demand, sizes = jobs.demand, jobs.sizes
        assert sizes is not None
        floors = np.array([*self.guarantees, 0.0])[np.minimum(jobs.tier, len(self.guarantees))]
        weight = np.array(self.weights)[np.minimum(jobs.tier, len(self.weights) - 1)]
        total = float(demand.gpus.sum())
        rate = sizes.rate.sum(axis=1) / (sizes.rate > 0).sum(axis=1)
        chosen = singularity.fitted(sizes.job, sizes.need, rate, sizes.asked, jobs.tier, floors, total)
        self.tasks = sizes.tasks[chosen]
        floors = np.minimum(1.0, floors * rate[sizes.asked] / rate[chosen])
        whole = np.maximum(1.0, np.ceil(sizes.need[chosen]))
        asked = float((floors * whole).sum())
        cut = min(1.0, (1 - 1e-9) * total / asked) if asked else 1.0
        found = singularity.solve(whole, total, weight=weight, guaranteed=floors * cut)
        if found.gpus is None:
            raise BackendError(f"no sizes were found: {found.status.value}")
        part = np.minimum(1.0, found.gpus / whole)
        shares = spread(part, demand)
        stays = np.flatnonzero((np.bincount(sizes.job) > 1) & (jobs.runs_on >= 0))  # elastic, so not moved as well
        shares[stays] = 0.0
        shares[stays, jobs.runs_on[stays]] = part[stays]
        return shares
