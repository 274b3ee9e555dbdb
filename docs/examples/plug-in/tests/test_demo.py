"""The heuristic and the policy, found by their names. Run with ``python -m pytest`` where the package is installed."""

from pathlib import Path

import mast_opt

FLEET = mast_opt.generate("server-assignment", seed=1, servers=20, reservations=2)

TRACE = {
    "instance.toml": 'format = "mast-opt/1"\nkind = "job-trace"\nname = "three jobs"\n',
    "regions.csv": "region\na\n",
    "clusters.csv": "cluster,region\nc,a\n",
    "servers.csv": "server,cluster,rack,gpu_type,gpus,cpu_cores,memory_gb\ns,c,r,h100,8,0,0\n",
    "submissions.csv": "job,submitted_s,tier,tasks,gpus,duration_s\n"
    "large,0,0,8,1,60\nmiddle,0,0,4,1,60\nsmall,0,0,2,1,60\n",
}


def test_hill_climb_improves_today() -> None:
    found = mast_opt.solve(FLEET, "hill-climb", iterations=300)
    again = mast_opt.solve(FLEET, "hill-climb", iterations=300)
    best = mast_opt.solve(FLEET, "highs", gap=0.0)
    today = next(event.incumbent for event in found.events if event.incumbent is not None)
    assert best.objective <= found.objective == again.objective < today


def test_smallest_first_places_the_smallest_first(tmp_path: Path) -> None:
    for name, text in TRACE.items():
        (tmp_path / name).write_text(text)
    run = mast_opt.simulate(tmp_path, "smallest-first")
    placed = [stored.event.job for stored in run.events() if type(stored.event).__name__ == "Placed"]
    assert placed == ["small", "middle", "large"]
