# Task reassignment: which machine runs which process.
#
# This file is the statement of the problem, in GNU MathProg. It is executable: with the data of an instance,
#
#     mast-opt export INSTANCE instance.dat
#     glpsol --model models/task_reassignment.mod --data instance.dat
#
# prints an optimal plan. The formulation in mast_opt/problems/task_reassignment/formulation/formulation.py has the same rows, columns
# and numbers; the tests read this file with GLPK and compare the two entry by entry, by name.
#
# It is the machine reassignment problem of the ROADEF/EURO challenge 2012, set by Google. Amounts of a resource are
# integers in whatever unit the instance uses for it. Index letters:
#
#     p, q process   m machine   k resource   s service   l location   n neighbourhood   b balance goal


#### Machines

set RESOURCE;
param transient{RESOURCE} binary;                       # held on the old machine too by a process that moves
param load_weight{RESOURCE} >= 0;                       # cost of a unit of use above the safety capacity
set LOCATION;
set NEIGHBOURHOOD;
set GROUP;
set MACHINE;
param location{MACHINE} symbolic in LOCATION;
param neighbourhood{MACHINE} symbolic in NEIGHBOURHOOD;
param move_group{MACHINE} symbolic in GROUP;
param balanced{MACHINE} binary, default 1;             # do balance goals count on the machine?
param capacity_of{MACHINE, RESOURCE} >= 0;
param safety{MACHINE, RESOURCE} >= 0;
param group_move_cost{GROUP, GROUP} >= 0, default 0;


#### Services and processes

set SERVICE;
param spread_min{SERVICE} >= 0;                         # fewest locations that it runs in
set DEPENDS within SERVICE cross SERVICE;               # processes of the first need the second near
set PROCESS;
param service{PROCESS} symbolic in SERVICE;
param initial{PROCESS} symbolic in MACHINE;
param move_cost{PROCESS} >= 0;
param need{PROCESS, RESOURCE} >= 0, default 0;

set MEMBER{s in SERVICE} := {p in PROCESS: service[p] = s};
set SPREAD := {s in SERVICE: spread_min[s] > 1 and card(MEMBER[s]) > 0};


#### Costs

set GOAL;
param first{GOAL} symbolic in RESOURCE;
param second{GOAL} symbolic in RESOURCE;
param target{GOAL} >= 0;                                # free units of the second wanted for each of the first
param balance_weight{GOAL} >= 0;
set TERM := {"load", "balance", "process_move", "service_move", "machine_move"};
param weight{TERM} >= 0;


#### Decisions

var x{PROCESS, MACHINE} binary;
var over{MACHINE, RESOURCE} >= 0;                       # use above the safety capacity
var missing{GOAL, MACHINE} >= 0;
var most_moved >= 0;                                    # moved processes of the service that moves most
var hosts{SPREAD, LOCATION} binary;


#### Where processes run

s.t. assigned{p in PROCESS}: sum{m in MACHINE} x[p,m] = 1;

# A process that was on m holds its transient resources there, wherever it runs.
s.t. capacity{m in MACHINE, k in RESOURCE}:
    sum{p in PROCESS} need[p,k] * (if transient[k] and initial[p] = m then 1 else x[p,m]) <= capacity_of[m,k];

s.t. conflict{s in SERVICE, m in MACHINE: card(MEMBER[s]) > 1}: sum{p in MEMBER[s]} x[p,m] <= 1;

s.t. present{s in SPREAD, l in LOCATION}:
    hosts[s,l] <= sum{p in MEMBER[s], m in MACHINE: location[m] = l} x[p,m];

s.t. spread{s in SPREAD}: sum{l in LOCATION} hosts[s,l] >= spread_min[s];

s.t. dependency{p in PROCESS, s in SERVICE, n in NEIGHBOURHOOD: (service[p],s) in DEPENDS and service[p] <> s}:
    sum{m in MACHINE: neighbourhood[m] = n} x[p,m]
    <= sum{q in MEMBER[s], m in MACHINE: neighbourhood[m] = n} x[q,m];


#### What costs

s.t. load{m in MACHINE, k in RESOURCE}: sum{p in PROCESS} need[p,k] * x[p,m] <= safety[m,k] + over[m,k];

s.t. balance{b in GOAL, m in MACHINE: balanced[m] = 1}:
    target[b] * (capacity_of[m,first[b]] - sum{p in PROCESS} need[p,first[b]] * x[p,m])
    - (capacity_of[m,second[b]] - sum{p in PROCESS} need[p,second[b]] * x[p,m]) <= missing[b,m];

s.t. moved{s in SERVICE}: most_moved >= sum{p in MEMBER[s]} (1 - x[p,initial[p]]);

minimize total:

    weight["load"] * sum{m in MACHINE, k in RESOURCE} load_weight[k] * over[m,k]

    + weight["balance"] * sum{b in GOAL, m in MACHINE} balance_weight[b] * missing[b,m]

    + weight["process_move"] * sum{p in PROCESS} move_cost[p] * (1 - x[p,initial[p]])

    + weight["service_move"] * most_moved

    + weight["machine_move"] * sum{p in PROCESS, m in MACHINE: m <> initial[p]}
        group_move_cost[move_group[initial[p]],move_group[m]] * x[p,m];


solve;

printf{p in PROCESS, m in MACHINE: x[p,m] > 0.5} "run %s on %s\n", p, m;
printf "total %.9g\n", total;

end;
