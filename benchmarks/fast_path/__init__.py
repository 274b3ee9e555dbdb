"""How close the fast path comes to proven optima, and what early binding costs.

python -m benchmarks.fast_path [--results benchmarks/fast_path/records.jsonl] [--page docs/benchmarks/fast-path.md]

instances    which generated batches
runs         solving them, one record a run, so that a stopped study goes on where it was
figures      what the records say
plots, page  and how it is shown
"""
