"""Schedulers of the literature, each as a function of what its paper takes as input.

    from mast_opt.live.policies import hydra

    hydra.split(100, headroom=[40, 0, 10], weights=[0.1, 0.1, 0.1])

The docstring of a module says which decision of the system it makes; ``docs/policies.md`` says what is modelled, what
is reconstructed and what is left out. Modules are imported by name, and load what they need.
"""
