"""``python -m mast_opt`` is the command ``mast-opt``."""

import sys

from mast_opt.cli import main

if __name__ == "__main__":
    sys.exit(main())
