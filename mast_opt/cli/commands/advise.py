"""``mast-opt advise``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.cli.options import Json, TheRun
from mast_opt.cli.slurm import SlurmOptions, advise_slurm
from mast_opt.core.errors import InputError, UsageError
from mast_opt.core.wording import shown


def command(
    host: Annotated[Literal["skypilot", "slurm"], Parameter(help="The host.")],
    task: Annotated[Path | None, Parameter(help="The task: a YAML file of SkyPilot, or a script for sbatch.")] = None,
    /,
    *,
    tables: Annotated[Path | None, Parameter(help="SkyPilot: folder with gpus.csv, data.csv, transfers.csv.")] = None,
    listen: Annotated[
        int | None,
        Parameter(help="Answer SkyPilot as its admin policy on this port instead.", validator=Number(gte=1, lte=65535)),
    ] = None,
    slurm: SlurmOptions = SlurmOptions(),
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Say where a host should run a task, without launching it.

    SkyPilot: places are ranked by what GPUs and transfers of data cost there, within quotas. docs/how-to/skypilot.md
    has the tables. Slurm: nodes, start and the jobs that it would stop, for each partition. docs/how-to/slurm.md has
    the rules.

        mast-opt advise skypilot task.yaml --tables my-tables
        mast-opt advise skypilot --tables my-tables --listen 8766
        mast-opt advise slurm train.sh
        mast-opt advise slurm --options "--nodes 4 --gres gpu:h100:8 --time 12:00:00"
    """
    if host == "slurm":
        if tables is not None or listen is not None:
            raise UsageError("--tables and --listen are for skypilot")
        return advise_slurm(run, task, slurm)
    if slurm != SlurmOptions():
        raise UsageError("--options, --from, --priority and --patience are for slurm")
    if tables is None:
        raise UsageError("expected --tables", argument="tables")
    return _advise_skypilot(run, task, tables, listen)


def _advise_skypilot(run: Run, task: Path | None, tables: Path, listen: int | None) -> Answer:
    """Places for a task, or answers over HTTP until Ctrl-C."""
    from mast_opt.live.hosts.skypilot.advice import advise, read_tables
    from mast_opt.live.hosts.skypilot.catalogue import sky_package, sky_prices

    if (task is None) == (listen is None):
        raise UsageError("expected a task or --listen, and not both")
    known, prices = read_tables(tables), sky_prices()
    if task is None:
        return _listening(run, tables, listen or 0)
    try:
        config = sky_package().Task.from_yaml(str(task)).to_yaml_config()
    except (OSError, ValueError) as error:
        raise InputError(f"{task} is no task that SkyPilot can read: {error}") from error
    found = advise(config, known, prices)
    run.record.update(
        kind="skypilot", name=task.name, choices=[asdict(one) for one in found.choices], reasons=list(found.reasons)
    )

    def show(console: Console) -> None:
        from rich.table import Table

        table = Table("infra", "GPUs of a node", "GPUs, USD", "transfer, USD", "sum, USD")
        for one in found.choices:
            paid = f"{one.gpu_usd:,.2f}{' (reserved)' * one.reserved}"
            total = f"{one.gpu_usd + one.transfer_usd:,.2f}"
            table.add_row(
                shown(one.infra), shown(f"{one.gpu_type}:{one.gpus}"), paid, f"{one.transfer_usd:,.2f}", total
            )
        console.print(table)
        for reason in found.reasons:
            console.print(shown(reason), soft_wrap=True, markup=False)

    return Answer(Exit.OK if found.choices else Exit.NO_PLAN, show)


def _listening(run: Run, tables: Path, port: int) -> Answer:
    """Answer requests until Ctrl-C."""
    from mast_opt.live.hosts.skypilot.advice import Prices, Tables, advise
    from mast_opt.live.hosts.skypilot.catalogue import sky_prices
    from mast_opt.live.hosts.skypilot.rest import server

    if run.json:
        raise UsageError("--json prints one object; expected a task with it")
    places = {("quota", place, "A"): 1 for place in ("a/a", "a/b")}
    rehearsal = {"resources": {"accelerators": "A:1"}}
    advise(rehearsal, Tables({}, places, {}), Prices(lambda *_: 1.0, float))  # kernels compile; SkyPilot waits 30 s
    try:
        with server(tables, sky_prices(), port) as policy:
            run.say(f"Answering SkyPilot on http://127.0.0.1:{port} until Ctrl-C.")
            policy.serve_forever()
    except OSError as error:
        raise UsageError(f"cannot listen on port {port}: {error}") from error
    return Answer(Exit.OK, lambda console: None)
