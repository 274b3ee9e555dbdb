"""What a planner asks of an instance and a plan: why not, why there, what is more worth, what if, what for what.

Each question is a function in a module of its own, public as ``mast_opt.explain``, ``marginal_values``, ``whatif`` and
``pareto``. They know no problem: what a kind tells about itself is in ``mast_opt.kind.analysis_hooks``.
"""
