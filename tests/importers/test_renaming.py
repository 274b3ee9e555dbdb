"""Importers decide nothing by the spelling of names: renamed, a file gives the same instance but for the names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from mast_opt.live.simulation.traces.importers import TRACE_IMPORTERS
from mast_opt.live.simulation.traces.trace import write_trace
from tests.simulation.traces import samples

OF_TRACES = {
    "armada": "ann bob pool1 pool2",
    "gavel-trace": "v100 k80",
    "openb": "n0 n1 n2 p0 p1 p2 p3 G2 T4",
    "philly": "vc0 vc1",
    "sacct": "ann bob ads vision n1 n2 n3 long",
}
"""Importer → names in its sample; the logs of ``swf`` have numbers alone."""


def namings(words: str) -> tuple[dict[str, str], dict[str, str]]:
    """Names in the alphabet's order, and in the opposite one: by the names of the file, by those of the first."""
    old = words.split()
    new = [f"w{at:02d}w" for at in range(len(old))]
    return dict(zip(old, new, strict=True)), dict(zip(new, reversed(new), strict=True))


def swapped(text: str, names: Mapping[str, str]) -> str:
    """An instance with the names of the first naming replaced, inside of longer ones too."""
    return re.sub("|".join(names), lambda found: names[found[0]], text)


def spelled(text: str, names: Mapping[str, str]) -> str:
    """A text with these words replaced."""
    return re.sub(rf"\b(?:{'|'.join(names)})\b", lambda found: names[found[0]], text)


@pytest.mark.parametrize("importer", OF_TRACES)
def test_traces(importer: str, tmp_path: Path) -> None:
    there, back = namings(OF_TRACES[importer])
    found = []
    for at, names in enumerate((there, {old: back[new] for old, new in there.items()})):
        folder = tmp_path / str(at)
        folder.mkdir()
        for name in samples.INPUTS[importer]:
            (folder / name).write_text(spelled(samples.content(name).decode(), names))
        given = {name: spelled(value, names) for name, value in samples.GIVEN.get(importer, {}).items()}
        trace = TRACE_IMPORTERS[importer].run([folder / one for one in samples.INPUTS[importer]], given, 0)
        write_trace(folder / "out", trace.name, "", trace.tables)
        found.append("\n".join(file.read_text() for file in sorted((folder / "out").glob("*.csv"))))
    assert found[0] != found[1]
    assert swapped(found[0], back) == found[1]
