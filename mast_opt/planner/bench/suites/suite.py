"""A benchmark suite: instances × contestants × limits × seeds, and what is known to go wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mast_opt.planner.bench.suites.instances import Source

OptionValue = str | int | float | bool


@dataclass(frozen=True)
class Contestant:
    """A solver with its settings, under the name that results show."""

    name: str
    solver: str | None = None
    """A backend or heuristic by name; None for a peer and for a program's own methods."""
    formulation: str = "base"
    options: tuple[tuple[str, OptionValue], ...] = ()
    """Options of a backend, by its own names."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of a heuristic that are not at their defaults, by name."""
    iterations: int | None = None
    """Rounds of a heuristic."""
    threads: int | None = None
    """Threads of a solver that has no choice; those of the entry unless given."""
    seeds: tuple[int, ...] | None = None
    """Seeds of a randomised solver among deterministic ones; those of the entry unless given."""
    peer: Path | None = None
    """The adapter of a solver that has an environment of its own (``bench.execution.external_solver``)."""

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that distinguish the contestant, for keys and results."""
        stated = {
            "solver": self.solver,
            "formulation": None if self.formulation == "base" else self.formulation,
            "options": dict(self.options) or None,
            "params": dict(self.params) or None,
            "iterations": self.iterations,
            "peer": None if self.peer is None else self.peer.name,
        }
        return {"name": self.name, **{name: value for name, value in stated.items() if value is not None}}


@dataclass(frozen=True)
class Trial:
    """One run to be made."""

    suite: str
    entry: str
    source: Source
    contestant: Contestant
    time_limit_s: float
    """Time limit of formulating, solving and verifying; reading or generating comes before."""
    gap: float
    seed: int
    threads: int
    reference: Mapping[str, float] = field(default_factory=dict)
    """``best`` and ``bound`` that others have published for the instance, where known."""

    @property
    def label(self) -> str:
        """Name of a benchmark's trial for people, and for ``--filter``."""
        return f"{self.entry}/{self.source.label}/{self.contestant.name}/{self.time_limit_s:g}s/seed{self.seed}"

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that decides a benchmark's trial, as a JSON object."""
        return {
            "suite": self.suite,
            "entry": self.entry,
            "instance": self.source.label,
            "source": self.source.facts,
            "contestant": self.contestant.facts,
            "time_limit_s": self.time_limit_s,
            "gap_asked": self.gap,
            "seed": self.seed,
            "threads": self.threads,
        }


@dataclass(frozen=True)
class KnownIssue:
    """Something that the reader of a result has to know."""

    words: str
    contestant: str | None = None
    """None: about all of them."""
    entry: str | None = None


@dataclass(frozen=True)
class Suite:
    """A suite as its file declares it."""

    name: str
    path: Path
    title: str
    about: str
    trials: tuple[Trial, ...]
    """Trials in the order in which they are run: all contestants on an instance before the next instance."""
    known_issues: tuple[KnownIssue, ...] = ()
    plots: tuple[str, ...] = ()
    """Plots of the report: some of ``mast_opt.planner.bench.reporting.plots.PLOTS``."""
    skipped: tuple[str, ...] = ()
    """Entries left out because their data were not given."""
    absent: tuple[str, ...] = ()
    """Entries and contestants of mast-opt's own suites left out because what they need is not installed."""
