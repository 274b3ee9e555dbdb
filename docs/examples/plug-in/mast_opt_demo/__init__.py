"""A heuristic and a policy for mast-opt."""
