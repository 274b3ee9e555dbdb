"""Instance header, the part of ``instance.toml`` next to the tables: the name, the rules and the objective."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real

from mast_opt.core.errors import Fault, UsageError
from mast_opt.core.sense import Sense

MOST_WEIGHT = 1e18
"""Largest weight of a term or a tier. Products with amounts stay finite; solvers lose precision long before."""


@dataclass(frozen=True)
class Policy:
    """An objective that has a name instead of weighted terms."""

    sense: Sense
    mechanisms: tuple[str, ...] = ()
    """Mechanisms that may be put on top of it; none unless one is named."""
    inside: tuple[str, ...] = ()
    """Policies that may rule inside of groups, the default first; empty where groups have none."""


@dataclass(frozen=True)
class Term:
    """Term of the objective of a kind of problem."""

    weight: float
    """Default weight."""
    unit: str
    """Unit of its value, such as "USD a month" or "share of GPUs"."""
    later: bool = False
    """True if it was added to the format later: checksums and certificates do not mention it where it has no weight, so
    that those from before still hold."""
    unstated: bool = False
    """True if files do not mention it either where it has no weight."""


@dataclass(frozen=True)
class Objective:
    """Objective to minimise: a weighted sum of terms, or the terms of ``order`` one after another; or a ``policy``,
    which has a sense of its own and no terms.

    Raises:
        UsageError: a weight is not a number from 0 to ``MOST_WEIGHT``, or a name is not of its type.
    """

    weights: Mapping[str, float]
    """A weight for every term of the problem, defaults filled in."""
    tier_weights: Mapping[int, float] = field(default_factory=dict)
    """Weight of a tier; tiers that are not listed take the problem's default."""
    order: tuple[str, ...] = ()
    """Non-empty means lexicographic: the first term is minimised first, and so on."""
    policy: str = ""
    """One of the policies of the kind; empty for a kind that has terms."""
    mechanism: str = ""
    """Mechanism on top of the policy; empty for none."""
    inside: str = ""
    """The policy inside of groups; empty where the policy has none."""
    peak_levels: Mapping[int, float] = field(default_factory=dict)
    """Ratio of demand to supply above which the term ``peak`` counts, by tier; for kinds with that term."""

    def __post_init__(self) -> None:
        tier = "tier, a whole number"
        for name, key, what in (
            ("weights", str, "name of a term"),
            ("tier_weights", int, tier),
            ("peak_levels", int, tier),
        ):
            found = getattr(self, name)
            if not isinstance(found, Mapping):
                raise UsageError(f"objective.{name} is {found!r}; expected a mapping from the {what}, to its number")
            for of, weight in found.items():
                if not isinstance(of, key) or isinstance(of, bool):
                    raise UsageError(f"objective.{name} has the key {of!r}; expected the {what}")
                if not sound_weight(weight):
                    raise UsageError(
                        f"objective.{name}[{of!r}] is {weight!r}; expected a number from 0 to {MOST_WEIGHT:g}"
                    )
        if not isinstance(self.order, tuple) or not all(isinstance(term, str) for term in self.order):
            raise UsageError(f"objective.order is {self.order!r}; expected a tuple of names of terms")
        if len(set(self.order)) != len(self.order):
            raise UsageError(f"objective.order is {', '.join(self.order)}; expected each term once")
        for name in ("policy", "mechanism", "inside"):
            if not isinstance(getattr(self, name), str):
                raise UsageError(f"objective.{name} is {getattr(self, name)!r}; expected a text")

    @property
    def lexicographic(self) -> bool:
        """Whether the objective's terms are minimised one after another."""
        return bool(self.order)


def term_faults(objective: object, terms: Collection[str]) -> Iterator[Fault]:
    """Faults of an objective's names: ``weights`` has every term of the problem and no other, ``order`` only terms."""
    if not isinstance(objective, Objective):
        return
    known = ", ".join(terms)
    for where, names in (("objective.weights", tuple(objective.weights)), ("objective.order", objective.order)):
        unknown = [name for name in names if name not in terms]
        if unknown:
            yield Fault(where, f"some of the terms {known}", value=", ".join(unknown))
    missing = [term for term in terms if term not in objective.weights]
    if missing:
        yield Fault(
            "objective.weights", f"a weight for each of the terms {known}", value=f"none for {', '.join(missing)}"
        )


def policy_faults(objective: Objective, policies: Mapping[str, Policy]) -> Iterator[Fault]:
    """Faults of an objective that is a policy: names that the kind does not have, or that do not go together."""
    policy = policies.get(objective.policy)
    if policy is None:
        yield Fault("objective.policy", f"one of: {', '.join(policies)}", value=objective.policy)
        return
    if objective.mechanism and objective.mechanism not in policy.mechanisms:
        known = f"none, or one of: {', '.join(policy.mechanisms)}" if policy.mechanisms else "none with this policy"
        yield Fault("objective.mechanism", known, value=objective.mechanism)
    if objective.inside not in (policy.inside or ("",)):
        known = f"one of: {', '.join(policy.inside)}" if policy.inside else "none with this policy"
        yield Fault("objective.inside", known, value=objective.inside)


def sound_weight(weight: object) -> bool:
    """Whether a term's weight is a finite number from 0 to ``MOST_WEIGHT``."""
    if not isinstance(weight, Real) or isinstance(weight, bool):
        return False
    try:
        return 0 <= float(weight) <= MOST_WEIGHT
    except OverflowError:
        return False


@dataclass(frozen=True)
class Rule:
    """A setting of ``[rules]`` in ``instance.toml``: one of the choices, or a positive number."""

    name: str
    default: str | Fraction
    choices: tuple[str, ...] = ()
    """Empty for a positive number."""
    help: str = ""


@dataclass(frozen=True)
class Header:
    """The content of ``instance.toml``, validated."""

    kind: str
    name: str
    objective: Objective
    rules: Mapping[str, str | Fraction]
    """A value for every rule of the problem, defaults filled in."""
    provenance: str = ""
    limits: Mapping[str, Fraction] = field(default_factory=dict)
    """The most that a whole plan may have of something, by name; what is not named has no limit."""
    unstated: frozenset[str] = field(default=frozenset(), compare=False)
    """Terms for which it states no weight."""
