"""The mixed-integer program of job placement: index sets, the formulation, and the codec of plans."""
