"""Moves of running jobs in a live fleet (job placement): plans that make room, and carrying them out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby

from mast_opt.core.arguments import a, a_price, checked, each, mapping_of, optional
from mast_opt.core.errors import StaleBid, UnsupportedOption, UsageError
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.booking import check_need, devices_of, servers_of
from mast_opt.problems.job_placement.live_fleet.defragmentation import Defragmentation
from mast_opt.problems.job_placement.live_fleet.fleet_state import FleetState
from mast_opt.problems.job_placement.live_fleet.movable_work import movable_work, moved_holdings, task_of
from mast_opt.problems.job_placement.live_fleet.move_plan import JobMove, MoveBudget, MovePlan
from mast_opt.problems.job_placement.live_fleet.types import Job, jobs_in
from mast_opt.problems.job_placement.units import GPU


class MovingFleet(FleetState):
    """A fleet whose running jobs may be moved."""

    @checked(budget=a(MoveBudget), movable=optional(mapping_of(a_price)))
    def defragment(
        self, budget: MoveBudget, waiting: Iterable[Job] = (), *, movable: Mapping[str, float] | None = None
    ) -> MovePlan:
        """A plan to move running jobs (checkpoint, and restart elsewhere) so that waiting jobs fit, or, if none waits,
        so that free capacity is less scattered. It changes nothing; other threads go on while it is made.

        A job that is moved stays in its region, on its GPU type and as close together as it is, and is moved once. It
        takes free capacity only, its own place included, and nobody is stopped. Each waiting job, by tier and then as
        listed, gets the moves that use up the smallest part of the budget, among those that were tried.

        Args:
            waiting: jobs that do not run; those that fit without moves are part of the plan too.
            movable: running job → GPU-hours that its move loses; None for those that may be stopped
                (``Job.preemptible``), at their GPU-hours at risk, without those of several parts.

        Raises:
            UsageError: a waiting job runs already, occurs twice or has a tier that the fleet does not have, or a
                movable one does not run.
            UnsupportedOption: a waiting or movable job has several parts.
        """
        jobs = jobs_in(waiting)
        with self._lock:
            self._outside_round("a plan of moves is made")
            for job in jobs:
                self._tier_of(job)
                if job.parts:
                    raise UnsupportedOption(f"no moves are planned for jobs of several parts, and {job.name} is one")
                if job.name in self._books.running:
                    raise UsageError(f"a job called {job.name} runs already; it cannot wait as well")
            if len({job.name for job in jobs}) < len(jobs):
                raise UsageError("waiting: expected each job once")
            books, versions = self._books.copy(), self._versions
            version, fleet = versions.now, versions.name
        return Defragmentation(books, movable_work(books, movable), budget).plan(jobs, version, fleet)

    @checked(plan=a(MovePlan))
    def apply(self, plan: MovePlan) -> None:
        """Make the moves of a plan, and start the waiting jobs that fit. The hosts have to make the moves step by
        step, as listed, before these jobs start.

        Raises:
            StaleBid: what the plan touches has changed since it was made; nothing has changed then.
            UsageError: another fleet made the plan, or it was changed and does not fit the fleet; likewise.
        """
        with self._lock:
            self._outside_round("moves are made")
            self._versions.check_maker(plan)
            each(a(JobMove))("moves of the plan", plan.moves)
            each(a(Bid))("starts of the plan", plan.starts)
            stale = StaleBid("the plan of moves is for an older state of the fleet; ask for a new one")
            if plan.version != self._versions.now and self._touched_since(plan):
                raise stale
            try:
                with self.trial():
                    self._carry_out(plan)
            except UsageError as error:
                if plan.version != self._versions.now:
                    raise stale from error
                raise
            self._carry_out(plan)

    def _touched_since(self, plan: MovePlan) -> bool:
        shares = [share for move in plan.moves for share in (*move.source, *move.target)]
        shares += [share for bid in plan.starts for share in bid.shares]
        return self._versions.changed_since(plan.version, (share.server for share in shares))

    def _carry_out(self, plan: MovePlan) -> None:
        for _, step in groupby(plan.moves, key=lambda move: move.step):
            moves = tuple(step)
            for move in moves:
                self._move(move)
            for move in moves:
                if any(share.server in self._books.over_booked for share in move.target):
                    raise UsageError(f"the move of {move.job}: its target has no room")
        for bid in plan.starts:
            self._commit(bid)

    def _move(self, move: JobMove) -> None:
        owner, books = f"the move of {move.job}", self._books
        running = self._known(move.job)
        if running.job.parts:
            raise UsageError(f"{owner}: a job of several parts is not moved")
        if running.shares != move.source:
            raise UsageError(f"{owner}: it is not where the plan has it")
        servers_of(owner, move.target, books)
        if sum(share.tasks for share in move.target) != running.job.tasks:
            raise UsageError(f"{owner}: the target has not all of its {running.job.tasks} tasks")
        width, task = books.state.row_device.shape[1], task_of(running, books)
        for share in move.target:
            check_need(
                owner, share, share.tasks, task[GPU], devices_of(owner, share, books.servers[share.server], width)
            )
        held = moved_holdings(running, move.target, books)
        if any(share.server in books.blocked for share in move.target):
            raise UsageError(f"{owner}: its target takes no work")
        books.swap(replace(running, shares=move.target), held, False)
        self._changed(share.server for share in (*move.source, *move.target))
