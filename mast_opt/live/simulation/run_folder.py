"""A run in a folder: its log of events, and its figures with what they are of."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mast_opt.core.errors import InputError
from mast_opt.core.limits import MOST_DOCUMENT_BYTES, read_regular
from mast_opt.live.loop.event_log import log_lines, read_log
from mast_opt.live.loop.events import Stored
from mast_opt.planner.io.atomic import new_folder
from mast_opt.planner.io.plain_tables import RUN_FILES, is_run

if TYPE_CHECKING:  # kernels take long to import
    from mast_opt.live.loop.metrics import Metrics
    from mast_opt.live.loop.place_metrics import PlaceMetrics
    from mast_opt.live.simulation.run import SimulatedRun

EVENTS, FIGURES = RUN_FILES
IMPOSSIBLE = "impossible_jobs"
_EXPECTED = "the figures of a run, as mast-opt simulate --out writes them"


@dataclass(frozen=True)
class RunFacts:
    """Facts about a run: its trace, load and window."""

    trace: str
    """Name of the trace."""
    load: float = 1.0
    """Factor by which jobs come faster than in the trace."""
    seed: int = 0
    """0: they come as in the trace; otherwise in another order."""
    warm_up_s: float = 0.0
    until_s: float | None = None
    complete: bool = True
    """False where it was interrupted."""


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A run that lies in a folder."""

    path: Path
    facts: RunFacts
    policy: str
    params: Mapping[str, Any]
    metrics: Mapping[str, Any]
    impossible: Mapping[str, str] = field(default_factory=dict)
    """Job that no region can ever hold → why."""

    def events(self) -> Iterator[Stored]:
        """The log of a stored run, from its first event on. Raises LogError where it is not one, InputError if it
        cannot be read.
        """
        file = self.path / EVENTS
        try:
            with file.open(encoding="utf-8", newline="\n") as lines:
                yield from read_log(lines, file.name)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file} cannot be read ({getattr(error, 'strerror', None) or error})") from error


def check_replaceable(target: Path, force: bool) -> None:
    """Raises InputError where something stands that is no earlier run, or is one and may not be replaced."""
    if not target.exists():
        return
    names = sorted(entry.name for entry in target.iterdir()) if target.is_dir() else [target.name]
    if not target.is_dir() or any(name not in RUN_FILES for name in names):
        raise InputError(f"{target} is no folder of an earlier run; choose another path")
    if names and not force:
        raise InputError(
            f"{target} exists already; choose another path, or overwrite it (--force; in Python, force=True)"
        )


def write_run(
    done: "SimulatedRun",
    facts: RunFacts,
    found: "Metrics",
    out: Path,
    *,
    places: "PlaceMetrics | None" = None,
    force: bool,
) -> None:
    """Write a run to a new folder, which is there whole or not at all. Raises InputError if it cannot be written."""
    with new_folder(out.absolute(), lambda target: check_replaceable(target, force)) as folder:
        with (folder / EVENTS).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(log_lines(done.events(), sum(1 for _ in done.events())))
        text = json.dumps(figures(done, facts, found, places), indent=1)
        (folder / FIGURES).write_text(text + "\n", encoding="utf-8", newline="\n")


def figures(
    done: "SimulatedRun", facts: RunFacts, found: "Metrics", places: "PlaceMetrics | None" = None
) -> dict[str, Any]:
    """Figures of a simulated run for ``metrics.json``."""
    return {
        "policy": done.policy,
        "params": dict(done.params),
        "events": done.count,
        **{name: getattr(facts, name) for name in RunFacts.__dataclass_fields__},
        IMPOSSIBLE: dict(done.impossible),
        **found.to_dict(),
        **({} if places is None else places.to_dict()),
        **({"starts": dict(done.starts)} if done.starts else {}),
    }


def read_run(path: Path) -> StoredRun:
    """The run in a folder, its log not read yet. Raises InputError for anything else."""
    if not is_run(path):
        raise InputError(f"{path} is no folder of a run; expected {' and '.join(RUN_FILES)} in it")
    file = path / FIGURES
    try:
        stated = json.loads(read_regular(file, MOST_DOCUMENT_BYTES))
        facts = RunFacts(**{name: stated.pop(name) for name in RunFacts.__dataclass_fields__ if name in stated})
        policy, params, impossible = stated.pop("policy"), stated.pop("params"), stated.pop(IMPOSSIBLE, {})
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: expected {_EXPECTED} ({getattr(error, 'strerror', None) or error})") from error
    except (TypeError, KeyError, AttributeError):
        raise InputError(f"{file}: expected {_EXPECTED}") from None
    sound = isinstance(policy, str) and isinstance(params, dict) and isinstance(facts.trace, str)
    sound = sound and isinstance(impossible, dict) and all(isinstance(why, str) for why in impossible.values())
    if not sound or not all(isinstance(value, (int, float)) for value in (facts.load, facts.warm_up_s)):
        raise InputError(f"{file}: expected {_EXPECTED}")
    return StoredRun(path, facts, policy, params, stated, impossible)
