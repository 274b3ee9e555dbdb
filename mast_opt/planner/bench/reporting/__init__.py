"""Pages, tables and plots from the results of benchmarks."""
