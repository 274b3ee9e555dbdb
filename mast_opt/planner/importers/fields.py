"""Fields of foreign formats that an importer does not read and says so where they are set."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple


class Field(NamedTuple):
    """A field of a format, as the format calls it; ``a.b[].c`` is a path through objects and lists."""

    name: str
    help: str
    """Reason why it is not read, or what becomes of it."""


def values_at(found: Any, path: str) -> Iterator[Any]:  # noqa: ANN401 - a part of an object
    """Values at a path of an importer's document, once for each item of the lists on the way."""
    name, _, rest = path.partition(".")
    value = found.get(name.removesuffix("[]")) if isinstance(found, Mapping) else None
    for one in (value if isinstance(value, list) else ()) if name.endswith("[]") else (value,):
        if rest:
            yield from values_at(one, rest)
        else:
            yield one


def stated(found: Mapping[str, Any], fields: Iterable[Field]) -> list[Field]:
    """Those of these fields of an importer's format that the object sets."""
    return [one for one in fields if any(value not in _NOTHING for value in values_at(found, one.name))]


_NOTHING: tuple[object, ...] = (None, "", [], {}, False)
