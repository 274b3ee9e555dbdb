"""Results of benchmarks: their store, and the figures computed from them."""
