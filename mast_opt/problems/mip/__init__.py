"""Mixed-integer programs: the standard form, a builder with named index blocks, scaling, export."""

from mast_opt.problems.mip.builder import MipBuilder, RowBlock
from mast_opt.problems.mip.program import Axis, Block, Mip, Term, frozen
from mast_opt.problems.mip.scaling import Scaled, scale
from mast_opt.problems.mip.size import Size
from mast_opt.problems.mip.transforms import unnamed

__all__ = [
    "Axis",
    "Block",
    "Mip",
    "MipBuilder",
    "RowBlock",
    "Scaled",
    "Size",
    "Term",
    "frozen",
    "scale",
    "unnamed",
]
