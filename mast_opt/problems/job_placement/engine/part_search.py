"""Bids for a job of several parts (job-placement engine): all parts in one place, or none.

A place is a region, a cluster, a rack or a server, as the level of the whole job says. In each, the parts go one after
another to their best bids, those with the most GPUs first, each in the state that those before it leave. A part that
finds no bid goes first in another try, each at most once. So it is a heuristic: parts that would fit in a way that no
such order finds are refused.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import entry
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.best_bid import NOBODY, BestBid, take
from mast_opt.problems.job_placement.engine.capacity_ledger import block, last_tier_of, last_tier_of_victim, stop
from mast_opt.problems.job_placement.engine.feasibility import Request, load_of
from mast_opt.problems.job_placement.engine.server_layout import Layout
from mast_opt.problems.job_placement.engine.state import VICTIM, EngineState
from mast_opt.problems.job_placement.engine.state_allocation import Stopped
from mast_opt.problems.job_placement.units import CLUSTER, LARGEST, REGION, SERVER, Bools, Ints

Offer = Callable[[int, Bools], BestBid | None]
"""The best bid for a part (by number) in some groups [G]; None if there is none."""
Key = tuple[int, int, int, int, float, float, int, int]


@dataclass(frozen=True, eq=False)
class PartsBid:
    """A bid for all parts of a job: where they would go, and which victims they would displace."""

    offers: tuple[tuple[int, BestBid], ...]
    """(part, bid) in the order of the search; each bid assumes the earlier ones."""
    victims: Ints
    """Positions in the state of the jobs that must be stopped."""
    cost: int
    """Cost of the victims, as ``state`` defines it."""
    key: Key
    """Key by which bids compare, smaller is better: importance of the most important victim, GPU-hours lost, victims,
    levels of spread of all parts, price, load of the region, and the first servers of the region and of the group of
    the first part."""

    @property
    def by_part(self) -> list[BestBid]:
        """Bids in the order of the parts."""
        return [offer for _, offer in sorted(self.offers, key=lambda pair: pair[0])]


@dataclass(frozen=True, eq=False)
class PartSearch:
    """Search for the best place of one job; it leaves the state unchanged.

    Args:
        state: with free places for all parts and their allocations.
        parts: of one tier; which regions are open is the same for all.
        within: level of the whole job.
        price: [G] of the job where its first part is; None where it is the same everywhere.
        fresh: within a round, see ``take``.
        log: functions, each with its arguments, that undo what the search changes for a while. Each is noted before its
            change, and does nothing if that has not happened: whoever has the log can undo a search that is
            interrupted, even while it undoes.
    """

    state: EngineState
    layout: Layout
    parts: Sequence[Request]
    within: int
    price: NDArray[np.float64] | None
    offer: Offer
    fresh: bool
    log: list[tuple[Any, ...]] = field(default_factory=list)

    def best(self) -> PartsBid | None:
        """Best bid for all parts of a job over all places."""
        return min(self._bids(), key=lambda bid: bid.key, default=None)

    def _bids(self) -> Iterator[PartsBid]:
        """Bids for all parts in each place where they may be."""
        if len(self.parts) == 1 and self.within >= CLUSTER:
            yield from self._in_place(np.ones(len(self.layout.group_cluster), np.bool_))
            return
        for region in np.flatnonzero(self.parts[0].open).tolist():
            if self.within >= CLUSTER:
                here = self.layout.group_region == region
                for groups in [here] if self.within == REGION else self._clusters(here):
                    yield from self._in_place(groups)
            else:
                yield from self._in_closest(region)

    def _clusters(self, here: Bools) -> list[Bools]:
        """Masks of the engine's groups of servers of each cluster here."""
        cluster = self.layout.group_cluster
        return [cluster == c for c in np.unique(cluster[here]).tolist()]

    def _in_place(self, groups: Bools) -> Iterator[PartsBid]:
        """Bid for all parts in these groups [G], if one is found."""
        kinds = self.layout.group_type[groups]
        if not all((part.mgpu[kinds] >= 0).any() for part in self.parts):
            return
        size = [(int(part.mgpu.max()) * part.tasks, part.cpu * part.tasks) for part in self.parts]
        order = sorted(range(len(size)), key=lambda at: (-size[at][0], -size[at][1], at))
        failed = set[int]()
        while True:
            found = self._in_turn(order, groups)
            if isinstance(found, PartsBid):
                yield found
                return
            if found in failed or found == order[0]:
                return
            failed.add(found)
            order.remove(found)
            order.insert(0, found)

    def _in_turn(self, order: Sequence[int], groups: Bools) -> PartsBid | int:
        """Bid for the parts in this order, or the part for which there was no bid."""
        state, offers, victims, cost = self.state, list[tuple[int, BestBid]](), list[int](), 0
        mark = len(self.log)
        try:
            for part in order:
                offer = self.offer(part, groups)
                if offer is None:
                    return part
                cost += int(state.job[col.J_COST, offer.victims].sum())
                victims += offer.victims.tolist()
                for at in offer.victims.tolist():
                    self._stop(at)
                left = self._places_left()
                self.log.append((self._unstart, state.job.item(col.J_STACK, left - 1), left))
                take(state, self.parts[part], offer.placed, NOBODY, 0, 1, self.fresh)
                offers.append((part, offer))
        finally:
            self._undo(mark)
        return PartsBid(tuple(offers), np.array(victims, np.int64), cost, self._key(offers, len(victims), cost))

    def _undo(self, mark: int) -> None:
        """Undo the last changes of the search until ``mark`` changes remain in its log."""
        while len(self.log) > mark:
            undo, *values = self.log[-1]
            undo(*values)
            self.log.pop()

    def _places_left(self) -> int:
        """Number of free places for jobs in the engine's state."""
        return int(self.state.free_places.item(col.N_JOBS))

    def _unstart(self, at: int, left: int) -> None:
        """Undo the start of a part; ``left`` is the number of free places before it."""
        if self._places_left() < left:
            stop(self.state, at, last_tier_of(self.state, at))

    def _stop(self, at: int) -> None:
        """Stop a job to make room for the part that is tried."""
        state = self.state
        last = int(last_tier_of_victim(state, at)) if self.fresh else state.room.shape[1] - 1
        self.log.append((self._unstop, Stopped.of(state, at, last), self._places_left()))
        stop(state, at, last)

    def _unstop(self, stopped: Stopped, left: int) -> None:
        """Undo the stop of a job; ``left`` is the number of free places before it."""
        if self._places_left() > left:
            stopped.resume(self.state)

    def _key(self, offers: Sequence[tuple[int, BestBid]], victims: int, cost: int) -> Key:
        """Key by which bids for all parts compare."""
        layout, state = self.layout, self.state
        tiers = [offer.threshold for _, offer in offers if offer.threshold is not None]
        level = sum(max(offer.level, self.parts[part].prefer) for part, offer in offers)
        group = next(offer.group for part, offer in offers if part == 0)
        region = int(layout.group_region[group])
        return (
            -min(tiers, default=state.room.shape[1]),
            cost // VICTIM,
            victims,
            level,
            0.0 if self.price is None else float(self.price[group]),
            load_of(state, region),
            int(layout.region_rank[region]),
            int(np.flatnonzero(layout.region_groups == group)[0]),
        )

    def _in_closest(self, region: int) -> list[PartsBid]:
        """Bids of racks or servers of a region: the cheapest place first, of equals the fullest; the first one without
        victims ends it. All other servers of the region are closed meanwhile."""
        state, layout, bids, mark = self.state, self.layout, list[PartsBid](), len(self.log)
        servers = np.flatnonzero((layout.group_region[layout.group] == region) & (state.server[col.S_BLOCKED] == 0))
        places = self._candidates(servers)
        self.log.append((close_servers, state, servers, 0))
        try:
            close_servers(state, servers, 1)
            for here in places:
                close_servers(state, here, 0)
                found = list(self._in_place(np.isin(np.arange(len(layout.group_cluster)), layout.group[here])))
                close_servers(state, here, 1)
                bids += found
                if found and not len(found[0].victims):
                    break
        finally:
            self._undo(mark)
        return bids

    def _candidates(self, servers: Ints) -> list[Ints]:
        """The servers of the engine's state in each place that has enough of everything for all parts, free or held by
        what may be stopped; those with enough that is free first, equals in the order of their first servers as listed.
        """
        state, layout, tier = self.state, self.layout, self.parts[0].tier
        names, place = np.unique(servers if self.within == SERVER else layout.rack[servers], return_inverse=True)
        first = np.full(len(names), len(layout.server))
        np.minimum.at(first, place.reshape(-1), layout.server[servers])
        free = np.zeros((len(names), 3), np.int64)
        held = np.zeros_like(free)
        np.add.at(free, place.reshape(-1), state.room[[col.A_FREE, col.A_CPU, col.A_MEMORY], tier][:, servers].T)
        np.add.at(held, place.reshape(-1), state.reclaim[[col.C_MGPU, col.C_CPU, col.C_MEMORY], tier + 1][:, servers].T)
        need = np.zeros(3, np.int64)
        for part in self.parts:
            least = int(part.mgpu[part.mgpu >= 0].min(initial=LARGEST // part.tasks))
            need += np.array([least, part.cpu, part.memory]) * part.tasks
        price = np.zeros(len(names))
        if self.price is not None:
            price[:] = np.inf
            np.minimum.at(price, place.reshape(-1), self.price[layout.group[servers]])
        lacks = np.any(free + held < need, axis=1)
        order = np.lexsort((first, free[:, 0], price, np.any(free < need, axis=1)))
        chosen = order[~np.asarray(lacks)[order]]
        return [servers[place.reshape(-1) == at] for at in chosen.tolist()]


@entry
def close_servers(state: EngineState, servers: Ints, closed: int) -> None:
    """Let these servers take no work (1), or take work again (0)."""
    for at in range(len(servers)):
        block(state, servers[at], closed)
