"""Equal servers by the number of their free GPUs: the fullest that hold a job are found without a look at the others.

``bits[f]`` is the set of servers with f free GPUs, 32 to a word; ``tops[f]`` has a bit for each word of it that is not
0. Among servers with the same number, the first one counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import kernel

Ints = NDArray[np.int64]
Small = NDArray[np.int32]

WORD = 32
_LOWEST = np.zeros(WORD, np.int64)
for _bit in range(WORD):
    _LOWEST[((1 << _bit) * 0x077CB531 & 0xFFFFFFFF) >> 27] = _bit


@by_reference
class Servers(NamedTuple):
    """Equal servers, by the number of their free GPUs."""

    bits: Ints
    """[free GPUs, word]"""
    tops: Ints
    """[free GPUs, word of words]"""
    counts: Ints
    """[free GPUs]: how many servers have that many."""
    free: Ints
    """Free GPUs of each server, [server]."""


def empty_servers(number: int, gpus: int) -> Servers:
    """Servers that hold nothing yet."""
    words = -(-number // WORD)
    bits, tops = np.zeros((gpus + 1, words), np.int64), np.zeros((gpus + 1, -(-words // WORD)), np.int64)
    for row, size in ((bits[gpus], number), (tops[gpus], words)):
        row[:] = (1 << WORD) - 1
        if size % WORD:
            row[-1] = (1 << size % WORD) - 1
    counts = np.zeros(gpus + 1, np.int64)
    counts[gpus] = number
    return Servers(bits, tops, counts, np.full(number, gpus, np.int64))


@kernel
def _lowest_bit(word: int) -> int:
    """Position of the lowest bit of a word that is not 0 (by a de Bruijn sequence)."""
    return int(_LOWEST[(((word & -word) * 0x077CB531) & 0xFFFFFFFF) >> 27])


@kernel
def _first(servers: Servers, level: int) -> int:
    """The first server with that many free GPUs; there is one."""
    at = 0
    while servers.tops[level, at] == 0:
        at += 1
    word = at * WORD + _lowest_bit(servers.tops[level, at])
    return word * WORD + _lowest_bit(servers.bits[level, word])


@kernel
def _set_free(servers: Servers, server: int, level: int) -> None:
    """Let a server have that many free GPUs."""
    bits, tops, counts = servers.bits, servers.tops, servers.counts
    before, word = servers.free[server], server // WORD
    bits[before, word] ^= 1 << (server % WORD)
    if bits[before, word] == 0:
        tops[before, word // WORD] ^= 1 << (word % WORD)
    bits[level, word] |= 1 << (server % WORD)
    tops[level, word // WORD] |= 1 << (word % WORD)
    counts[before] -= 1
    counts[level] += 1
    servers.free[server] = level


@kernel
def _take_from(servers: Servers, level: int, gpus: int, share_server: Small, share_gpus: Small, at: int) -> int:
    """Take GPUs of the first server with that many free ones; returns where the next share goes."""
    server = _first(servers, level)
    _set_free(servers, server, level - gpus)
    share_server[at], share_gpus[at] = server, gpus
    return at + 1


@kernel
def take(servers: Servers, need: int, share_server: Small, share_gpus: Small, at: int) -> int:
    """Give a job its GPUs; the shares are written from ``at`` on.

    A job that fits on one server gets the fullest one that holds it. A larger one gets whole servers, and what is left
    over on the emptiest of the others; or nothing.

    Returns:
        Where the next share goes; ``at`` if the job does not fit.
    """
    counts = servers.counts
    whole = counts.size - 1
    if need <= whole:
        for level in range(need, whole + 1):
            if counts[level]:
                return _take_from(servers, level, need, share_server, share_gpus, at)
        return at
    number, rest = need // whole, need % whole
    if counts[whole] < number:
        return at
    last = whole if counts[whole] > number else whole - 1
    while rest and last >= rest and counts[last] == 0:
        last -= 1
    if rest and last < rest:
        return at
    for _ in range(number):
        at = _take_from(servers, whole, whole, share_server, share_gpus, at)
    if rest:
        at = _take_from(servers, last, rest, share_server, share_gpus, at)
    return at


@kernel
def give_back(servers: Servers, share_server: Small, share_gpus: Small, begin: int, end: int) -> None:
    """Take back the GPUs of these shares."""
    for at in range(begin, end):
        server = share_server[at]
        _set_free(servers, server, servers.free[server] + share_gpus[at])


@kernel
def take_again(servers: Servers, share_server: Small, share_gpus: Small, begin: int, end: int) -> bool:
    """Take the GPUs of these shares, each on its server, where all of them are free. Each server is there once."""
    for at in range(begin, end):
        if servers.free[share_server[at]] < share_gpus[at]:
            return False
    for at in range(begin, end):
        server = share_server[at]
        _set_free(servers, server, servers.free[server] - share_gpus[at])
    return True
