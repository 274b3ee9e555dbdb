"""Importers decide nothing by the spelling of names: renamed, a file gives the same instance but for the names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import mast_opt
from mast_opt.live.simulation.traces.importers import TRACE_IMPORTERS
from mast_opt.live.simulation.traces.trace import write_trace
from mast_opt.planner.importers import importer_named
from tests.importers.test_schedulers import FILES
from tests.simulation.traces import samples

OF_SCHEDULERS = {
    "allox": "a b c",
    "gandiva": "a b c d",
    "gandiva-fair": "ann bob v100 k80",
    "themis": "a b",
    "synergy": "alexnet gnmt",
    "singularity": "premium standard basic",
    "pollux": "x y z",
    "sia": "a b t4 v100",
}
OF_TRACES = {
    "armada": "ann bob pool1 pool2",
    "gavel-trace": "v100 k80",
    "openb": "n0 n1 n2 p0 p1 p2 p3 G2 T4",
    "philly": "vc0 vc1",
    "sacct": "ann bob ads vision n1 n2 n3 long",
}
"""Importer → names in its sample; the logs of ``swf`` have numbers alone."""
PLAIN = ("capacity", "memory_gb")


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


def tables_of(problem: mast_opt.ResourceAllocation) -> str:
    return "\n".join(f"{name}\n{frame.write_csv()}" for name, frame in mast_opt.to_tables(problem).items())


@pytest.mark.parametrize("importer", FILES)
def test_schedulers(importer: str, tmp_path: Path) -> None:
    text, settings, _ = FILES[importer]
    there, back = namings(OF_SCHEDULERS[importer])
    body = text[text.index("\n") :]
    found = []
    for names in (there, {old: back[new] for old, new in there.items()}):
        (tmp_path / "measured.csv").write_text(text[: text.index("\n")] + spelled(body, names))
        given = {name: value if name in PLAIN else spelled(value, names) for name, value in settings.items()}
        found.append(tables_of(importer_named(importer).run([tmp_path / "measured.csv"], given, 0)))
    assert found[0] != found[1]
    assert swapped(found[0], back) == found[1]


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
