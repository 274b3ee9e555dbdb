"""Schedulers of the literature as policies of the loop: one adapter, and for each its parameters and its rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.policies import preset_rules as rules
from mast_opt.live.policies.round_params import PackingParams, RoundLength
from mast_opt.live.policies.share_rules import ShareRule
from mast_opt.live.policies.shared_rounds import Rounds


@dataclass(frozen=True)
class ThemisParams(RoundLength):
    """Parameters of ``themis``.

    Args:
        fairness: f: the best f of the jobs are left out of the offer.
        round_s: a lease.
    """

    round_s: int = 1200
    reset_s: int = 0
    fairness: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.fairness < 1:
            raise UsageError(f"fairness is {self.fairness}; expected at least 0, below 1")


@dataclass(frozen=True)
class TiresiasParams(RoundLength):
    """Parameters of ``tiresias``.

    Args:
        first_gpu_s: attained GPU-seconds at which a job leaves the first of two queues.
        promote: a job that has waited so many times as long as it ran begins again; 0 for never.
    """

    reset_s: int = 0
    first_gpu_s: float = 8 * 3600.0
    promote: float = 8.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.first_gpu_s > 0 or not self.promote >= 0:
            raise UsageError(
                f"first_gpu_s and promote are {self.first_gpu_s} and {self.promote}; expected > 0 and >= 0"
            )


@dataclass(frozen=True)
class GoodputParams(RoundLength):
    """Parameters of ``pollux`` and ``sia``.

    Args:
        factor: on the goodput of a job that would be moved or stopped.
    """

    reset_s: int = 360
    factor: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.factor <= 1:
            raise UsageError(f"factor is {self.factor}; expected above 0, at most 1")


@dataclass(frozen=True)
class ServiceParams(RoundLength):
    """Parameters of ``singularity``. Tiers 0, 1 and the others are premium, standard and basic.

    Args:
        premium: part of its demand that tier 0 is guaranteed.
        standard: of tier 1.
    """

    premium: float = 0.95
    standard: float = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("premium", "standard"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} is {getattr(self, name)}; expected 0 to 1")


SIA_POWER, SIA_WAITING = -0.5, 1.1
WEIGHTS = (3.0, 2.0, 1.0)
"""Weights of a GPU for tiers 0, 1 and others."""


@dataclass(frozen=True)
class Preset:
    """A scheduler of the literature."""

    params_type: type[Any]
    rule: Callable[[Any], ShareRule]
    """Function that makes the rule from its parameters."""
    by_user: bool = False
    """Whether the rule looks at whose the jobs are."""


PRESETS: Mapping[str, Preset] = {
    "throughput": Preset(PackingParams, lambda params: rules.Objective("throughput")),
    "hierarchical": Preset(PackingParams, lambda params: rules.Objective("hierarchical"), by_user=True),
    "strategy-proof": Preset(RoundLength, lambda params: rules.Objective("strategy-proof")),
    "themis": Preset(ThemisParams, lambda params: rules.Themis(params.fairness)),
    "tiresias": Preset(TiresiasParams, lambda params: rules.Tiresias((params.first_gpu_s,), params.promote)),
    "gandiva": Preset(PackingParams, lambda params: rules.TimeSlices()),
    "gandiva-fair": Preset(RoundLength, lambda params: rules.Trades(), by_user=True),
    "pollux": Preset(GoodputParams, lambda params: rules.Goodput(1.0, 0.0, params.factor, typed=False)),
    "sia": Preset(GoodputParams, lambda params: rules.Goodput(SIA_POWER, SIA_WAITING, params.factor, typed=True)),
    "singularity": Preset(
        ServiceParams, lambda params: rules.ServiceLevels((params.premium, params.standard), WEIGHTS)
    ),
}
"""Policy → what it is."""


def preset_policy(name: str, params: RoundLength, speeds: Speeds) -> Rounds:
    """The policy of the loop for a preset, which is a scheduler of the literature."""
    found = PRESETS[name]
    return Rounds(found.rule(params), speeds, params, name, by_user=found.by_user)
