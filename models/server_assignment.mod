# Server assignment (RAS): which servers form which reservation, surviving the loss of a failure domain.
#
# This file is the statement of the problem, in GNU MathProg. It is executable: with the data of an instance,
#
#     mast-opt export INSTANCE instance.dat
#     glpsol --model models/server_assignment.mod --data instance.dat
#
# prints an optimal plan. The formulation in mast_opt/problems/server_assignment/formulation/formulation.py has the same rows, columns
# and numbers; the tests read this file with GLPK and compare the two entry by entry, by name.
#
# The failure domain is the switchboard. Servers of a type at a switchboard are alike: the statement counts them, and
# today's counts say who has how many of them, in use or idle. Capacity is in thousandths of relative resource units
# (mrru), shares are in thousandths. Index letters, here and everywhere:
#
#     t type   b, c switchboard   d datacenter   q, p reservation


#### Servers

set DATACENTER;
set SWITCHBOARD;
param datacenter{SWITCHBOARD} symbolic in DATACENTER;
set TYPE;
set STOCK within TYPE cross SWITCHBOARD;
param size{STOCK} integer > 0;                          # servers of the type at the switchboard


#### Reservations

set RESERVATION;
param asked{RESERVATION} >= 0;                          # capacity to be guaranteed
param buffer{RESERVATION} symbolic in {"embedded", "shared", "none", "pool"};
param rru{RESERVATION, TYPE} >= 0, default 0;           # what a server of the type is worth; 0: nothing
param in_use{STOCK, RESERVATION} integer >= 0, default 0;   # servers that it has today and that do work
param idle{STOCK, RESERVATION} integer >= 0, default 0;     # servers that it has today and that do none

set LIMITED within RESERVATION;
param spread_limit_milli{LIMITED} >= 0;                 # share of what is asked, at one switchboard at most

set AFFINITY within RESERVATION cross DATACENTER;
param share_milli{AFFINITY} >= 0;                       # share of what it holds that should be in the datacenter
param tolerance_milli{AFFINITY} >= 0;                   # give or take

set TERM := {"shortfall", "moves_in_use", "moves_idle", "spread", "buffer", "affinity", "use", "repair"};
param weight{TERM} >= 0;


#### What follows from the data

set BUFFERED := {q in RESERVATION: buffer[q] = "embedded" or buffer[q] = "pool"};
set SHARED := {q in RESERVATION: buffer[q] = "shared"};
set HELD := {(t,b) in STOCK, q in RESERVATION: in_use[t,b,q] + idle[t,b,q] > 0};

# A server goes where it is worth something, or stays where it is.
set PAIR := {(t,b) in STOCK, q in RESERVATION: rru[q,t] > 0 or in_use[t,b,q] + idle[t,b,q] > 0};

param limit{q in LIMITED} := floor(spread_limit_milli[q] * asked[q] / 1000);
param all_asked := sum{q in RESERVATION} asked[q];
param all_servers := sum{(t,b) in STOCK} size[t,b];

# Today, and by how much it breaks what should hold: no plan may break that by more.
param held_today{q in RESERVATION, b in SWITCHBOARD} :=
    sum{(t,b) in STOCK} rru[q,t] * (in_use[t,b,q] + idle[t,b,q]);
param lost_today{q in BUFFERED} := max{b in SWITCHBOARD}
    (held_today[q,b] + (if buffer[q] = "pool" then sum{p in SHARED} held_today[p,b]));
param short_today{q in RESERVATION} := max(0,
    asked[q] + (if q in BUFFERED then lost_today[q]) - sum{b in SWITCHBOARD} held_today[q,b]);
param excess_today{q in LIMITED, b in SWITCHBOARD} := max(0, held_today[q,b] - limit[q]);
param off_today{(q,d) in AFFINITY} :=
    sum{b in SWITCHBOARD} ((if datacenter[b] = d then 1000) - share_milli[q,d]) * held_today[q,b];
param slack_today_milli{(q,d) in AFFINITY} := max(0,
    abs(off_today[q,d]) - tolerance_milli[q,d] * sum{b in SWITCHBOARD} held_today[q,b]);


#### Decisions

var n{(t,b,q) in PAIR} integer >= 0,                    # servers of the stock that the reservation has
    <= if rru[q,t] > 0 then size[t,b] else in_use[t,b,q] + idle[t,b,q];


#### What follows from the decisions

