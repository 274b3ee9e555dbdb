"""What can be asked of data placement beyond a plan."""

from __future__ import annotations

from mast_opt.data_placement.choices import CHOICES
from mast_opt.data_placement.relief import relief
from mast_opt.questions import Questions

QUESTIONS = Questions(relief=relief, choices=CHOICES)
