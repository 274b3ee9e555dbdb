"""How many examples a property test draws."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

ENOUGH = 25
"""Examples that are drawn on every run, if a test asks for so many."""


def examples(count: int) -> settings:
    """Settings of a property test with that many examples; folders and generators may be shared by them.

    Where examples are the same on every run (the first tier), half of them: the others would be drawn again and again.
    ``make.py test --all`` and the nightly run draw all of them, at random.
    """
    quiet = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    phases = set(Phase) - {Phase.explain}  # it costs minutes where a failure depends on many draws
    drawn = max(min(count, ENOUGH), count // 2) if settings().derandomize else count
    return settings(max_examples=drawn, deadline=None, suppress_health_check=quiet, phases=phases)
