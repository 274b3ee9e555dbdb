"""Jobs that are faster on some GPU types: work is counted at the rate of where it is done, and conserved."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Start, Stop
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.job_log import job_log
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.simulation.driver import simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.problems.job_placement.live_fleet.types import Server, Share

SPEEDS = Speeds({("lm", "h100", 1): 7, ("lm", "k80", 1): 3, ("lm", "h100", 2): 12, ("lm", "k80", 2): 5})
SERVERS = tuple(Server(f"{kind}-{n}", "r", kind, "k", kind, 2, 0, 0) for kind in ("h100", "k80") for n in range(2))
KINDS = {server.name: server.gpu_type for server in SERVERS}


def test_an_attempt_is_paid_at_its_rate() -> None:
    spec = JobSpec(model="lm")
    host = SimulatedHost({"a": Work(1000, 100, 10)}, lambda job, server, other, tasks: SPEEDS.rate(spec, KINDS[server]))
    host.carry_out(0, Start("a", 1, (Share("k80-0", 1, {0: 1000}),)))
    assert host.next_ms() == 0
    host.answers(0)
    assert host.next_ms() == 2334  # 1000 / 0.428571
    host.carry_out(250, Stop("a", 1, ""))
    assert host.answers(250) == [ev.Stopped("a", 1, 85, 21, 200, 50)]  # 200 ms and 50 ms at 0.428571
    host.carry_out(300, Start("a", 2, (Share("h100-0", 1, {0: 1000}),)))
    host.answers(300)
    assert host.next_ms() == 310 + 915  # 1000 - 85.7142 at full speed
    assert host.answers(1225) == [ev.Finished("a", 2, 915)]


@pytest.mark.parametrize("seed", range(3))
def test_work_is_conserved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    specs, happenings = {}, []
    for number in range(60):
        tier, tasks = int(rng.integers(3)), int(rng.integers(1, 3))
        spec = JobSpec(
            tier=tier, tasks=tasks, preemptible=tier > 0, checkpoint_ms=30, restart_ms=5,
            duration_ms=int(rng.integers(1, 400)), model="lm" if number % 4 else "",
        )  # fmt: skip
        specs[f"j{number}"] = spec
        happenings.append((number * 9, ev.Submitted(f"j{number}", spec)))
    work = {name: Work(spec.duration_ms or 0, 30, 5) for name, spec in specs.items()}
    log: list[ev.Stored] = []
    host = SimulatedHost(
        work, lambda job, server, other, tasks: SPEEDS.rate(specs[job], KINDS[server], specs.get(other))
    )
    engine = Engine(State(SERVERS, tiers=range(3)), Mast())
    simulate(engine, host, happenings, on_turn=lambda turn: log.extend(turn.events))
    assert check_log(log, all_end=True, durations=True, speeds=SPEEDS.alone) == ()
    held = metrics(job_log(log)).held_gpu_s
    assert held.lost > 0
    assert held.restarting > 0
    assert held.unfinished == 0
    assert held.all == pytest.approx(held.useful + held.lost + held.restarting, rel=1e-12)

    slow = {key: speed if key[1] == "h100" else 1 for key, speed in SPEEDS.alone.items()}
    found = check_log(log, durations=True, speeds=slow)
    assert {violation.what for violation in found} == {"work"}
    assert any("has finished after" in violation.words for violation in found)
    assert any("cannot have kept" in violation.words for violation in found)
