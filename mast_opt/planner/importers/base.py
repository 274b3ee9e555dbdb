"""Interface of importers: public data in, a problem out, with named inputs and settings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.core.fork_safety import use_tables
from mast_opt.core.wording import did_you_mean

SettingsT = TypeVar("SettingsT")


@dataclass(frozen=True)
class Input:
    """A file or folder that an importer reads."""

    name: str
    help: str


@dataclass(frozen=True)
class Setting:
    """A knob of an importer, for its help."""

    name: str
    type: type
    """int, float or str."""
    default: int | float | str
    help: str


def setting(default: int | float | str, help: str) -> Any:  # noqa: ANN401 - as dataclasses.field
    """A field of an importer's settings."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Importer(Generic[SettingsT]):
    """Builds a problem from public data. ``build`` is pure: the same files, settings and generator state give the
    same problem."""

    kind: str
    """Kind of the problem that it builds."""
    help: str
    inputs: tuple[Input, ...]
    """Inputs in the order in which ``build`` takes their paths."""
    settings_type: type[SettingsT]
    """A frozen dataclass whose fields are ``setting``s; it may check them and raise UsageError."""
    build: Callable[[Sequence[Path], SettingsT, np.random.Generator], Any]
    """build(paths, settings, rng) → problem. Raises SourceError for files that are not what they should be."""
    preview: Callable[[Sequence[Path]], list[str]] | None = None
    """Lines that say what will be done with the paths, shown before it is; None where there is nothing to say."""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Every setting of an importer with its type, default and meaning."""
        return tuple(
            Setting(item.name, type(item.default), item.default, item.metadata["help"])
            for item in fields(self.settings_type)  # type: ignore[arg-type]
            if item.default is not MISSING
        )

    def run(self, paths: Sequence[Path], given: Mapping[str, str], seed: int) -> Any:  # noqa: ANN401 - the importer says of which kind
        """Build the problem from files of public data.

        Args:
            paths: one for each of ``inputs``.
            given: settings as text, by name; the others take their defaults.
            seed: of everything that the data lack.

        Raises:
            UsageError: too few or too many paths, an unknown setting, or a value that it cannot have.
            SourceError: a file is missing or not what it should be; lists every fault.
        """
        use_tables("import an instance")
        known = {item.name: item for item in self.settings}
        for name in given:
            if name not in known:
                hint = did_you_mean(name, known) or f"; the settings are: {', '.join(known)}"
                raise UsageError(f"there is no setting {name!r}{hint}")
        if len(paths) != len(self.inputs):
            wanted = ", ".join(f"{item.name} ({item.help})" for item in self.inputs)
            raise UsageError(f"{len(paths)} inputs are given; expected {len(self.inputs)}: {wanted}")
        values = {name: _value(known[name], text) for name, text in given.items()}
        return self.build(paths, self.settings_type(**values), np.random.default_rng(seed))


def _value(item: Setting, text: str) -> int | float | str:
    """Value of an importer's setting from text. Raises UsageError."""
    try:
        value: int | float | str = item.type(text)
    except ValueError:
        noun = "a whole number" if item.type is int else "a number"
        raise UsageError(f"setting {item.name} is {text!r}; expected {noun}: {item.help}") from None
    return value
