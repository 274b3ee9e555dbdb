"""The mixed-integer program of data placement: index sets, variables, limits, objective, and the codec of plans."""
