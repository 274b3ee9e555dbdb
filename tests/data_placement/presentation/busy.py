"""The workshop (``tests.data_placement.workshop``) with too little supply, and a plan that moves much of it.

    region  usable  cores  h100  a100      dataset  size  today  plan
    a       20 TB   100    8     –         logs     4 TB  a, c   a, b
    b       27 TB   40     5     16        images   6 TB  a, b   b, c
    c       –       –      –     3         video    5 TB  –      a, c

``train`` (output 3 TB) moves from a to b, of ``etl`` (1 TB) 600 stay in a, 300 go to c and 100 are left out, ``view``
(2 TB) stays in c. The presentation shows any plan, so this one may break rules.
"""

from __future__ import annotations

from dataclasses import replace

from tests.data_placement.workshop import (
    A100,
    ETL,
    H100,
    IMAGES,
    LOGS,
    NO_GPU,
    PLAN,
    PROBLEM,
    TB,
    TRAIN,
    VIDEO,
    VIEW,
    A,
    B,
    C,
    grid,
    ints,
)

BUSY = PROBLEM.with_columns(
    {
        "regions.supply_mgpu": ints((8, 0), (5, 16), (0, 3)) * 1000,
        "regions.storage_mb": ints(20, 30, 0) * TB,
        "regions.cpu_mcores": ints(100, 40, 0) * 1000,
        "datasets.size_mb": ints(4, 6, 5) * TB,
        "datasets.stored": grid((LOGS, A), (LOGS, C), (IMAGES, A), (IMAGES, B)),
        "workloads.output_mb": ints(3, 1, 2) * TB,
        "current_runs.workload": ints(TRAIN, ETL, VIEW),
        "current_runs.region": ints(A, A, C),
        "current_runs.gpu_type": ints(H100, NO_GPU, A100),
        "current_runs.share": ints(1000, 1000, 1000),
        "may_refuse": True,
    }
)

MOVED = replace(
    PLAN,
    place=grid((LOGS, A), (LOGS, B), (IMAGES, B), (IMAGES, C), (VIDEO, A), (VIDEO, C)),
    run_share=ints(1000, 600, 300, 1000),
    copy_dataset=ints(LOGS, IMAGES, IMAGES),
    copy_source=ints(C, A, B),
    copy_target=ints(B, C, C),
    copy_share=ints(1000, 250, 750),
    remote_workload=ints(TRAIN, ETL, ETL, VIEW),
    remote_dataset=ints(LOGS, LOGS, LOGS, LOGS),
    remote_source=ints(A, A, B, A),
    remote_target=ints(B, C, C, C),
    remote_share=ints(1000, 200, 100, 1000),
)
"""``view`` does not read logs, so the last remote read counts for nothing."""
