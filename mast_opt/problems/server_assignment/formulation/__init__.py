"""The mixed-integer program of server assignment: index sets, the formulation, and the codec of plans."""
