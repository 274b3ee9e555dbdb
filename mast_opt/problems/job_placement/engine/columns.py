"""Columns of the arrays of ``EngineState``: what each row of its first axis holds."""

S_GROUP, S_RACK, S_DEVICES, S_BLOCKED, S_ROW, S_VALUE, S_DIRTY, S_SIZE = range(8)
"""Columns of a server: group, rack, devices, 1 if it takes no work, first allocation or −1, value of what is free
(outside rounds), bits for what is out of date here (one for each slot of losses, and VALUE_DIRTY), and milli-GPUs of a
device. A device is a GPU; only a pool, a server whose GPUs have no numbers, has one device of more than ``WHOLE``."""
G_START, G_TYPE, G_REGION, G_ENTRY = range(4)
"""Columns of a group: first server, GPU type, region; and the groups once more, by region and first server as
listed."""
R_START, R_RANK, R_MGPU, R_USED = range(4)
"""Columns of a region: first of its entries among the groups by region, place as listed, milli-GPUs, milli-GPUs in
use."""
A_WHOLE, A_FREE, A_CPU, A_MEMORY = range(4)
"""Columns of the room that work of a tier finds on a server: whole GPUs, milli-GPUs, millicores, MiB (−1 on blocked
servers)."""
C_MGPU, C_CPU, C_MEMORY, C_LEAST, C_DENSITY = range(5)
"""Columns of what jobs whose limit is at least p hold on a server: three amounts, the smallest cost of one of them, the
smallest cost per milli-GPU that one of them holds anywhere (both NEVER where there is none)."""
T_WHOLE, T_FREE, T_RECLAIM = range(3)
"""Totals of a group: whole GPUs, milli-GPUs, milli-GPUs held by jobs whose limit is at least p."""
J_TIER, J_LIMIT, J_COST, J_MGPU, J_FRESH, J_ROW, J_MARK, J_BEGAN, J_EVERY, J_LOOKED, J_STACK = range(11)
"""Columns of a running job: tier; limit: work of tier p may stop it if p is below this (its tier where it may be
stopped by more important work, 0 where it may not be stopped); cost; milli-GPUs in all; 1 if it was placed in this
round (and so counts only in the columns up to its tier); first allocation or −1; scratch (−1); ms when its work
began (−1: not known), ms between its checkpoints (0: no work is ever lost), ms for which its cost is that of the work
since the last one (−1: the cost was given); and free places on a stack."""
L_JOB, L_SERVER, L_CPU, L_MEMORY, L_NEXT, L_AFTER, L_BEFORE, L_STACK = range(8)
"""Columns of an allocation: job, server, millicores, MiB, the job's next one, the server's next and previous one (−1 at
the ends), and free places on a stack."""
N_JOBS, N_ROWS, N_ROUND, N_LARGEST = range(4)
"""Columns of the counts: places on the two stacks that are valid; 1 in a round, when tiers may find different room on a
server; milli-GPUs of the largest server, at least one GPU."""
