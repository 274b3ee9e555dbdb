"""Speeds of kinds of work on GPU types: how fast a job does its work, alone or while another job shares its GPUs.

Rates are whole millionths of the speed on the job's reference type, the fastest one for its number of tasks, so that
work is counted in integers: time in ms × rate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobRecord

REFERENCE = 1_000_000
"""Rate at the reference speed."""


@dataclass(frozen=True, eq=False)
class Speeds:
    """Measured speeds, in millionths of a step a second. A job whose spec names no model runs everywhere at its
    reference speed, or in proportion to its tasks where it has others than its spec asks for."""

    alone: Mapping[tuple[str, str, int], int] = field(default_factory=dict)
    """(model, GPU type, tasks) → speed; where there is none, the job cannot run."""
    packed: Mapping[tuple[str, str, str, int], int] = field(default_factory=dict)
    """(model, other model, GPU type, tasks) → speed of the first while the other runs on the same GPUs."""

    @cached_property
    def runs(self) -> Mapping[tuple[str, int], Mapping[str, int]]:
        """(model, tasks) → GPU types on which such jobs run, and their speed there."""
        found: dict[tuple[str, int], dict[str, int]] = {}
        for (model, kind, tasks), speed in self.alone.items():
            if speed:
                found.setdefault((model, tasks), {})[kind] = speed
        return found

    @cached_property
    def _references(self) -> Mapping[tuple[str, int], int]:
        """(model, tasks) → the reference speed, that of the fastest GPU type."""
        return {key: max(types.values()) for key, types in self.runs.items()}

    def rate(self, spec: JobSpec, gpu_type: str, other: JobSpec | None = None, tasks: int | None = None) -> int:
        """Millionths of its reference speed at which a job runs on a GPU type; 0 where it cannot.

        Args:
            other: what runs on the same GPUs, with as many tasks.
            tasks: that it has; None for those of its spec, to which the reference speed belongs.
        """
        tasks = spec.tasks if tasks is None or spec.parts else tasks
        if not spec.model:
            return (2 * REFERENCE * tasks + spec.tasks) // (2 * spec.tasks) if other is None else 0
        key = spec.model, gpu_type, tasks
        speed = self.alone.get(key, 0)
        if other is not None:
            speed = self.packed.get((spec.model, other.model, gpu_type, spec.tasks), 0)
        reference = self._references.get((spec.model, spec.tasks), 0)
        return max(1, (2 * REFERENCE * speed + reference) // (2 * reference)) if speed else 0

    def done(self, record: JobRecord, gpu_type: str, now_ms: int) -> int:
        """Work of a job so far, in ms × ``REFERENCE``: what is saved, and, while it runs alone on that GPU type, what
        its attempt has done."""
        saved = record.work_ms * REFERENCE
        if record.state is not JobState.RUNNING:
            return saved
        return saved + sum(
            (end_ms - begin_ms) * self.rate(record.spec, gpu_type, tasks=tasks)
            for begin_ms, end_ms, tasks in record.sizes_since(now_ms)
        )

    def duration_ms(self, model: str, tasks: int, steps: int) -> int:
        """Duration of so many training steps at the reference speed, rounded up to whole ms."""
        return -(-steps * 1_000_000_000 // self._references[model, tasks])
