"""Family of generated instances: what makes one, and which sizes it takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Generic, TypeVar

import numpy as np

from mast_opt.core.errors import UsageError

ProblemT = TypeVar("ProblemT")


@dataclass(frozen=True)
class Family(Generic[ProblemT]):
    """A family of generated instances."""

    make: Callable[..., ProblemT]
    """make(rng, **sizes) → problem; every size is given and in range."""
    sizes: Mapping[str, int]
    """The sizes it takes, with their defaults."""
    help: str
    most: Mapping[str, int] = field(default_factory=dict)
    """The largest value of a size, where there is one."""
    least: Mapping[str, int] = field(default_factory=dict)
    """The smallest value of a size, where it is not 1."""

    def generate(self, rng: np.random.Generator, **sizes: int) -> ProblemT:
        """A generated instance of the family; the defaults stand for sizes that are not given. Raises UsageError for
        one out of range.
        """
        for name, size in sizes.items():
            if not isinstance(size, Integral) or isinstance(size, bool):
                raise UsageError(f"{name} is {size!r}; expected a whole number")
            if size < self.least.get(name, 1):
                raise UsageError(f"{name} is {size}; expected at least {self.least.get(name, 1)}")
            if size > self.most.get(name, size):
                raise UsageError(f"{name} is {size}; expected at most {self.most[name]}")
        return self.make(rng, **{**self.sizes, **sizes})
