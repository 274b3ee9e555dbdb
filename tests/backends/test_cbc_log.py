"""What CBC prints, read back: lines as CBC 2.10.3 wrote them."""

from __future__ import annotations

import pytest

from mast_opt.problems.backends.cbc import CbcLog

SEARCH = """\
Continuous objective value is 81.8567 - 0.00 seconds
Cbc0012I Integer solution of 83.058061 found by feasibility pump after 0 iterations and 0 nodes (0.15 seconds)
Cbc0010I After 0 nodes, 1 on tree, 83.058061 best solution, best possible 81.878677 (0.71 seconds)
Cbc0004I Integer solution of 82.5 found after 310 iterations and 20 nodes (0.90 seconds)
Cbc0005I Partial search - best objective 82.5 (best possible 81.9), took 4380 iterations and 298 nodes (3.01 seconds)
Lower bound:                    81.900
"""


def read(text: str) -> CbcLog:
    log = CbcLog()
    for line in text.splitlines():
        log.feed(line)
    return log


def test_incumbent_and_bound_with_room_for_hidden_digits() -> None:
    log = read(SEARCH)
    assert log.incumbent == 82.5
    assert log.bound is not None
    assert 81.8999 < log.bound < 81.9
    assert log.misunderstood == []


def test_a_solution_in_the_making() -> None:
    log = read("Cbc0038I Solution found of 122.938")
    assert log.sighted
    assert log.incumbent is None


def test_what_cbc_says_before_it_crashes() -> None:
    assert read("Problem is infeasible - tightenPrimalBounds!").infeasible
    assert not read(SEARCH).infeasible


def test_no_solution_and_no_bound() -> None:
    nothing = "Cbc0010I After 0 nodes, 1 on tree, 1e+50 best solution, best possible -1e+50 (0.49 seconds)"
    assert (read(nothing).incumbent, read(nothing).bound) == (None, None)


@pytest.mark.parametrize(
    "line",
    [
        "No match for bogus - ? for list of commands",
        "String of 7x is illegal for double parameter ratioGap value remains 0",
        "<Possible options for cutsOnOff are: off on root ifmove forceOn;",
        "999999 was provided for maxNodes - valid range is 0 to 10",
    ],
)
def test_options_that_cbc_did_not_take(line: str) -> None:
    assert read(line).misunderstood == [line]


def test_the_end_of_the_log_is_kept_for_errors() -> None:
    assert list(read("\n".join(map(str, range(40)))).tail) == [str(i) for i in range(25, 40)]
