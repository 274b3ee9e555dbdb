"""Sizes of elastic jobs in rounds: which they may have, which a rule has chosen, and the changes that lead there."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.speeds import REFERENCE, Speeds
from mast_opt.live.policies.round_table import RoundTable
from mast_opt.live.policies.share_rules import Sizes
from mast_opt.problems.job_placement.units import WHOLE


@dataclass(frozen=True, eq=False)
class Size:
    """A number of tasks that an elastic job may have."""

    tasks: int
    need: IntArray
    """[G] milli-GPUs of all tasks on each type; 0 where the job may not run."""
    rate: FloatArray
    """[G] part of the reference speed; 0 where the job cannot run."""


class RoundSizes:
    """Sizes of the jobs that take turns in rounds.

    Args:
        speeds: of the jobs' models.
        aware: whether they are known; if not, a job works in proportion to its tasks, on all types alike.
        resizes: whether the rule chooses sizes; without it all jobs have the tasks that they ask for.
    """

    def __init__(self, speeds: Speeds, *, aware: bool, resizes: bool) -> None:
        self._speeds, self._aware, self._resizes = speeds, aware, resizes
        self._of: dict[str, tuple[Size, ...]] = {}
        """Elastic job → the sizes that it may have, ascending."""
        self._chosen: dict[str, int] = {}
        """Elastic job → tasks that it is to have."""

    def tasks(self, record: JobRecord) -> int:
        """Tasks that a job is to have."""
        return self._chosen.get(record.name, record.spec.tasks)

    def row(self, record: JobRecord, types: Sequence[str], tasks: int | None = None) -> tuple[list[int], list[float]]:
        """Milli-GPUs of a job's gang on each type, 0 where it may not run, and its rate there, with so many tasks;
        None for those that it is to have."""
        spec, tasks = record.spec, self.tasks(record) if tasks is None else tasks
        kinds = dict.fromkeys(types, spec.mgpu) if spec.gpu_types is None else spec.gpu_types
        need = [tasks * kinds.get(kind, 0) for kind in types]
        return need, [self._speeds.rate(spec, kind, tasks=tasks) / REFERENCE for kind in types]

    def add(self, record: JobRecord, types: Sequence[str], largest_mgpu: int) -> None:
        """Take in a job, with the size that it has if it holds servers.

        Args:
            largest_mgpu: the most milli-GPUs of one type in one region; sizes beyond those that the job asks for fit.
        """
        least, most = record.spec.sizes
        if not self._resizes or least == most:
            return
        found = []
        for tasks in _steps(record.spec):
            need, rate = (np.array(one) for one in self.row(record, types, tasks))
            if tasks > record.spec.tasks:
                rate = np.where(need <= largest_mgpu, rate, 0.0)
            if not self._aware:
                rate = np.where(rate > 0, tasks / record.spec.tasks, 0.0)
            if (rate := np.where(need > 0, rate, 0.0)).any():
                found.append(Size(tasks, need, rate))
        self._of[record.name] = tuple(found)
        if record.shares:
            self._chosen[record.name] = record.tasks

    def drop(self, name: str) -> None:
        """Forget a job that has gone."""
        self._of.pop(name, None)
        self._chosen.pop(name, None)

    def competing(
        self, table: RoundTable, able: IntArray, records: Sequence[JobRecord], running: Container[str]
    ) -> Sizes | None:
        """The sizes that competing jobs may have; one that runs and may not be stopped keeps its own. None if the rule
        chooses none.

        Args:
            able: positions of the ``records`` in the table.
            running: those that have their turn now.
        """
        if not self._resizes:
            return None
        rows: list[tuple[int, Size]] = []
        held, asked = np.zeros(len(records), np.int64), np.zeros(len(records), np.int64)
        for j, (at, record) in enumerate(zip(able.tolist(), records, strict=True)):
            tasks, choices = self.tasks(record), self._of.get(record.name, ())
            held[j] = tasks if record.name in running else 0
            if not choices or (held[j] and not record.spec.preemptible):
                rate = table.rate[at] if self._aware else (table.rate[at] > 0).astype(np.float64)
                choices = (Size(tasks, table.need[at], rate),)
            asked[j] = len(rows) + max(0, sum(one.tasks <= record.spec.tasks for one in choices) - 1)
            rows += ((j, one) for one in choices)
        return Sizes(
            np.array([j for j, _ in rows]),
            np.array([one.tasks for _, one in rows]),
            np.array([one.need.max() / WHOLE for _, one in rows]),
            np.array([one.rate for _, one in rows]),
            held,
            asked,
        )

    def choose(self, table: RoundTable, able: IntArray, tasks: IntArray) -> None:
        """Let jobs of the table compete for turns with the tasks [J] that were chosen for them."""
        for at, chosen in zip(able.tolist(), tasks.tolist(), strict=True):
            for one in self._of.get(table.names[at], ()):
                if one.tasks == chosen:
                    self._chosen[table.names[at]] = chosen
                    table.need[at], table.rate[at] = one.need, one.rate

    def resize(self, snapshot: Snapshot, actions: Actions, running: Container[str], *, grow: bool) -> None:
        """Resize the jobs that go on with more tasks, or with fewer; who finds no room keeps what it has."""
        for name, tasks in self._chosen.items():
            record = snapshot.jobs[name]
            runs = record.state is JobState.RUNNING and name in running and not record.partner
            if runs and (tasks > record.tasks if grow else tasks < record.tasks):
                actions.resize(name, tasks)


def _steps(spec: JobSpec) -> Iterator[int]:
    """Sizes of an elastic job, ascending: halves and doubles of what it asks for, and both ends of its range."""
    least, most = spec.sizes
    halves = [spec.tasks >> down for down in range(spec.tasks.bit_length()) if spec.tasks % (1 << down) == 0]
    doubles = [spec.tasks << up for up in range(most.bit_length())]
    yield from sorted({least, most, *(one for one in (*halves, *doubles) if least <= one <= most)})
