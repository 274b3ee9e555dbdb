"""Constants of searches that the pages of heuristics state in words are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_opt.problems.data_placement.tetris.annealing.params import CoolingParams
from mast_opt.problems.data_placement.tetris.gibbs.params import GibbsParams
from mast_opt.problems.data_placement.tetris.lagrangian.params import RelaxationParams
from mast_opt.problems.data_placement.tetris.plan_limits import PlanLimitParams
from mast_opt.problems.data_placement.tetris.sub_mip.params import NeighbourhoodParams
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveRepairParams
from mast_opt.problems.server_assignment.ras.params import RasParams
from mast_opt.problems.task_reassignment.twine.params import PriceParams, RaceParams, TwineParams

PAGES = Path(__file__).parents[1] / "docs" / "heuristics"
NUMBERS = {4: "four", 5: "five", 6: "six", 20: "twenty"}
COLD, RACE, RAS = CoolingParams(), RaceParams(), RasParams()
STATED = [
    ("tetris", f"the mean cost of a workload to {COLD.cold} of it"),
    ("tetris", f"{NUMBERS[int(COLD.no_remote_reads)]} times as high where remote reads are forbidden"),
    ("tetris", f"Cores have such prices from {GibbsParams.core_level:.1%} utilisation on"),
    ("tetris", f"remote reads and copies {NUMBERS[int(NeighbourhoodParams.link_surcharge)]} times as expensive"),
    ("tetris", f"by {PlanLimitParams.first:.0%} of the objective, then {PlanLimitParams.factor:.0f} times as much"),
    ("tetris", f"At most {NUMBERS[PlanLimitParams.searches]} searches share the time"),
    ("tetris-bound", f"Its primal steps are {RelaxationParams.primal_step} times as long"),
    ("exhaustive-repair", f"solved exactly from the best plan so far, in {ExhaustiveRepairParams.whole_share:.0%} of"),
    ("ras", f"stays above {RAS.lp_gap:.0%} and there are at most {RAS.lp_pairs:,} pairs"),
    ("ras", f"{RAS.lp_pairs:,} pairs for the linear relaxation is `lp_pairs`, {RAS.lp_gap:.0%} is `lp_gap`"),
    ("ras", f"{RAS.sub_mip_most_pairs:,} pairs for sub-MIPs"),
    ("twine", f"From {TwineParams().many_processes:,} processes on"),
    ("twine", f"being away from home costs {TwineParams.near_away:.0f}T"),
    ("twine", "at {:.0%}, {:.0%} and {:.0%} of it".format(*RACE.rungs)),
    ("twine", f"excess is {NUMBERS[int(PriceParams.stricter)]} times as expensive"),
]


@pytest.mark.parametrize(("page", "words"), STATED)
def test_pages_state_the_constants_of_the_code(page: str, words: str) -> None:
    assert words in " ".join((PAGES / f"{page}.md").read_text(encoding="utf-8").split())