var left_in_use{(t,b,q) in HELD: in_use[t,b,q] > 0} >= 0, <= in_use[t,b,q];     # servers taken from it
var left_idle{(t,b,q) in HELD: idle[t,b,q] > 0} >= 0, <= idle[t,b,q];
var short{RESERVATION} >= 0;                            # what is missing of the guarantee
var largest{BUFFERED} >= 0;                             # what the loss of one switchboard takes
var excess{LIMITED, SWITCHBOARD} >= 0;                  # above the spread limit
var slack{AFFINITY} >= 0;                               # outside the tolerance


#### Servers

s.t. once{(t,b) in STOCK}: sum{(t,b,q) in PAIR} n[t,b,q] <= size[t,b];

s.t. stays{(t,b,q) in HELD}:
    n[t,b,q]
    + (if in_use[t,b,q] > 0 then left_in_use[t,b,q])
    + (if idle[t,b,q] > 0 then left_idle[t,b,q])
    >= in_use[t,b,q] + idle[t,b,q];


#### Capacity

s.t. survive{q in RESERVATION}:
    sum{(t,b,q) in PAIR} rru[q,t] * n[t,b,q] - (if q in BUFFERED then largest[q]) + short[q] >= asked[q];

# The pool loses servers of its own and must then stand in for what the others lose.
s.t. loss{q in BUFFERED, b in SWITCHBOARD}:
    sum{(t,b,q) in PAIR} rru[q,t] * n[t,b,q]
    + (if buffer[q] = "pool" then sum{p in SHARED, (t,b,p) in PAIR} rru[p,t] * n[t,b,p])
    <= largest[q];

s.t. spread{q in LIMITED, b in SWITCHBOARD}:
    sum{(t,b,q) in PAIR} rru[q,t] * n[t,b,q] <= limit[q] + excess[q,b];

s.t. affinity_most{(q,d) in AFFINITY}:
    sum{(t,b,q) in PAIR}
        ((if datacenter[b] = d then 1000) - share_milli[q,d] - tolerance_milli[q,d]) * rru[q,t] * n[t,b,q]
    <= 1000 * slack[q,d];

s.t. affinity_least{(q,d) in AFFINITY}:
    sum{(t,b,q) in PAIR}
        ((if datacenter[b] = d then 1000) - share_milli[q,d] + tolerance_milli[q,d]) * rru[q,t] * n[t,b,q]
    >= - 1000 * slack[q,d];


#### Nothing that is broken today may be broken more

s.t. no_shorter{q in RESERVATION: short_today[q] > 0}: short[q] <= short_today[q];

s.t. no_denser{q in LIMITED, b in SWITCHBOARD: excess_today[q,b] > 0}: excess[q,b] <= excess_today[q,b];

s.t. no_farther{(q,d) in AFFINITY: slack_today_milli[q,d] > 0}: slack[q,d] <= slack_today_milli[q,d] / 1000;


#### Objective: Σ weight · term; every term is a penalty ≥ 0, and 0 where its denominator is 0

minimize total:

    weight["shortfall"] * sum{q in RESERVATION: all_asked > 0} short[q] / all_asked

    + weight["moves_in_use"] * sum{(t,b,q) in HELD: in_use[t,b,q] > 0} left_in_use[t,b,q] / all_servers

    + weight["moves_idle"] * sum{(t,b,q) in HELD: idle[t,b,q] > 0} left_idle[t,b,q] / all_servers

    + weight["spread"] * sum{q in LIMITED, b in SWITCHBOARD: all_asked > 0} excess[q,b] / all_asked

    + weight["buffer"] * sum{q in BUFFERED: all_asked > 0} largest[q] / all_asked

    + weight["affinity"] * sum{(q,d) in AFFINITY: all_asked > 0} slack[q,d] / all_asked

    + weight["use"] * sum{(t,b,q) in PAIR} n[t,b,q] / all_servers

    # what is broken today and still is after the plan
    + weight["repair"] *
        ( sum{q in LIMITED, b in SWITCHBOARD: all_asked > 0 and excess_today[q,b] > 0} excess[q,b] / all_asked
        + sum{(q,d) in AFFINITY: all_asked > 0 and slack_today_milli[q,d] > 0} slack[q,d] / all_asked );


solve;

printf{(t,b,q) in PAIR: n[t,b,q] > 0.5} "give %d of %s at %s to %s\n", n[t,b,q], t, b, q;
printf "total %.9g\n", total;

end;
