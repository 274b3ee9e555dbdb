"""Packages with entry points, as tests install them."""

from __future__ import annotations

from importlib.metadata import Distribution
from pathlib import Path

import pytest

from mast_opt.core import plugins


class Demo(Distribution):
    """A package without files."""

    def __init__(self, group: str, points: tuple[tuple[str, str], ...]) -> None:
        self._group, self._points = group, points

    def read_text(self, filename: str) -> str | None:
        """Metadata and entry points of the package."""
        if filename == "METADATA":
            return "Metadata-Version: 2.1\nName: demo\nVersion: 1.5\n"
        if filename != "entry_points.txt":
            return None
        return f"[{self._group}]\n" + "".join(f"{name} = {value}\n" for name, value in self._points)

    def locate_file(self, path: object) -> Path:
        """Nothing is there."""
        return Path(str(path))


def offer(monkeypatch: pytest.MonkeyPatch, group: str, *points: tuple[str, str]) -> None:
    """Install a package ``demo``, version 1.5, with entry points of a group: (name, ``module:attribute``)."""
    found = tuple(Demo(group, points).entry_points)
    installed = getattr(plugins._installed, "__wrapped__", plugins._installed)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [one for one in found if one.group == group])
    monkeypatch.setattr(plugins, "_installed", installed)
