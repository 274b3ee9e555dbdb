"""``mast-opt simulate --kueue``: which workloads of a folder of YAML would start where, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Run
from mast_opt.core.wording import counted, shown

if TYPE_CHECKING:
    from rich.console import Console


def advise_folder(run: Run, folder: Path) -> Answer:
    """Advice for every workload that waits, as a table; in JSON, ``workloads``."""
    from mast_opt.hosts.kueue.manifests import read_manifests
    from mast_opt.hosts.kueue.nomination import advise

    with run.phase("read", f"reading {folder}"):
        picture = read_manifests(folder)
    with run.phase("solve"):
        found = advise(picture.clusters, picture.waiting, replicas=picture.replicas)
    run.record.update(
        kind="kueue",
        name=folder.name,
        workloads=[
            {
                "workload": one.workload.key,
                "priority": one.workload.priority,
                "clusters": list(one.clusters),
                "stops": [name.partition(": ")[2] for name in one.victims],
                "reasons": dict(one.reasons),
            }
            for one in found
        ],
    )

    def show(console: Console) -> None:
        from rich.table import Table

        table = Table("workload", "priority", "cluster", "why")
        for one in found:
            first = one.clusters[0] if one.clusters else "waits"
            table.add_row(shown(one.workload.key), str(one.workload.priority), shown(first), shown(one.words))
        console.print(table)
        starting = sum(bool(one.clusters) for one in found)
        console.print(f"{counted(starting, 'workload')} of {len(found)} can start; {len(found) - starting} wait.")

    return Answer(Exit.OK, show)
