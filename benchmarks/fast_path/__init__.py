"""How close the fast path comes to proven optima, and what early binding costs.

python -m benchmarks.fast_path [--results benchmarks/fast_path/records.jsonl] [--page docs/benchmarks/fast-path.md]
    [--data FOLDER] [--real-results benchmarks/fast_path/real.jsonl]

instances      which generated batches
runs           solving them, one record a run, so that a stopped study goes on where it was
real           the same of batches drawn from real data
queue_optimum  the best plan that admits in queue order
figures        what the records say
plots, page, real_page  and how it is shown
"""
