"""The five problems and what solves them.

registry             the kinds of problem
data_placement       where data lives and where workloads run
job_placement        which pending job runs where, and the live fleet
server_assignment    which servers form which cluster
resource_allocation  what part of the time each job gets of each GPU type
task_reassignment    which running tasks move to which machine
kind                 what a kind of problem is
search               what heuristics share
backends             MIP solvers
mip                  mixed-integer programs as arrays
"""
