"""``mast-opt advise slurm``."""

import shlex
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.core.errors import InputError, UsageError
from mast_opt.core.wording import counted, shown


@Parameter(name="*")
@dataclass(frozen=True)
class SlurmOptions:
    """Options of ``advise slurm``."""

    options: Annotated[
        str | None,
        Parameter(help="Slurm: options of sbatch; they count before the script's.", allow_leading_hyphen=True),
    ] = None
    source: Annotated[
        Path | None,
        Parameter(name="--from", help="Slurm: a folder with what its programs printed, instead of calling them."),
    ] = None
    priority: Annotated[
        int | None,
        Parameter(help="Slurm: the job's priority; unless given, it is behind all others of its tier."),
    ] = None
    patience: Annotated[
        float,
        Parameter(help="Slurm: seconds that each program may take.", validator=Number(gt=0, lte=3600)),
    ] = 20.0


def advise_slurm(run: Run, script: Path | None, options: SlurmOptions) -> Answer:
    """Say where and when a job would start. Raises UsageError, InputError."""
    from mast_opt.live.hosts.slurm.forecast import forecast
    from mast_opt.live.hosts.slurm.reading import cluster_of, texts_now, texts_of
    from mast_opt.live.hosts.slurm.request import ask_of, script_options

    if script is None and options.options is None:
        raise UsageError("expected a script or --options")
    try:
        written = script_options(script.read_text(encoding="utf-8")) if script else []
        ask = ask_of([*written, *shlex.split(options.options or "")])
    except (OSError, ValueError) as error:
        raise InputError(f"{script or '--options'} cannot be read: {error}") from error
    texts, now_s = texts_of(options.source) if options.source else texts_now(options.patience)
    cluster = cluster_of(texts, now_s)
    found = forecast(cluster, ask, options.priority)
    reasons = list(found.reasons)
    if cluster.idle_waiting:
        reasons.append(f"{counted(cluster.idle_waiting, 'job')} held or waiting for something else: not counted")
    run.record.update(kind="slurm", now_s=now_s, starts=[asdict(one) for one in found.starts], reasons=reasons)

    def show(console: Console) -> None:
        from rich.table import Table

        table = Table("partition", "starts", "nodes", "stops jobs", "within")
        for one in found.starts:
            at = "now" if one.at_s <= now_s else datetime.fromtimestamp(one.at_s).strftime("%Y-%m-%dT%H:%M:%S")
            stops = ", ".join(map(str, one.stops)) or "none"
            table.add_row(shown(one.partition), at, shown(",".join(one.nodes)), stops, shown(one.within))
        console.print(table)
        for reason in reasons:
            console.print(shown(reason), soft_wrap=True, markup=False)

    return Answer(Exit.OK if found.starts else Exit.NO_PLAN, show)
