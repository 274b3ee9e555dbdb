"""Extensions by name: those of mast-opt, and plug-ins of other packages, which are found by entry points.

A group is looked through when a name is first asked for, and a plug-in is imported when it is first used. One that
cannot be imported, or is not what its group is for, ends only what asked for it. A plug-in replaces nothing of
mast-opt's own, and a name that two packages have belongs to neither.
"""

import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Generic, TypeAlias, TypeVar, cast

from mast_opt.core.errors import MastOptError, PluginError, PluginWarning, UsageError
from mast_opt.core.wording import did_you_mean, one_line, shown

ExtensionT = TypeVar("ExtensionT")
Errors: TypeAlias = tuple[type[MastOptError], ...]


@dataclass(frozen=True, slots=True)
class PlugIn:
    """Description of a plug-in: its package, and whether it can be used."""

    group: str
    name: str
    package: str
    """Name and version of its package."""
    value: str
    """``module:attribute``, as its package states it."""
    reason: str | None
    """Reason why it cannot be used; None if it can."""


class Extensions(Mapping[str, ExtensionT], Generic[ExtensionT]):
    """Extensions of one group by name: those of mast-opt first, then plug-ins.

    Args:
        group: of entry points, such as ``mast_opt.importers``.
        noun: what each of them is, such as ``importer``.
        own: name → extension of mast-opt, or ``module:attribute`` of one that is loaded when it is first asked for.
        kind: type that plug-ins must have; None if their users check them.
        reserved: further names that no plug-in can have.
    """

    def __init__(
        self,
        group: str,
        noun: str,
        own: Mapping[str, ExtensionT | str],
        kind: type[ExtensionT] | None = None,
        reserved: Collection[str] = (),
    ) -> None:
        self.group, self.noun, self.own = group, noun, dict(own)
        self._kind, self._reserved = kind, reserved

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self.others

    def __len__(self) -> int:
        return len(self.own) + len(self.others)

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self.others

    def __getitem__(self, name: str) -> ExtensionT:
        """The extension of that name.

        Raises:
            KeyError: there is none.
            PluginError: it is a plug-in that cannot be loaded, or of the wrong type.

        Warns:
            PluginWarning: a plug-in has the name of one of mast-opt's own, which is given.
        """
        if name in self.own:
            if name in self.refused:
                warn(self.refused[name])
            found = self.own[name]
            return cast(ExtensionT, resolve_name(found)) if isinstance(found, str) else found
        with self.blaming(name, "cannot be loaded"):
            loaded = self.others[name].load()
        if self._kind is not None and not isinstance(loaded, self._kind):
            wanted = f"{self._kind.__module__}.{self._kind.__name__}"
            raise PluginError(f"{self.words(name)} is of type {type(loaded).__name__}; expected {wanted}")
        return cast(ExtensionT, loaded)

    @contextmanager
    def blaming(self, name: str, what: str = "failed", ours: Errors = (MastOptError,)) -> Iterator[None]:
        """Errors that a plug-in raises in the block, as errors that name it and its package, but for ``ours``."""
        try:
            yield
        except BaseException as error:  # SystemExit too
            if name in self.own or isinstance(error, (*ours, KeyboardInterrupt, MemoryError)):
                raise
            raise PluginError(f"{self.words(name)} {what}: {one_line(error)}") from error

    def named(self, name: str, also: Collection[str] = ()) -> ExtensionT:
        """The extension of that name.

        Args:
            also: names of other things that may stand in its place, for the message.

        Raises:
            UsageError: there is none; lists those that there are.
            PluginError: it is a plug-in that cannot be used, or two packages have one of that name.
        """
        if name in self:
            return self[name]
        if name in self.refused:
            raise PluginError(self.refused[name])
        names = (*also, *self)
        hint = did_you_mean(name, names)
        raise UsageError(f"there is no {self.noun} called {name!r}; expected one of: {', '.join(names)}{hint}")

    def usable(self) -> Iterator[tuple[str, ExtensionT]]:
        """Name and extension of those that can be loaded."""
        for name in self:
            try:
                yield name, self[name]
            except PluginError:
                continue

    def plug_ins(self) -> Iterator[PlugIn]:
        """Description of each plug-in. Loads all of them."""
        for name, points in self._found.items():
            reason = self.refused.get(name)
            if reason is None:
                try:
                    self[name]
                except PluginError as error:
                    reason = str(error)
            for point in points:
                yield PlugIn(self.group, name, _package(point), point.value, reason)

    @property
    def others(self) -> Mapping[str, EntryPoint]:
        """Name → entry point of each plug-in whose name is its own."""
        return {name: points[0] for name, points in self._found.items() if name not in self.refused}

    @property
    def refused(self) -> Mapping[str, str]:
        """Name of a plug-in that is not used → why."""
        found: dict[str, str] = {}
        for name, points in self._found.items():
            words = " and ".join(map(self._words, points))
            if name in self.own or name in self._reserved:
                found[name] = f"{words} has a name of mast-opt's own; it is not used"
            elif len(points) > 1:
                found[name] = f"{words} have one name; none of them is used"
        return found

    def words(self, name: str) -> str:
        """A plug-in's name and package in a message."""
        return self._words(self.others[name])

    def package(self, name: str) -> str | None:
        """Name and version of a plug-in's package; None for an extension of mast-opt."""
        return _package(self.others[name]) if name in self.others else None

    def _words(self, point: EntryPoint) -> str:
        """Words on a plug-in's entry point: its name, package and value."""
        return f"the {self.noun} {shown(point.name)} of package {_package(point)} ({shown(point.value)})"

    @property
    def _found(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        """Name → entry points of this group of plug-ins."""
        return _installed(self.group, tuple(sys.path))


_SAID: dict[object, object] = {}


def warn(words: str) -> None:
    """Warn of a plug-in that is not used: once in a process, wherever it is asked for, and without a line of source."""
    warnings.warn_explicit(words, PluginWarning, "plug-ins", 1, registry=_SAID)  # type: ignore[arg-type]


def _package(point: EntryPoint) -> str:
    """Package of a plug-in's entry point with its version."""
    return "(unknown)" if point.dist is None else shown(f"{point.dist.name} {point.dist.version}")


@cache
def _installed(group: str, path: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Name → entry points of a group in the packages of a search path. Looking through them takes milliseconds."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        found[point.name] = (*found.get(point.name, ()), point)
    return found
