"""The planner's tools: files in, decisions out, for every kind of problem.

bench      studies of solvers
report     pages, workbooks, tables and pictures of a plan
analysis   questions about a plan and its instance
importers  public data and dumps of cluster tools
solving    one call that solves, for exact solvers and heuristics
io         files of problems and plans
"""
