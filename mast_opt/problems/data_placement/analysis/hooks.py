"""Analysis hooks of data placement: what can be asked of it beyond a plan."""

from __future__ import annotations

from mast_opt.problems.data_placement.analysis.alternatives import WORKLOAD_CHOICES
from mast_opt.problems.data_placement.analysis.change_groups import change_groups
from mast_opt.problems.data_placement.analysis.dataset_alternatives import DATASET_CHOICES
from mast_opt.problems.data_placement.analysis.elastic_program import relief
from mast_opt.problems.data_placement.analysis.joint_periods import JOINT
from mast_opt.problems.data_placement.analysis.losses import adapted, settle_loss
from mast_opt.problems.data_placement.analysis.purchases import EXPANSION
from mast_opt.problems.data_placement.analysis.risk import risk
from mast_opt.problems.data_placement.analysis.scenarios import (
    CHANGES,
    RESOURCES,
    carried,
    moved,
    priced,
    unhurried,
    with_replicas,
)
from mast_opt.problems.data_placement.analysis.two_stage import TWO_STAGE
from mast_opt.problems.data_placement.plan import today
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks
from mast_opt.problems.kind.rolling import Rolling

QUESTIONS = AnalysisHooks(
    relief=relief,
    choices=(WORKLOAD_CHOICES, DATASET_CHOICES),
    resources=RESOURCES,
    changes=CHANGES,
    priced=priced,
    moved=moved,
    guards=lambda problem: ("unserved",) if problem.may_refuse else (),
    two_stage=TWO_STAGE,
    adapted=adapted,
    loss=settle_loss,
    risk=risk,
    expansion=EXPANSION,
    change_groups=change_groups,
    rolling=Rolling(carried, unhurried, with_replicas, today, JOINT),
)
