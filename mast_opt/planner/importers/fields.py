"""Declarations of what an importer does with each field of a format; the page of importers is made from them."""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mast_opt.problems.kind.schema import Column


class Use(enum.Enum):
    """Use that an importer makes of a field."""

    READ = "read"
    WARNED = "ignored, with a warning"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True)
class Field:
    """A field of a format, as the format calls it; ``a.b[].c`` is a path through objects and lists."""

    name: str
    use: Use
    help: str


@dataclass(frozen=True)
class Tried:
    """A release whose real output was tested."""

    version: str
    what: str
    """The output that was tested, in words."""


@dataclass(frozen=True)
class Format:
    """An external file format."""

    title: str
    fields: tuple[Field, ...]
    rest: Use
    """Use of all fields that are not listed."""
    tried: tuple[Tried, ...] = ()


def of_columns(columns: Iterable[Column], **others: str) -> tuple[Field, ...]:
    """Fields of a format that an importer reads from these columns.

    Args:
        others: column → description, if the column's help lacks one.
    """
    return tuple(
        Field(
            column.name,
            Use.READ,
            others.get(column.name, column.help) + ("" if column.required else "; may be missing"),
        )
        for column in columns
    )


def read(**fields: str) -> tuple[Field, ...]:
    """Fields of a format that an importer reads: name → description. Two underscores stand for a dot."""
    return tuple(Field(name.replace("__", "."), Use.READ, help) for name, help in fields.items())


def values_at(found: Any, path: str) -> Iterator[Any]:  # noqa: ANN401 - a part of an object
    """Values at a path of an importer's document, once for each item of the lists on the way."""
    name, _, rest = path.partition(".")
    value = found.get(name.removesuffix("[]")) if isinstance(found, Mapping) else None
    for one in (value if isinstance(value, list) else ()) if name.endswith("[]") else (value,):
        if rest:
            yield from values_at(one, rest)
        else:
            yield one


def stated(found: Mapping[str, Any], fields: Iterable[Field], use: Use) -> list[Field]:
    """Fields of an importer's format with this use that the object sets."""
    return [
        one for one in fields if one.use is use and any(value not in _NOTHING for value in values_at(found, one.name))
    ]


_NOTHING: tuple[object, ...] = (None, "", [], {}, False)
