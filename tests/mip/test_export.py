"""Files of programs: read back by HiGHS (and SCIP), with names that people can read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import highspy
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mast_opt.problems.mip import Mip, MipBuilder
from mast_opt.problems.mip.export import write_lp, write_mps
from tests.backends.programs import INF, DenseRow, enumerated, program, small_random
from tests.platforms import needs


def read(path: Path) -> highspy.Highs:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    return solver


TIGHT = {f"{which}_feasibility_tolerance": 1e-9 for which in ("primal", "dual", "mip")}
WAYS: tuple[dict[str, float], ...] = ({}, TIGHT, {"simplex_scale_strategy": 0})
"""HiGHS errs once in a thousand of these programs, whose rows are in billions and costs in hundred-thousandths.
Two of these ways to solve rarely err on the same one, and none makes up for a coefficient written wrongly."""


def outcome(path: Path, options: dict[str, float]) -> float | highspy.HighsModelStatus:
    """The minimum, or the status where HiGHS has none."""
    solver = read(path)
    for name, value in {"presolve": "off", **options}.items():
        assert solver.setOptionValue(name, value) == highspy.HighsStatus.kOk
    solver.run()
    status = solver.getModelStatus()
    return float(solver.getInfo().objective_function_value) if status == highspy.HighsModelStatus.kOptimal else status


def labelled(labels: list[str], rows: list[str]) -> Mip:
    m = MipBuilder("named things")
    x = m.columns("place", [labels, ["eu-west", "us east"]], upper=1, integral=True)
    m.rows("storage", [rows], upper=1).add(np.arange(len(rows)), x[0, 0])
    m.term("cost", x, -1.0)
    return m.build({"cost": 1.0})


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), continuous=st.booleans())
def test_read_back_with_the_same_minimum(tmp_path: Path, seed: int, continuous: bool) -> None:
    mip = small_random(seed, continuous=continuous)
    expected = enumerated(mip)
    for write, name in ((write_lp, "m.lp"), (write_mps, "m.mps")):
        write(mip, tmp_path / name)
        infeasible = highspy.HighsModelStatus.kInfeasible
        wanted = infeasible if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert wanted in [outcome(tmp_path / name, options) for options in WAYS]


def test_mps_reads_back_as_the_very_same_arrays(tmp_path: Path) -> None:
    big = 999_999_999_999_999.0
    rows: list[DenseRow] = [
        ([big, 1 / 3, 0], -INF, big),
        ([1, 0, 1e-6], 0.1, 0.3),
        ([0, 1, 0], 2, 2),
        ([0, 0, 0], -1, INF),
    ]
    mip = program(
        [0.1, -1e12, 0], rows, lower=[-INF, -3, 0], upper=[INF, -1, INF], integral=[False, True, True], offset=-7.25
    )
    write_mps(mip, tmp_path / "m.mps")
    lp = read(tmp_path / "m.mps").getLp()
    assert lp.offset_ == 0
    for name, expected in (  # the constant of the objective is one column more, fixed at 1
        ("col_cost_", [*mip.cost, mip.offset]),
        ("col_lower_", [*mip.col_lower, 1]),
        ("col_upper_", [*mip.col_upper, 1]),
        ("row_lower_", mip.row_lower),
        ("row_upper_", mip.row_upper),
    ):
        np.testing.assert_array_equal(getattr(lp, name), expected, err_msg=name)
    matrix = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape).tocsc()
    np.testing.assert_array_equal(lp.a_matrix_.value_, matrix.data)
    np.testing.assert_array_equal(lp.a_matrix_.index_, matrix.indices)
    assert [kind == highspy.HighsVarType.kInteger for kind in lp.integrality_] == [*mip.integral, False]
    assert lp.col_names_ == [*mip.column_names(), "constant"]
    assert lp.row_names_ == list(mip.row_names())


def test_lp_keeps_columns_bounds_and_integers_exactly(tmp_path: Path) -> None:
    big = 999_999_999_999_999.0
    mip = program(
        [0.1, 0, -1e-7, 3],
        [([big, 0, 1 / 3, 0], -big, big), ([1, 0, 0, 0], 0.1, 0.1)],
        lower=[-INF, -3, 0, -INF],
        upper=[INF, -1, INF, 5],
        integral=[False, True, True, False],
    )
    write_lp(mip, tmp_path / "m.lp")
    lp = read(tmp_path / "m.lp").getLp()
    order = [lp.col_names_.index(name) for name in ("x(0)", "x(1)", "x(2)", "x(3)")]
    np.testing.assert_array_equal(np.array(lp.col_lower_)[order], mip.col_lower)
    np.testing.assert_array_equal(np.array(lp.col_upper_)[order], mip.col_upper)
    np.testing.assert_array_equal(np.array(lp.col_cost_)[order], mip.cost)
    assert lp.row_names_ == ["row(0)~lower", "row(0)~upper", "row(1)"]
    assert sorted(map(float, lp.a_matrix_.value_)) == [1 / 3, 1 / 3, 1.0, big, big]
    np.testing.assert_array_equal(lp.row_lower_, [-big, -INF, 0.1])


def test_names_are_readable(tmp_path: Path) -> None:
    mip = labelled(["logs", "clicks"], ["a"])
    write_mps(mip, tmp_path / "m.mps")
    write_lp(mip, tmp_path / "m.lp")
    expected = ["place[logs,eu-west]", "place[logs,us_east]", "place[clicks,eu-west]", "place[clicks,us_east]"]
    assert read(tmp_path / "m.mps").getLp().col_names_ == expected
    assert read(tmp_path / "m.lp").getLp().col_names_[0] == "place(logs,eu_west)"
    for name in ("m.lp", "m.mps"):
        assert "is written" in (tmp_path / name).read_text() or "written _" in (tmp_path / name).read_text()


@pytest.mark.parametrize("write", [write_lp, write_mps])
def test_no_name_comes_twice_or_is_misread(tmp_path: Path, write: object) -> None:
    labels = ["a b", "a_b", "a\tb", "é", "ü", "x" * 400, "x" * 401, "5", "$", ":", "+", "*", "\\", '"', "<=", "a]b[c"]
    rows = ["end", "free", "r~0", "1e5", "Ω"]
    mip = labelled(labels, rows)
    write(mip, tmp_path / "m")  # type: ignore[operator]
    path = tmp_path / f"m.{'lp' if write is write_lp else 'mps'}"
    (tmp_path / "m").rename(path)
    lp = read(path).getLp()
    assert lp.num_col_ == len(set(lp.col_names_)) == 2 * len(labels)
    assert lp.num_row_ == len(set(lp.row_names_)) == len(rows)


@pytest.mark.parametrize(
    "name", ["free", "inf", "infra", "nano", "e5", "end", "obj", "min", "constant", "RHS", "bounds", "3d"]
)
def test_blocks_named_like_a_keyword(tmp_path: Path, name: str) -> None:
    m = MipBuilder(name)
    x = m.columns(name, [], upper=4)
    y = m.columns(f"{name}_", [], upper=4)
    m.rows(name, [], lower=3).add(0, x).add(0, y)
    m.term("cost", np.array([x, y]).ravel(), np.array([2.0, 1.0]), constant=10.0)
    mip = m.build({"cost": 1.0})
    for write, file in ((write_lp, "m.lp"), (write_mps, "m.mps")):
        write(mip, tmp_path / file)
        assert outcome(tmp_path / file, {}) == pytest.approx(13.0)


def test_programs_without_rows_or_columns(tmp_path: Path) -> None:
    for mip in (program([1.0, -1.0]), program([0.0], [([0.0], -INF, INF)])):
        write_mps(mip, tmp_path / "m.mps")
        write_lp(mip, tmp_path / "m.lp")
        assert read(tmp_path / "m.mps").getLp().num_col_ == len(mip.cost)
        assert read(tmp_path / "m.lp").getLp().num_col_ == len(mip.cost)


def test_scip_reads_the_same(tmp_path: Path) -> None:
    import pyscipopt

    for seed in range(6):
        mip = replace(small_random(seed, continuous=True), offset=3.5)
        expected = enumerated(mip)
        for write, name in ((write_lp, "m.lp"), (write_mps, "m.mps")):
            write(mip, tmp_path / name)
            model = pyscipopt.Model()
            model.hideOutput()
            model.readProblem(str(tmp_path / name))
            model.optimize()
            if expected is None:
                assert model.getStatus() == "infeasible"
            else:
                assert model.getObjVal() == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.lp"
    path.write_text("old")
    mip = program([1.0])
    monkeypatch.setattr(Path, "replace", lambda self, target: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_lp(mip, path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.lp"]
    with pytest.raises(OSError, match="absent"):
        write_mps(mip, tmp_path / "absent" / "m.mps")


@needs("mode bits")
def test_files_have_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_mps(program([1.0]), tmp_path / "m.mps")
    assert (tmp_path / "m.mps").stat().st_mode == (tmp_path / "plain").stat().st_mode
