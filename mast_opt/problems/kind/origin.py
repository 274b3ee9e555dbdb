"""Origin of a plan: the instance that it was made for, and what its solve was asked to override."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from mast_opt.core.arrays import OTHER_INSTANCE, labels_of
from mast_opt.core.errors import Fault, PlanError
from mast_opt.problems.kind.overrides import NO_OVERRIDES, Overrides
from mast_opt.problems.kind.problem import PlanT, Problem, ProblemT

STATEMENTS = frozenset({"name", "provenance", "objective", "limits", "may_refuse"})
"""Fields of a problem by which a plan is judged, or which say nothing of it. All others are data."""
JUDGING = frozenset({"copies_min", "pinned"})
"""Columns by which a plan is judged."""
CONTENT = "_content"


def content(problem: Problem[Any]) -> bytes:
    """Digest of labels and data of an instance, in their order; computed once for each problem object."""
    found: bytes | None = problem.__dict__.get(CONTENT)
    if found is None:
        digest = blake2b(digest_size=16)
        for part in _parts(problem):
            digest.update(part)
        found = problem.__dict__[CONTENT] = digest.digest()
    return found


def _parts(owner: object) -> Iterator[bytes]:
    """Bytes of an instance, each part with what tells it from its neighbours."""
    if isinstance(owner, np.ndarray):
        yield f"{owner.dtype}{owner.shape}".encode()
        yield np.ascontiguousarray(owner).tobytes()
    elif isinstance(owner, tuple) and owner and isinstance(owner[0], str):
        yield "\0".join((str(len(owner)), *owner)).encode("utf-8", "surrogatepass")
    elif is_dataclass(owner):
        for item in fields(owner):
            if item.name not in (STATEMENTS if isinstance(owner, Problem) else JUDGING):
                yield f"\0{item.name}\0".encode()
                yield from _parts(getattr(owner, item.name))
    else:
        yield repr(owner).encode("utf-8", "surrogatepass")


def made_for(problem: Problem[Any], plan: PlanT, overrides: Overrides = NO_OVERRIDES) -> PlanT:
    """A plan as one of this instance; as it is where a kind's plans cannot know theirs."""
    mark: Callable[[Problem[Any], Overrides], PlanT] | None = getattr(plan, "made_for", None)
    return plan if mark is None else mark(problem, overrides)


@dataclass(frozen=True, eq=False)
class Origin:
    """The instance of a plan, before the overrides of its solve. A pickled one keeps the digest instead."""

    problem: Problem[Any] | None
    overrides: Overrides = NO_OVERRIDES

    @cached_property
    def _content(self) -> bytes:
        assert self.problem is not None
        return content(self.problem)

    @cached_property
    def _statements(self) -> tuple[object, ...]:
        return _statements(self.problem)

    def __getstate__(self) -> Mapping[str, Any]:
        kept = {"overrides": self.overrides, "_content": self._content, "_statements": self._statements}
        return {"problem": None, **kept}

    def fits(self, problem: Problem[Any]) -> bool:
        """Whether an instance has the labels and data of the plan's."""
        return problem is self.problem or content(problem) == self._content

    def check(self, problem: Problem[Any]) -> None:
        """Raises PlanError for an instance with other labels or data than the plan's."""
        if not self.fits(problem):
            raise PlanError([self._difference(problem)], OTHER_INSTANCE)

    def _difference(self, problem: Problem[Any]) -> Fault:
        """The first difference between the plan's instance and another one."""
        theirs = {} if self.problem is None else labels_of(self.problem)
        for axis, here in labels_of(problem).items():
            there = theirs.get(axis, here)
            if there != here:
                at = next((at for at, pair in enumerate(zip(there, here)) if len(set(pair)) > 1), None)
                at = min(len(there), len(here)) if at is None else at
                said, found = (labels[at] if at < len(labels) else None for labels in (there, here))
                return Fault(f"{axis}[{at}]", f"{said!r}, as in the plan's instance", value=found)
        for item in fields(problem) if self.problem is not None else ():  # type: ignore[arg-type]
            one, other = (getattr(owner, item.name) for owner in (self.problem, problem))
            if item.name not in STATEMENTS and b"".join(_parts(one)) != b"".join(_parts(other)):
                return Fault(item.name, "the data that the plan was made for", value="other data")
        return Fault("plan", "one of this instance", value="a plan of an instance with other labels or data")

    def judge(self, problem: ProblemT) -> ProblemT:
        """The problem with the overrides of the plan's solve, where it states what the plan's instance states.

        A problem with another objective or other limits stays as it is: the caller asks by those.
        """
        return self.overrides.applied_to(problem) if _statements(problem) == self._statements else problem


def _statements(problem: Problem[Any] | None) -> tuple[object, ...]:
    copies = getattr(getattr(problem, "datasets", None), "copies_min", None)
    return (
        getattr(problem, "objective", None),
        dict(getattr(problem, "limits", {})),
        None if copies is None else copies.tolist(),
    )
