# Resource allocation: how much of which resources each running job gets in the next round.
#
# This file is the statement of the problem, in GNU MathProg. It is executable: with the data of an instance,
#
#     mast-opt export INSTANCE instance.dat
#     glpsol --model models/resource_allocation.mod --data instance.dat
#
# prints an optimal allocation. The formulation in mast_opt/problems/resource_allocation/formulation/ has the same rows, columns and
# numbers; the tests read this file with GLPK and compare the two entry by entry, by name.
#
# It states the limits, and the policies that are one linear program: total-rate, rate-per-cost, cost, makespan (by its
# inverse), and the first level of max-min and hierarchical. docs/problems/resource-allocation.md states the others, and
# how they are solved. Shares are fractional here; for whole ones, write "binary" after var share. Index letters:
#
#     k resource   g group   j job   c configuration


#### Resources, groups and jobs

set RESOURCE;
param amount{RESOURCE} >= 0;
set GROUP;
param group_weight{GROUP} > 0;
param group_min_rate{GROUP} >= 0;                       # floor of the sum of its jobs' rates
set JOB;
param weight{JOB} > 0;
param required{JOB} binary;                             # must its shares add up to 1?
param min_rate{JOB} >= 0;                               # floor of its rate
param fair_rate{JOB} > 0;                               # its rate under an equal split
param steps{JOB} >= 0;                                  # work that is left; 0 = unknown
param submitted_s{JOB} >= 0;
param position{JOB};                                    # in the table of jobs, which settles ties of submitted_s
set BELONGS within JOB cross GROUP;                     # a job is in one group at most


#### Configurations: ways to run one job, or several packed together

set CONFIGURATION;
param cost{CONFIGURATION} >= 0;
set MEMBER within CONFIGURATION cross JOB;
param rate{MEMBER} >= 0;                                # of the job while the configuration runs
set USE within CONFIGURATION cross RESOURCE;
param use{USE} >= 0;                                    # held while the configuration runs


#### Policy

set LEVEL := {"max-min", "makespan", "hierarchical"};   # policies that raise the worst-off job
param policy symbolic in LEVEL union {"total-rate", "rate-per-cost", "cost"};
param inside symbolic;                                  # of groups: max-min or fifo

# What a share adds to the objective of a linear policy.
param gain{c in CONFIGURATION} :=
    if policy = "total-rate" then sum{(c,j) in MEMBER} weight[j] * rate[c,j]
    else if policy = "rate-per-cost" then sum{(c,j) in MEMBER} rate[c,j] / cost[c]
    else if policy = "cost" then -cost[c]
    else 0;

# The rate that a job has at level 1. Inside of a group, max-min splits its weight among the jobs by theirs; fifo gives
# it to the first.
set FIRST := {(j,g) in BELONGS: 0 = card({(i,g) in BELONGS:
    submitted_s[i] < submitted_s[j] or (submitted_s[i] = submitted_s[j] and position[i] < position[j])})};
param slope{j in JOB} :=
    if policy = "max-min" then weight[j] * fair_rate[j]
    else if policy = "makespan" then steps[j]
    else if policy = "hierarchical" then sum{(j,g) in BELONGS} fair_rate[j] * group_weight[g] *
        (if inside = "fifo" then (if (j,g) in FIRST then 1 else 0)
         else weight[j] / sum{(i,g) in BELONGS} weight[i])
    else 0;


#### Decisions

var share{CONFIGURATION} >= 0, <= 1;                    # part of the time
var level >= 0;


#### Limits

s.t. one{j in JOB}: (if required[j] then 1 else -Infinity) <= sum{(c,j) in MEMBER} share[c] <= 1;

s.t. capacity{k in RESOURCE}: sum{(c,k) in USE} use[c,k] * share[c] <= amount[k];

s.t. floor{j in JOB: min_rate[j] > 0}: sum{(c,j) in MEMBER} rate[c,j] * share[c] >= min_rate[j];

s.t. group_floor{g in GROUP: group_min_rate[g] > 0}:
    sum{(j,g) in BELONGS, (c,j) in MEMBER} rate[c,j] * share[c] >= group_min_rate[g];

s.t. reach{j in JOB: slope[j] > 0}: sum{(c,j) in MEMBER} rate[c,j] * share[c] - slope[j] * level >= 0;


minimize total: - sum{c in CONFIGURATION} gain[c] * share[c] - (if policy in LEVEL then 1 else 0) * level;


solve;

printf{c in CONFIGURATION: share[c] > 0} "%s %.9g\n", c, share[c];
printf "total %.9g\n", total;

end;
