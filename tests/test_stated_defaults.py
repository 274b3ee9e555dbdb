"""Defaults that pages state in brackets after a name are those of the code: `round_s` seconds (360)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from cyclopts import Parameter

from mast_opt.cli.app import COMMANDS
from mast_opt.cli.kueue import KueueOptions
from mast_opt.live.simulation.run import ENGINE_POLICIES
from mast_opt.live.simulation.slow_runs import DataRunParams, ServersRunParams
from mast_opt.live.simulation.traces.schema import SCHEMA
from mast_opt.planner.solving.auto_strategy import AutoParams
from mast_opt.problems import registry
from mast_opt.problems.job_placement.engine.limits import SearchLimits
from mast_opt.problems.resource_allocation.methods.params import AllocationParams

ROOT = Path(__file__).parents[1]
STATED = re.compile(r"`((?:--|\.)?[a-z][-a-z_.]*)`(?: [a-z]+)? \(([\d.,]+|true|false|soft|hard|mean)(?=[):;]| unless)")
"""A name, a word at most, and a value in brackets."""


def _values() -> Iterator[tuple[str, object]]:
    """Every name that has a default, by the words that pages use for it."""
    for policy in ENGINE_POLICIES.values():
        yield from _fields(policy.params, "")
    yield from _fields(DataRunParams, "slow.data.")
    yield from _fields(ServersRunParams, "slow.servers.")
    yield from _fields(KueueOptions, "--")
    for params in (AllocationParams, AutoParams):
        yield from _fields(params, "")
    yield from SearchLimits._field_defaults.items()
    for command in COMMANDS:
        module = import_module(
            f"mast_opt.cli.commands.{ {'import': 'import_'}.get(command, command.replace('-', '_')) }"
        )
        for function in filter(None, (getattr(module, "command", None),)):
            for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
                renamed = [
                    next(iter(one.name))
                    for one in get_args(parameter.annotation)
                    if isinstance(one, Parameter) and one.name
                ]
                yield (*renamed, f"--{name.replace('_', '-')}")[0], parameter.default
    for kind in map(registry.kind_named, registry.kind_names()):
        yield from ((name, term.weight) for name, term in kind.terms.items())
        for family in kind.generate.families.values():
            for name, size in family.sizes.items():
                yield f"--{name.replace('_', '-')}", size
    for column in (column for table in SCHEMA.tables for column in table.columns if not column.choices):
        yield column.name, None if column.default is None else column.default / column.scale


def _fields(params: Any, prefix: str) -> Iterator[tuple[str, object]]:
    for item in fields(params):
        if item.default is not MISSING:
            yield f"{prefix}{item.name}", item.default


def _stated() -> Iterator[tuple[str, str, str]]:
    """Page, name and value; a name that begins with a dot continues the last one that has a dot inside."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        prefix = ""
        for name, value in STATED.findall(re.sub(r"\s+", " ", page.read_text(encoding="utf-8"))):
            prefix = name.rpartition(".")[0] or prefix
            yield page.name, prefix + name if name.startswith(".") else name, value


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def test_pages_state_the_defaults_of_the_code() -> None:
    known: dict[str, set[str]] = {}
    for name, value in _values():
        known.setdefault(name, set()).add(_text(value))
    stated = list(_stated())
    wrong = [(page, name, value) for page, name, value in stated if value.replace(",", "") not in known.get(name, ())]
    assert wrong == []
    assert len(stated) >= 25, "the pattern finds nothing any more"
