"""Amounts as a planner says them."""

from __future__ import annotations

from fractions import Fraction

from mast_opt.words import counted


def tb(mb: float) -> str:
    return f"{mb / 1e6:.12g} TB"


def cores(mcores: float) -> str:
    return f"{mcores / 1000:.12g} cores"


def gpus(mgpu: float) -> str:
    return f"{mgpu / 1000:.12g} GPUs"


def copies(number: int) -> str:
    return counted(number, "copy", "copies")


def days(number: Fraction) -> str:
    return counted(float(number), "day")
