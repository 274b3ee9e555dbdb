"""mast-opt: data placement, job placement and server assignment for machine-learning training over many regions."""
