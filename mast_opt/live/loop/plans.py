"""Plans of slow paths: which solve is awaited, and which steps of an adopted plan have yet to be taken."""

from collections import Counter
from dataclasses import astuple, dataclass, field

from mast_opt.live.loop import events as ev

Key = tuple[str, str, str]
"""Key of a step: its kind, its object and its place."""


def key_of(event: object) -> Key | None:
    """The step of a plan with which an event begins or ends; None for another event."""
    if isinstance(event, (ev.CopyAsked, ev.CopyEnded)):
        return ev.COPY, event.dataset, event.region
    if isinstance(event, ev.ReplicaDropped):
        return ev.DROP, event.dataset, event.region
    if isinstance(event, (ev.MoveAsked, ev.ServerMoved)):
        return ev.MOVE, event.server, event.cluster
    return None


@dataclass(slots=True)
class _Path:
    asked: str = ""
    """Checksum of the instance whose plan is awaited; empty if none is."""
    solved: str = ""
    """Checksum of the instance that was solved last."""
    failed: bool = False
    """True if the last solve brought no plan."""
    adopted: str = ""
    """Plan that was adopted last."""
    taken_on: int = 0
    """Number of steps with which it was adopted."""
    dropped: int = 0
    """Number of its steps that were dropped, as they no longer fitted."""
    pending: dict[Key, ev.PlanStep] = field(default_factory=dict)
    """Steps that have not begun, in the order of the plan."""
    under_way: dict[Key, ev.PlanStep] = field(default_factory=dict)
    """Steps that have begun and not ended."""
    ready: dict[Key, ev.PlanStep] = field(default_factory=dict)
    """Steps that may begin now, in the order of the plan: no step of an earlier wave is left."""
    waves: dict[int, int] = field(default_factory=dict)
    """Last wave → number of steps that are left, under way included."""

    @property
    def steps(self) -> tuple[dict[Key, ev.PlanStep], dict[Key, ev.PlanStep]]:
        """Steps of a slow path's plan that have not begun, and those under way."""
        return self.pending, self.under_way

    def look(self) -> None:
        """Count the steps of a slow path's plan that are left, and find those that may begin."""
        self.waves = dict(Counter(step.last_wave for steps in self.steps for step in steps.values()))
        self._find_ready()

    def begin(self, key: Key) -> None:
        """Begin a step of a slow path's plan, if there is one; a deletion has ended at once."""
        step = self.pending.pop(key, None)
        if step is None:
            return
        self.ready.pop(key, None)
        self.end(key)
        self.under_way[key] = step
        if step.does == ev.DROP:
            self.end(key)

    def end(self, key: Key) -> None:
        """End a step of a slow path's plan, if it is under way."""
        if key in self.under_way:
            self._leave(self.under_way.pop(key))

    def drop(self, key: Key) -> bool:
        """Drop a step of a slow path's plan that has not begun; False if there is none."""
        step = self.pending.pop(key, None)
        if step is None:
            return False
        self.ready.pop(key, None)
        self._leave(step)
        return True

    def _leave(self, step: ev.PlanStep) -> None:
        """Count a step as no longer left; the last of its wave lets others begin."""
        self.waves[step.last_wave] -= 1
        if not self.waves[step.last_wave]:
            del self.waves[step.last_wave]
            self._find_ready()

    def _find_ready(self) -> None:
        """Find the steps of a slow path's plan that may begin."""
        wave = min(self.waves, default=0)
        self.ready = {key: step for key, step in self.pending.items() if step.first_wave <= wave}


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of the plan that a path adopted last."""

    plan: str
    """Name of the plan; empty if none was adopted."""
    steps: int
    """Number of steps with which it was adopted."""
    dropped: int
    """Number of steps that were dropped, as they no longer fitted."""
    waiting: tuple[ev.PlanStep, ...]
    """Steps that have not begun."""
    under_way: tuple[ev.PlanStep, ...]
    """Steps that have begun and not ended, those of the plan before included."""


class Plans:
    """Plans that the slow paths wait for and carry out. Only ``State.apply`` changes them."""

    def __init__(self) -> None:
        self._paths: dict[str, _Path] = {}

    def awaited(self, path: str) -> str:
        """Checksum of the instance that is being solved for a path; empty if none is."""
        return self._paths[path].asked if path in self._paths else ""

    def solved(self, path: str) -> str:
        """Checksum of the instance that was solved last for a path; empty if none was."""
        return self._paths[path].solved if path in self._paths else ""

    def failed(self, path: str) -> bool:
        """Whether the last solve for a path brought no plan."""
        return path in self._paths and self._paths[path].failed

    def paths(self) -> tuple[str, ...]:
        """The paths that have asked for a plan, by the order in which they first did."""
        return tuple(self._paths)

    def progress(self, path: str) -> Progress:
        """Progress of the plan of a path."""
        known = self._paths.get(path) or _Path()
        steps = tuple(known.pending.values()), tuple(known.under_way.values())
        return Progress(known.adopted, known.taken_on, known.dropped, *steps)

    def ready(self, path: str) -> tuple[ev.PlanStep, ...]:
        """The steps of a path's plan that may begin now: no step of an earlier wave is left."""
        return tuple(self._paths[path].ready.values()) if path in self._paths else ()

    def asked(self, event: ev.SolveAsked) -> None:
        """Note that a solve has begun for a path."""
        known = self._paths.setdefault(event.path, _Path())
        if known.asked:
            raise ev.Unfit(f"path {event.path} asks for a plan while it waits for another")
        known.asked = event.checksum

    def ended(self, event: ev.SolveEnded) -> None:
        """Note that a solve has ended for a path."""
        known = self._paths.get(event.path)
        if known is None or known.asked != event.checksum:
            raise ev.Unfit(f"path {event.path} has not asked for this plan")
        known.asked, known.solved, known.failed = "", event.checksum, not event.plan

    def adopted(self, event: ev.PlanAdopted) -> None:
        """Adopt a plan in place of what is left of the one before; what has begun goes on."""
        known = self._paths.setdefault(event.path, _Path())
        known.pending = {(step.does, step.name, step.target): step for step in event.steps}
        known.adopted, known.taken_on, known.dropped = event.plan, len(known.pending), 0
        known.look()

    def step_dropped(self, event: ev.StepDropped) -> None:
        """Drop a step of a plan."""
        known = self._paths.get(event.path)
        if known is None or not known.drop((event.does, event.name, event.target)):
            raise ev.Unfit(f"no plan of path {event.path} has this step")
        known.dropped += 1

    def begun(self, event: ev.CopyAsked | ev.MoveAsked | ev.ReplicaDropped) -> None:
        """Note that a copy, a move or a deletion has begun; a deletion has ended at once. It may also be no step of a
        plan."""
        key = key_of(event)
        for known in self._paths.values():
            if key is not None:
                known.begin(key)

    def done(self, event: ev.CopyEnded | ev.ServerMoved) -> None:
        """Note that a copy or a move has ended."""
        key = key_of(event)
        for known in self._paths.values():
            if key is not None:
                known.end(key)

    def server_down(self, server: str) -> None:
        """Cancel the move of a server that breaks."""
        for known in self._paths.values():
            for key in [key for key in known.under_way if key[:2] == (ev.MOVE, server)]:
                known.end(key)

    def fields(self) -> list[tuple[object, ...]]:
        """Fields of the plans of slow paths to compare states by."""
        return [
            (
                path,
                *astuple(known)[:6],
                *(tuple(map(astuple, steps.values())) for steps in known.steps),
            )
            for path, known in sorted(self._paths.items())
        ]
