"""Classes of identical servers in server assignment: no rule and no cost differs between them, so they are counted."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ServerClasses:
    """A partition of the servers into E classes; arrays are read-only.

    What the members of a class have in common is read off its first member: the types of all classes are
    ``problem.server_type[classes.first]``.
    """

    of: Ints
    """[S] the class of each server."""
    size: Ints
    """[E] ≥ 1"""
    member: Ints
    """[S] the servers, class after class, ascending within each."""

    def __post_init__(self) -> None:
        for array in (self.of, self.size, self.member):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.size)

    @cached_property
    def start(self) -> Ints:
        """[E + 1] the members of class e are ``member[start[e]:start[e + 1]]``."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.size)])

    @cached_property
    def first(self) -> Ints:
        """[E] the first member of each class."""
        return self.member[self.start[:-1]]

    def members(self, at: int) -> Ints:
        """The servers of one class, ascending."""
        return self.member[self.start[at] : self.start[at + 1]]


def partition(*keys: NDArray[Any]) -> ServerClasses:
    """The servers that agree in every key, in the order of the keys; keys are [S] whole numbers ≥ 0, or bools.

    Raises:
        ValueError: the keys have too many combinations for 63 bits.
    """
    code = np.zeros(len(keys[0]), np.int64)
    room = 1
    for key in keys:
        width = int(key.max(initial=0)) + 1
        room *= width
        if room > np.iinfo(np.int64).max:
            raise ValueError("the keys have more combinations than an int64 can number")
        code = code * width + key
    _, of, size = np.unique(code, return_inverse=True, return_counts=True)
    return ServerClasses(of.reshape(-1), size, np.argsort(of.reshape(-1), kind="stable"))
