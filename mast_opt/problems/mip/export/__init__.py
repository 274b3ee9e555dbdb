"""MIP export: a program as an .lp or .mps file that people can read and solvers can load."""

from mast_opt.problems.mip.export.lp import write_lp
from mast_opt.problems.mip.export.mps import write_mps

__all__ = ["write_lp", "write_mps"]
