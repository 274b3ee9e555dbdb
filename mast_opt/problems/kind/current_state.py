"""Current state of an instance, for every kind of problem: how much of it is known, and which limits it breaks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """Share of something that is known to run somewhere today."""

    what: str
    """``workloads``, ``GPUs``, ``cores``, …"""
    known: float
    of: float

    @property
    def share(self) -> float:
        """The known part of the present state, from 0 to 1; 1 of nothing."""
        return self.known / self.of if self.of else 1.0


@dataclass(frozen=True)
class BrokenLimit:
    """A limit that the present state breaks."""

    limit: str
    """Its name, as a verifier calls it (``storage``, ``run``, …)."""
    index: tuple[str, ...]
    """Labels that say where."""
    message: str
    """Description in the words of the domain, with amounts."""


@dataclass(frozen=True)
class CurrentState:
    """The present state of an instance, as far as its tables state it."""

    known: tuple[Known, ...]
    broken: tuple[BrokenLimit, ...]
    notes: tuple[str, ...] = ()
    """Assumptions made where the tables leave it open."""

    @property
    def complete(self) -> bool:
        """Whether all of the present state is known, so that figures of today compare with those of a plan."""
        return all(one.known >= one.of for one in self.known)
