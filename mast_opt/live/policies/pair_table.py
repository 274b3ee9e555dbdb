"""Pairs of jobs that take turns in rounds on the same GPUs, as columns: how fast each of the two is there, and what
time the pair is to have and has had."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.speeds import REFERENCE, Speeds
from mast_opt.problems.job_placement.units import WHOLE

Names = tuple[str, str]
LEAST_SHARE = 1e-6
"""Share of the time that is rounding of the solver's."""


class PairTable:
    """Pairs of the rounds. P counts pairs, G types.

    Args:
        types: how many GPU types there are.
    """

    def __init__(self, types: int) -> None:
        self.names: list[Names] = []
        self.at: dict[Names, int] = {}
        """Pair → its position."""
        self.jobs: IntArray = np.zeros((0, 2), np.int64)
        """[P, 2] positions of its jobs in the table of jobs."""
        self.share: FloatArray = np.zeros((0, types))
        """[P, G] part of the time that it is to have."""
        self.received: FloatArray = np.zeros((0, types))
        """[P, G] ms that it has had since shares were computed, and half a round."""
        self.deficit: FloatArray = np.zeros((0, types))
        """[P, G] ms that it was to have and has not had, up to then."""

    def __len__(self) -> int:
        return len(self.names)

    def settle(self, elapsed_ms: int, half_ms: float) -> None:
        """Prepare the pairs for shares of the time that are computed again, after that much time."""
        self.deficit += self.share * elapsed_ms - (self.received - half_ms)

    def keep(self, position: Mapping[str, int]) -> None:
        """Drop the pairs of jobs that have none of these positions; the others take them."""
        kept = np.array([pair[0] in position and pair[1] in position for pair in self.names], np.bool_)
        self.names = [pair for pair, stays in zip(self.names, kept.tolist(), strict=True) if stays]
        self.at = {pair: at for at, pair in enumerate(self.names)}
        self.jobs = np.array([[position[one] for one in pair] for pair in self.names], np.int64).reshape(-1, 2)
        self.share, self.received, self.deficit = self.share[kept], self.received[kept], self.deficit[kept]

    def replace(self, names: list[Names], jobs: IntArray, share: FloatArray, half_ms: float) -> None:
        """Replace the pairs of jobs that share GPUs; those that were there before are still owed what they were. Shares
        that are rounding are 0.
        """
        share = np.where(share > LEAST_SHARE, share, 0.0)
        deficit = np.zeros(share.shape)
        for at, pair in enumerate(names):
            if pair in self.at:
                deficit[at] = self.deficit[self.at[pair]]
        self.names, self.jobs, self.share, self.deficit = names, jobs, share, deficit
        self.at = {pair: at for at, pair in enumerate(names)}
        self.received = np.full(share.shape, half_ms)


def candidates(
    records: Sequence[JobRecord], may_run: BoolArray, types: Sequence[str], speeds: Speeds
) -> tuple[IntArray, FloatArray]:
    """Pairs that do more work on the same GPUs than if they took turns there: Σ of rates over rates alone above 1.

    Jobs that may be stopped are paired, of equally many tasks, whole GPUs, and no cores and memory.

    Args:
        records: of the jobs.
        may_run: [J, R] whether a job may run in a region.

    Returns:
        [P, 2] positions of jobs, and [P, 2, G] the rate of each on each type, in parts of its reference speed; 0 for
        both where the pair is worth no more than turns.
    """
    together = may_run.astype(np.int64) @ may_run.T.astype(np.int64) > 0
    known: dict[tuple[str, int], JobRecord] = {}
    kind_of = np.full(len(records), -1)
    for at, record in enumerate(records):
        if _packs(record, types):
            key = record.spec.model, record.spec.tasks
            known.setdefault(key, record)
            kind_of[at] = list(known).index(key)
    worth = _rates(list(known.values()), types, speeds)
    one, other = np.triu_indices(len(records), 1)
    both = (kind_of[one] >= 0) & (kind_of[other] >= 0) & together[one, other]
    one, other = one[both], other[both]
    rates = worth[kind_of[one], kind_of[other]]
    useful = (rates > 0).any(axis=(1, 2))
    return np.stack([one, other], axis=1)[useful], rates[useful]


def _packs(record: JobRecord, types: Sequence[str]) -> bool:
    """Whether a job may share its GPUs in turns: its model is known, it needs one whole GPU a task, no
    cores or memory.
    """
    spec = record.spec
    needs = {spec.mgpu} if spec.gpu_types is None else {spec.gpu_types.get(kind, WHOLE) for kind in types}
    return bool(spec.model) and spec.preemptible and needs == {WHOLE} and not spec.cpu_mcores and not spec.memory_mib


def _rates(kinds: Sequence[JobRecord], types: Sequence[str], speeds: Speeds) -> FloatArray:
    """[C, C, 2, G] rates of jobs of two kinds on the same GPUs, where that is worth more than turns."""
    found = np.zeros((len(kinds), len(kinds), 2, len(types)))
    for a, one in enumerate(kinds):
        for b, other in enumerate(kinds):
            if one.spec.tasks != other.spec.tasks:
                continue
            for g, kind in enumerate(types):
                packed = speeds.rate(one.spec, kind, other.spec), speeds.rate(other.spec, kind, one.spec)
                alone = speeds.rate(one.spec, kind), speeds.rate(other.spec, kind)
                if min(packed) > 0 and min(alone) > 0 and packed[0] / alone[0] + packed[1] / alone[1] > 1:
                    found[a, b, :, g] = packed
    return found / REFERENCE


class SharedPace:
    """Work that jobs have not done because they had their GPUs in common with another one, in this attempt.

    Args:
        speeds: alone and on the same GPUs.
    """

    def __init__(self, speeds: Speeds) -> None:
        self._speeds = speeds
        self._now_ms = 0
        self._sharing: list[tuple[JobRecord, JobRecord, str]] = []
        self._missed: dict[str, tuple[int, int]] = {}
        """Job → attempt, ms × millionths of the reference speed."""

    def note(self, now_ms: int, sharing: Iterator[tuple[JobRecord, JobRecord, str]]) -> None:
        """Note the pairs that share GPUs from now on, with the type. Until now, it was those of the last call."""
        elapsed = now_ms - self._now_ms
        for one, other, kind in self._sharing:
            for job, mate in ((one, other), (other, one)):
                slower = self._speeds.rate(job.spec, kind) - self._speeds.rate(job.spec, kind, mate.spec)
                self._missed[job.name] = job.attempt, self.missed(job) + elapsed * slower
        self._now_ms, self._sharing = now_ms, list(sharing)

    def missed(self, record: JobRecord) -> int:
        """Work that the job missed by sharing, in ms × millionths of the reference speed."""
        attempt, work = self._missed.get(record.name, (0, 0))
        return work if attempt == record.attempt else 0
