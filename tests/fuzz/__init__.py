"""Random damage to files that mast-opt reads."""
