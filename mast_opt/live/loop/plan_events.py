"""Events about plans of slow paths: what was asked, what came of it, and what is done about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mast_opt.live.loop.event import Event

COPY, DROP, MOVE = "copy", "drop", "move"
"""Kinds of steps of a plan: make a replica, delete one, or move a server to another cluster."""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step of an adopted plan."""

    does: str
    """``copy``, ``drop`` or ``move``."""
    name: str
    """The dataset or server."""
    target: str
    """The region of the replica, or the cluster that the server becomes part of."""
    source: str = ""
    """Region from which a replica is copied."""
    first_wave: int = 0
    """It begins when every step whose last wave lies before has been taken."""
    last_wave: int = 0
    keep: int = 1
    """Number of whole replicas that a deletion has to leave."""


@dataclass(frozen=True, slots=True)
class SolveAsked(Event):
    """A slow path has asked for a plan."""

    path: str
    checksum: str
    """Checksum of the instance as it was then."""


@dataclass(frozen=True, slots=True)
class SolveEnded(Event):
    """A solve has come to an end."""

    path: str
    checksum: str
    status: str
    plan: str = ""
    """Place of the plan; empty if there is none."""
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class PlanAdopted(Event):
    """Event of a plan that is carried out from now on."""

    path: str
    plan: str
    dropped: tuple[str, ...] = ()
    """Parts that no longer fit, in words."""
    steps: tuple[PlanStep, ...] = ()
    """Steps to be taken, wave by wave."""
    ratios: Mapping[int, float] | None = None
    """Ratios of a plan of data: tier → the largest demand over supply of a region and GPU type that is planned for work
    of this tier and more important ones."""


@dataclass(frozen=True, slots=True)
class StepDropped(Event):
    """A step of an adopted plan is not taken, as it no longer fits."""

    path: str
    does: str
    name: str
    target: str
    why: str
    """Reason in words."""
