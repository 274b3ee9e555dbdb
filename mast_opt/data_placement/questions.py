"""What can be asked of data placement beyond a plan."""

from __future__ import annotations

from mast_opt.data_placement.choices import CHOICES
from mast_opt.data_placement.losses import adapted, settle_loss
from mast_opt.data_placement.relief import relief
from mast_opt.data_placement.resources import RESOURCES
from mast_opt.data_placement.risk import risk
from mast_opt.data_placement.scenarios import CHANGES, moved, priced
from mast_opt.data_placement.two_stage import TWO_STAGE
from mast_opt.questions import Questions

QUESTIONS = Questions(
    relief=relief,
    choices=CHOICES,
    resources=RESOURCES,
    changes=CHANGES,
    priced=priced,
    moved=moved,
    guards=lambda problem: ("unserved",) if problem.may_refuse else (),
    two_stage=TWO_STAGE,
    adapted=adapted,
    loss=settle_loss,
    risk=risk,
)
