"""Holdings of work that runs already (job-placement engine), whether there is room for it or not."""

from mast_opt.core.jit import entry
from mast_opt.problems.job_placement.engine.capacity_ledger import new_job, new_row, start
from mast_opt.problems.job_placement.engine.state import EngineState, Small
from mast_opt.problems.job_placement.units import Ints


@entry
def hold(state: EngineState, tier: int, limit: int, cost: int, rows: Ints, device: Small, fresh: bool) -> int:
    """A job holds this from now on; returns its place among the running jobs.

    Args:
        rows: [A, 3] position, millicores, MiB of what it holds on each server.
        device: [A, D] milli-GPUs of each GPU.
        fresh: in a round.
    """
    number = new_job(state, tier, limit, cost, fresh)
    for row in range(len(rows)):
        new_row(state, number, rows[row, 0], rows[row, 1], rows[row, 2], device[row])
    start(state, number, tier if fresh else state.room.shape[1] - 1)
    return number
