"""Post-optimality analysis of an instance and a plan: ``explain``, ``marginal_values``, ``whatif``, ``pareto``.

Each question is a function in a module of its own, public as ``mast_opt.explain``, ``marginal_values``, ``whatif`` and
``pareto``. They know no problem: what a kind says about itself is in ``mast_opt.problems.kind.analysis_hooks``.
"""
