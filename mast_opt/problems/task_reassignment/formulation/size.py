"""Size of the task-reassignment MIP before it is built, counted from needs and services."""

import numpy as np

from mast_opt.problems.mip.size import Size
from mast_opt.problems.task_reassignment.problem import TaskReassignment


def size(problem: TaskReassignment) -> Size:
    """Exact but for what counts too often: what a process holds of transient resources on its machine of today, and
    balance goals on machines where they do not count."""
    p = problem
    processes, machines, services = len(p.processes), len(p.machines), len(p.services)
    loads, goals = machines * len(p.resources), machines * len(p.balances.target)
    needs = machines * int(np.count_nonzero(p.processes.need))
    short = p.processes.need[:, p.balances.second] - p.balances.target * p.processes.need[:, p.balances.first]
    shortages = machines * int(np.count_nonzero(short))
    several, spread = p.service_size > 1, (p.services.spread_min > 1) & (p.service_size > 0)
    hosts = int(spread.sum()) * len(p.locations)
    between = p.dependencies.service != p.dependencies.needs
    members, helpers = p.service_size[p.dependencies.service[between]], p.service_size[p.dependencies.needs[between]]
    return Size.of(
        {"x": processes * machines, "over": loads, "missing": goals, "most_moved": 1, "hosts": hosts},
        {
            "assigned": (processes, processes * machines),
            "capacity": (loads, needs),
            "load": (loads, needs + loads),
            "balance": (goals, shortages + goals),
            "conflict": (int(several.sum()) * machines, int(p.service_size[several].sum()) * machines),
            "present": (hosts, int(p.service_size[spread].sum()) * machines + hosts),
            "spread": (int(spread.sum()), hosts),
            "dependency": (
                int(members.sum()) * len(p.neighbourhoods),
                int((members * (1 + helpers)).sum()) * machines,
            ),
            "moved": (services, services + processes),
        },
    )
