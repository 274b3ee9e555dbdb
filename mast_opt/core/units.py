"""Units: base units of the arrays in one unit of the files, and bytes.

Arrays hold integers in base units: MB, thousandths of GPUs, cores and RRU, MiB, millionths of prices.
"""

MILLI = 1000
"""Thousandths: of a GPU, a core, an RRU, a GPU-hour, a share."""
MICRO = 1_000_000
"""Millionths: of a dollar, a cost."""
MB_PER_TB = 1_000_000
HOURS_A_MONTH = 730
"""Hours of the average month, 365 / 12 days, as cloud prices count them."""
MIB_PER_GIB = 1024

MIB, GIB = 2**20, 2**30
"""Bytes of a mebibyte and of a gibibyte."""
