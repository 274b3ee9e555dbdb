"""Overrides of an instance for one solve: other weights, order, limits or numbers of copies. The plan records them."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import SolveParams
from mast_opt.core.wording import counted, plain
from mast_opt.problems.kind.limits import limit_value, plain_number
from mast_opt.problems.kind.problem import ProblemT

NONE = "none"
"""Word that stands for no limit."""
NAMED, NAMED_COPIES = 3, 10
"""Most terms with the weight 0, and most datasets with the same reason for a single copy, that are named in a sentence;
the plan names all."""


def stated_limit(name: str, value: object) -> Fraction | None:
    """The value of a limit as it is stated. Raises UsageError for what is neither a number of at least 0 nor none."""
    if value is None or value == NONE:
        return None
    found = limit_value(value)
    if found is None:
        raise UsageError(f"the limit {name} is {value}; expected a number of at least 0, or {NONE}")
    return found


@dataclass(frozen=True)
class Overrides:
    """Statements of a solve that differ from its instance; empty unless asked for."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """Term → weight, for the terms whose weight is another one."""
    order: tuple[str, ...] | None = None
    """The terms that are minimised one after another; empty for a weighted sum, None for what the instance says."""
    limits: Mapping[str, Fraction | None] = field(default_factory=dict)
    """Name → the most that a whole plan may have of it; None for no limit."""
    peak_levels: Mapping[int, float] = field(default_factory=dict)
    """Tier → the ratio above which ``peak`` counts, for the tiers whose level is another one."""
    copies_min: Mapping[str, int] = field(default_factory=dict)
    """Dataset → the fewest replicas, for the datasets of which there have to be more."""
    single_copies: Mapping[str, str] = field(default_factory=dict)
    """Dataset of which no second copy is asked for → the reason."""
    replicas: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Dataset → the regions that have to hold it, where replicas are chosen before the solve."""
    sizes_tb: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Dataset → its size, for words on single copies; not written."""
    note: str = field(default="", compare=False)
    """Words on what counts besides the name of the goal; not written."""

    def __bool__(self) -> bool:
        tables = self.weights, self.limits, self.peak_levels, self.copies_min, self.replicas
        return any(tables) or self.order is not None

    def applied_to(self, problem: ProblemT) -> ProblemT:
        """The instance with these overrides instead of its own.

        Raises:
            UsageError: a name that the problem does not have, a value out of range, or weights that count for nothing.
        """
        if not self:
            return problem
        changed: Any = problem.with_limits(self.limits).with_copies_min(self.copies_min).with_replicas(self.replicas)
        if self.peak_levels:
            levels = {**changed.objective.peak_levels, **self.peak_levels}
            changed = replace(changed, objective=replace(changed.objective, peak_levels=levels))
        if self.weights or self.order is not None:
            changed = changed.with_objective(self.weights, self.order)
        if self.weights and changed.objective.lexicographic:
            raise UsageError(
                f"a weight of {next(iter(self.weights))} counts for nothing where terms are minimised one after "
                f"another ({', '.join(changed.objective.order)}); leave it out, or ask for a weighted sum "
                "(--order weighted, or order=() in Python)"
            )
        found: ProblemT = changed
        return found

    def followed_by(self, later: "Overrides") -> "Overrides":
        """These overrides, where the later ones say nothing else."""
        order = self.order if later.order is None else later.order
        levels, copies = {**self.peak_levels, **later.peak_levels}, {**self.copies_min, **later.copies_min}
        limits = {**self.limits, **later.limits}
        single, replicas = {**self.single_copies, **later.single_copies}, {**self.replicas, **later.replicas}
        words = {**self.sizes_tb, **later.sizes_tb}, later.note or self.note
        return Overrides({**self.weights, **later.weights}, order, limits, levels, copies, single, replicas, *words)

    def __str__(self) -> str:
        none = [term for term, weight in self.weights.items() if not weight]
        named = [term for term, weight in self.weights.items() if weight] + (none if len(none) <= NAMED else [])
        parts = [f"weight {term} = {plain(self.weights[term])}" for term in named]
        parts += [f"weight 0 for {len(none)} terms"] if len(none) > NAMED else []
        if self.order is not None:
            parts.append(f"order {', '.join(self.order)}" if self.order else "a weighted sum")
        parts += [f"peak level {plain(level)} in tier {tier}" for tier, level in self.peak_levels.items()]
        parts += [f"{name} ≤ {NONE if most is None else plain_number(most)}" for name, most in self.limits.items()]
        several = Counter(self.copies_min.values())
        parts += [f"at least {copies} copies of {counted(n, 'dataset')}" for copies, n in sorted(several.items())]
        for reason, n in Counter(self.single_copies.values()).items():
            sizes = {name: self.sizes_tb.get(name, 0.0) for name, why in self.single_copies.items() if why == reason}
            names = sorted(sizes, key=lambda name: -sizes[name])[:NAMED_COPIES]
            words = ", ".join(names) + (f" and {n - NAMED_COPIES:,} more" if n > NAMED_COPIES else "")
            size = f"{plain(sum(sizes.values()))} TB; " if self.sizes_tb else ""
            parts.append(f"one copy of {words} ({size}{reason})")
        if self.replicas:
            parts.append(f"replicas of {counted(len(self.replicas), 'dataset')} as chosen")
        return ", ".join(parts)

    def fields(self) -> dict[str, Any]:
        """Fields of the overrides in ``plan.toml`` and the JSON output; empty where nothing is overridden."""
        order = None if self.order is None else list(self.order)
        weights = {term: float(weight) for term, weight in self.weights.items()}
        limits = {name: NONE if most is None else plain_number(most) for name, most in self.limits.items()}
        levels = {str(tier): float(level) for tier, level in self.peak_levels.items()}
        stated: dict[str, dict[str, Any]] = {"weights": weights, "limits": limits, "peak_levels": levels}
        stated |= {"copies_min": dict(self.copies_min), "single_copies": dict(self.single_copies)}
        stated["replicas"] = {name: list(regions) for name, regions in self.replicas.items()}
        ordered = {} if order is None else {"order": order}
        return {**ordered, **{name: table for name, table in stated.items() if table}}


NO_OVERRIDES = Overrides()
Goal = Callable[[Any], Overrides]
"""Problem → the objective that a goal stands for. Raises UsageError where the goal means nothing for the instance."""


@dataclass(frozen=True)
class Secured:
    """Replicas that are chosen by what the loss of a region leaves."""

    problem: Any
    """The instance that has to have these replicas, on top of its own rules."""
    plan: Any | None = None
    """A plan of it; None where no replicas are chosen."""
    least_gpus: float | None = None
    """Proven: GPUs missing after the worst loss of a region, at least, wherever the replicas are."""
    overrides: Overrides = NO_OVERRIDES
    """Statements that a plan of it records, on its copies."""


Securing = Callable[[Any, SolveParams | None], Secured]
"""(problem, limits) → replicas that are found within them; without limits none is chosen, only how many there are."""


def counting(*terms: str) -> Goal:
    """A goal that counts only these terms, by the instance's weights."""
    return lambda problem: Overrides({t: w * (t in terms) for t, w in problem.objective.weights.items()}, ())


def as_stated(problem: object) -> Overrides:
    """The goal that the instance itself states."""
    return Overrides()
