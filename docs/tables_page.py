"""Writes ``tables.md``, the reference of every table and column, from the schemas that read them.

python docs/tables_page.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mast_opt.core.wording import plain
from mast_opt.problems.kind.header import Rule
from mast_opt.problems.kind.schema import Column, ColumnType, Schema, Table
from mast_opt.problems.registry import kind_named, kind_names

PAGE = Path(__file__).with_name("tables.md")
HEAD = """# Tables and columns

Every table of an instance and of a plan, in files and in memory. This page is generated from the schemas that
read them (`python docs/tables_page.py`). An optional column may be missing, and its cells may be empty; the
default then counts, or the value is absent as the meaning says. A table marked optional may be missing. The
first columns, in **bold**, are the key: their combination occurs once.

Names of tables and columns that begin with `#` or `_` are notes, in files and in memory; any other unknown
name is a fault. In pandas, an index is not read: use `reset_index()`. How instances are stored is on the page
[instances](instances.md), how they come from memory on [Python without files](how-to/python.md).
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for name in kind_names() for line in _kind(name))])


def _kind(name: str) -> Iterator[str]:
    kind = kind_named(name)
    yield f"## {name.replace('-', ' ').capitalize()}\n"
    if kind.tables.rules:
        yield "`rules` (`[rules]` in `instance.toml`):\n"
        yield "| rule | value | default | meaning |\n|---|---|---|---|"
        yield from (_rule(rule) for rule in kind.tables.rules)
        yield ""
    if kind.terms:
        yield "Terms of the objective (`[objective.weights]`):\n"
        yield "| term | default weight | unit of its value |\n|---|---|---|"
        yield from (f"| `{name}` | {plain(term.weight)} | {_cell(term.unit)} |" for name, term in kind.terms.items())
        yield ""
    yield from _tables(kind.tables.schema, "")
    yield f"A plan of {name.replace('-', ' ')}:\n"
    yield from _tables(kind.tables.plan_schema, "plan, ")


def _rule(rule: Rule) -> str:
    value = ", ".join(f"`{choice}`" for choice in rule.choices) or "a positive number"
    default = f"`{rule.default}`" if isinstance(rule.default, str) else plain(float(rule.default))
    return f"| `{rule.name}` | {value} | {default} | {_cell(rule.help)} |"


def _tables(schema: Schema, what: str) -> Iterator[str]:
    for table in schema.tables:
        yield f"### {what}`{table.name}`\n"
        yield f"{table.help[:1].upper()}{table.help[1:]}. {_missing(table)}".strip() + "\n"
        yield "| column | values | default | meaning |\n|---|---|---|---|"
        yield from (_column(table, column) for column in table.columns)
        yield ""


def _missing(table: Table) -> str:
    if table.required:
        return ""
    said = table.missing != Table("", (), ()).missing
    return f"Optional: without it, {table.missing}." if said else "Optional."


def _column(table: Table, column: Column) -> str:
    name = f"**`{column.name}`**" if column.name in table.key else f"`{column.name}`"
    return f"| {name} | {_values(column)} | {_default(column)} | {_cell(column.help)} |"


def _values(column: Column) -> str:
    if column.type is ColumnType.CHOICE:
        return ", ".join(f"`{choice}`" for choice in column.choices)
    if column.type is ColumnType.LABEL:
        return f"label of a {str(column.axis).replace('gpu', 'GPU').replace('_', ' ')}"
    if column.type is ColumnType.BOOLEAN:
        return column.type.value
    least = plain(column.minimum / column.scale)
    if column.maximum is None:
        return f"{column.type.value}, {'above' if column.above else 'at least'} {least}"
    most = plain(column.maximum / column.scale)
    return f"{column.type.value}, {f'above {least}, at most' if column.above else f'{least} to'} {most}"


def _default(column: Column) -> str:
    if column.required:
        return "required"
    value: Any = column.default
    if value is None:
        return "empty"
    if column.type is ColumnType.CHOICE:
        return f"`{column.choices[int(value)]}`"
    return str(value).lower() if isinstance(value, bool) else plain(value / column.scale)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
