# Data placement (Tetris): which region holds which replica, and where each workload runs.
#
# This file is the statement of the problem, in GNU MathProg. It is executable: with the data of an instance,
#
#     mast-opt export INSTANCE instance.dat
#     glpsol --model models/data_placement.mod --data instance.dat
#
# prints an optimal plan. The formulation in mast_opt/problems/data_placement/formulation/formulation.py has the same rows, columns
# and numbers; the tests read this file with GLPK and compare the two entry by entry, by name.
#
# Quantities are integers in base units: MB, millicores, milli-GPUs. Shares lie between 0 and 1; plans state
# them in thousandths. Index letters, here and everywhere:
#
#     i dataset   w workload   r, q region   k kind of GPU   p tier (the lowest number is the most important)


#### Regions

set REGION;
set TYPE;                                               # GPU types
set KIND := TYPE union {"none"};                        # what work may run on; none = no GPU

param storage_mb{REGION} >= 0;
param headroom_milli{REGION} >= 0, <= 1000, default 0;  # thousandths of the storage to keep free
param cpu_mcores{REGION} >= 0;
param supply_mgpu{REGION, TYPE} >= 0, default 0;
param storage_usd_per_tb_month{REGION} >= 0, default 0; # prices; copy_usd_per_tb: of what is copied or uploaded there
param copy_usd_per_tb{REGION} >= 0, default 0;
param gpu_usd_per_hour{REGION, TYPE} >= 0, default 0;
set INGRESS_LIMITED within REGION;
param ingress_mb_per_day{INGRESS_LIMITED} >= 0;         # elsewhere copies come in without a limit


#### Datasets

set DATASET;
param size_mb{DATASET} >= 0;
param copies_min{DATASET} >= 0;                         # at least 1 for a dataset that is read
param copies_max{DATASET} >= 0;
set STORED    within DATASET cross REGION;  # replicas of today
set PINNED    within DATASET cross REGION;
set FORBIDDEN within DATASET cross REGION;
set RESIDENCY within DATASET cross REGION;  # where any is listed, the dataset is stored and read in no other region


#### Workloads

set WORKLOAD;
set TIER;
set APP;
param tier{WORKLOAD} in TIER;
param cpu_need_mcores{WORKLOAD} >= 0;
param output_mb{WORKLOAD} >= 0;                         # stored where the workload runs
param app{WORKLOAD} symbolic in APP;
set SPLITTABLE     within WORKLOAD;         # may run in several regions at once, in shares
set WORK_PINNED    within WORKLOAD cross REGION;
set WORK_FORBIDDEN within WORKLOAD cross REGION;
set OPTION within WORKLOAD cross KIND;                  # what each workload accepts to run on
param gpus_mgpu{OPTION} >= 0;                           # and how much it needs of it
set READ within WORKLOAD cross DATASET;
param read_mb_per_day{READ} >= 0;
set TODAY within {WORKLOAD, REGION, KIND};  # where work runs today (none also: kind not known)
param today_milli{TODAY} >= 0;                          # share of the workload, thousandths
set QUOTA within REGION cross APP;
param quota_mcores{QUOTA} >= 0;


#### Network; without links any region reaches any other, at no price and without a limit

param has_links binary;
set LINK within REGION cross REGION;
param capacity_mb_per_day{LINK} >= 0;
param price_usd_per_tb{LINK} >= 0;


#### Rules and objective

param remote_reads binary;                              # may work read what its region does not hold?
param may_refuse binary;                                # may work stay unserved?
param days_num integer > 0;                             # time for the copies, as a fraction
param days_den integer > 0, default 1;
param days := days_num / days_den;

set TERM := {"peak", "overload", "idle", "remote", "egress", "copy", "storage", "moved_work", "unserved",
    "running_cost", "migration_cost", "retyped_work", "moved_items"};
param weight{TERM} >= 0, default 0;
param tier_weight{TIER} >= 0;
param peak_level{TIER} >= 0, default 0;                 # ratio of demand to supply above which the term peak counts


set LIMIT;                                              # hard limits on a whole plan, each in its own unit
param most{LIMIT} >= 0;


#### What follows from the data

# Residency: pairs of a dataset and a region that may neither store nor read it, and of a workload and a region that
# may not read one of its datasets.
set RESIDENT := setof{(i,r) in RESIDENCY} i;
set OUTSIDE := {i in RESIDENT, r in REGION: (i,r) not in RESIDENCY};
set READ_OUTSIDE := setof{(w,i) in READ, (i,r) in OUTSIDE} (w,r);

# A workload runs in a region unless that is forbidden, another region is pinned or a dataset may not be read there,
# and only on GPUs that exist.
set RUN := setof{(w,k) in OPTION, r in REGION:
    (w,r) not in WORK_FORBIDDEN and not (exists{(w,q) in WORK_PINNED} q != r) and (w,r) not in READ_OUTSIDE
    and (k = "none" or gpus_mgpu[w,k] = 0 or supply_mgpu[r,k] > 0)} (w,r,k);
set WHERE := setof{(w,r,k) in RUN} (w,r);
set LOCAL := {(w,i) in READ, r in REGION: (w,r) in WHERE};

# What crosses the network: with links, every read and every copy has a source.
set REMOTE := {(w,i,r) in LOCAL: remote_reads and not has_links};
set REMOTE_FROM := setof{(w,i,r) in LOCAL, (q,r) in LINK: remote_reads and has_links} (w,i,q,r);
set COPY := {i in DATASET, (q,r) in LINK:
    has_links and (i,q) in STORED and (i,r) not in STORED and (i,r) not in FORBIDDEN and (i,r) not in OUTSIDE};
set NEW := {i in DATASET, r in REGION: has_links and (i,r) not in STORED and exists{(i,q) in STORED} 1};

set SUPPLIED := {r in REGION, k in TYPE: supply_mgpu[r,k] > 0};
set CURRENT := setof{(w,r,k) in TODAY} (w,r);
set TYPED := setof{(w,r,k) in TODAY: k in TYPE} (w,k);

param usable_mb{r in REGION} := floor(storage_mb[r] * (1000 - headroom_milli[r]) / 1000);
param ingress_mb{r in INGRESS_LIMITED} := floor(ingress_mb_per_day[r] * days_num / days_den);
param readers{i in DATASET} := card(setof{(w,i) in READ} w);
param fleet_mgpu{k in TYPE} := sum{r in REGION} supply_mgpu[r,k];
param all_data_mb := sum{i in DATASET} size_mb[i];
param all_reads_mb := sum{(w,i) in READ} read_mb_per_day[w,i];

# The size of a workload for the terms unserved, moved_work and retyped_work: the fewest GPUs that it accepts. CPU-only work
# counts the GPUs that come with its share of the fleet's cores, and at least one thousandth of a GPU.
param fewest_mgpu{w in WORKLOAD} := min{(w,k) in OPTION} gpus_mgpu[w,k];
param mgpu_per_mcore := (sum{k in TYPE} fleet_mgpu[k]) / max(1, sum{r in REGION} cpu_mcores[r]);
param demand_mgpu{w in WORKLOAD} :=
    if fewest_mgpu[w] > 0 then fewest_mgpu[w] else max(1, round(cpu_need_mcores[w] * mgpu_per_mcore));
param all_demand_mgpu := sum{w in WORKLOAD} demand_mgpu[w];
param all_weighted_demand := sum{w in WORKLOAD} tier_weight[tier[w]] * demand_mgpu[w];

# Limits on a whole plan: what a unit of a decision counts, in base units, and how many of these the limit allows.
param copied_unit{n in LIMIT, i in DATASET} :=          # of a new replica
    if n = "copied_tb" or n = "copy" then size_mb[i] else if n = "new_replicas" or n = "moves" then 1 else 0;
param stored_unit{n in LIMIT, i in DATASET} :=          # of any replica
    if n = "stored_tb" or n = "storage" then size_mb[i] else 0;
param remote_unit{n in LIMIT, (w,i) in READ} :=         # of a remote read
    if n = "remote_tb_per_day" or n = "remote" then read_mb_per_day[w,i] else 0;
param moved_unit{n in LIMIT, w in WORKLOAD} :=          # of work that leaves a region
    if n = "moved_work" then demand_mgpu[w] else if n = "moved_workloads" or n = "moves" then 1 else 0;
param refused_unit{n in LIMIT, w in WORKLOAD} :=        # of refused work
    if n = "unserved_gpus" then fewest_mgpu[w]
    else if n = "unserved" then tier_weight[tier[w]] * demand_mgpu[w] else 0;
param hours_a_month := 730;                             # of the average month
param run_usd_per_month{(w,r,k) in RUN} :=              # what a whole run costs: GPUs by the hour, outputs by the month
    (if k in TYPE then gpus_mgpu[w,k] / 1000 * gpu_usd_per_hour[r,k] else 0) * hours_a_month
    + output_mb[w] / 1e6 * storage_usd_per_tb_month[r];
param limit_scale{n in LIMIT} :=
    if n = "copied_tb" or n = "stored_tb" or n = "remote_tb_per_day" then 1e6
    else if n = "unserved_gpus" or n = "overload_gpus" then 1000
    else if n = "egress" or n = "running_cost" or n = "migration_cost" then 1e6
    else if n = "copy" or n = "storage" then all_data_mb
    else if n = "remote" then all_reads_mb
    else if n = "moved_work" then all_demand_mgpu
    else if n = "unserved" then all_weighted_demand
    else 1;


#### Decisions

var place{i in DATASET, r in REGION} binary,            # does r hold a replica of i?
    >= (if (i,r) in PINNED then 1 else 0), <= (if (i,r) in FORBIDDEN or (i,r) in OUTSIDE then 0 else 1);

var run{(w,r,k) in RUN: w not in SPLITTABLE} binary;    # does w run in r on k?
var part{(w,r,k) in RUN: w in SPLITTABLE} >= 0, <= 1;   # the share of w that does, if it may be split

var unserved{w in WORKLOAD: may_refuse and w not in SPLITTABLE} binary;
var unserved_part{w in WORKLOAD: may_refuse and w in SPLITTABLE} >= 0, <= 1;

var remote{REMOTE} >= 0, <= 1;                          # share of w in r that reads i remotely
var remote_from{REMOTE_FROM} >= 0, <= 1;                # the same, from q, where links are given
var copy{COPY} >= 0, <= 1;                              # share of i that comes to r from q


#### What follows from the decisions

var demand{(r,k) in SUPPLIED, p in TIER} >= 0;          # milli-GPUs asked by work of tier p or more important
var overload{(r,k) in SUPPLIED, p in TIER} >= 0;        # how far that is over the supply
var peak{k in TYPE, p in TIER} >= 0;                    # how far the ratio in the worst region is over the level
var idle{SUPPLIED} >= 0;                                # supply that no work asks for
var left{CURRENT} >= 0, <= 1;                           # share of w that leaves r
var retyped{TYPED} >= 0, <= 1;                          # share of w that leaves GPU type k


#### Hard limits

# All of the work is done, or refused at a price.
s.t. served{w in WORKLOAD}:
    sum{(w,r,k) in RUN} (if w in SPLITTABLE then part[w,r,k] else run[w,r,k])
    + (if may_refuse then (if w in SPLITTABLE then unserved_part[w] else unserved[w])) = 1;

s.t. copies{i in DATASET}: copies_min[i] <= sum{r in REGION} place[i,r] <= copies_max[i];

# Work finds each of its datasets in its region, or reads it remotely.
s.t. local{(w,i,r) in LOCAL}:
    sum{(w,r,k) in RUN} (if w in SPLITTABLE then part[w,r,k] else run[w,r,k])
    <= place[i,r]
    + (if (w,i,r) in REMOTE then remote[w,i,r])
    + sum{(w,i,q,r) in REMOTE_FROM} remote_from[w,i,q,r];

s.t. storage{r in REGION}:
    sum{i in DATASET} size_mb[i] * place[i,r]
    + sum{(w,r,k) in RUN} output_mb[w] * (if w in SPLITTABLE then part[w,r,k] else run[w,r,k])
    <= usable_mb[r];

s.t. cpu{r in REGION}:
    sum{(w,r,k) in RUN} cpu_need_mcores[w] * (if w in SPLITTABLE then part[w,r,k] else run[w,r,k])
    <= cpu_mcores[r];

s.t. quota{(r,a) in QUOTA}:
    sum{(w,r,k) in RUN: app[w] = a} cpu_need_mcores[w] * (if w in SPLITTABLE then part[w,r,k] else run[w,r,k])
    <= quota_mcores[r,a];

s.t. ingress{r in INGRESS_LIMITED}:
    sum{i in DATASET: (i,r) not in STORED} size_mb[i] * place[i,r] <= ingress_mb[r];

# With links. A region that others read from holds the dataset; a new replica of a dataset that is stored
# somewhere comes from regions that hold it today (of one that is stored nowhere, it is an upload).
s.t. sourced{i in DATASET, q in REGION: has_links and remote_reads}:
    sum{(w,i,q,r) in REMOTE_FROM} remote_from[w,i,q,r] <= readers[i] * place[i,q];

s.t. copied{(i,r) in NEW}: sum{(i,q,r) in COPY} copy[i,q,r] >= place[i,r];

s.t. link{(q,r) in LINK: has_links}:
    sum{(w,i,q,r) in REMOTE_FROM} read_mb_per_day[w,i] * days * remote_from[w,i,q,r]
    + sum{(i,q,r) in COPY} size_mb[i] * copy[i,q,r]
    <= capacity_mb_per_day[q,r] * days;


#### Soft limits on GPUs

# Demand adds up over tiers: what tier p asks comes on top of all that is more important.
s.t. tally{(r,k) in SUPPLIED, p in TIER}:
    demand[r,k,p]
    = (if exists{t in TIER} t < p then demand[r, k, max{t in TIER: t < p} t])
    + sum{(w,r,k) in RUN: tier[w] = p}
        gpus_mgpu[w,k] * (if w in SPLITTABLE then part[w,r,k] else run[w,r,k]);

s.t. gpu{(r,k) in SUPPLIED, p in TIER}: demand[r,k,p] <= supply_mgpu[r,k] + overload[r,k,p];

s.t. worst{(r,k) in SUPPLIED, p in TIER}: demand[r,k,p] <= supply_mgpu[r,k] * (peak_level[p] + peak[k,p]);

s.t. under{(r,k) in SUPPLIED}: demand[r, k, max{p in TIER} p] + idle[r,k] >= supply_mgpu[r,k];

s.t. stays{(w,r) in CURRENT}:
    left[w,r] >= sum{(w,r,k) in TODAY} today_milli[w,r,k] / 1000
    - sum{(w,r,k) in RUN} (if w in SPLITTABLE then part[w,r,k] else run[w,r,k]);

s.t. keeps{(w,k) in TYPED}:
    retyped[w,k] >= sum{(w,r,k) in TODAY} today_milli[w,r,k] / 1000
    - sum{(w,r,k) in RUN} (if w in SPLITTABLE then part[w,r,k] else run[w,r,k]);

# Money is counted in micro-dollars: 2 MB for a month cost 4e-5 USD, and solvers overlook less than that.
s.t. limit{n in LIMIT}:
    sum{i in DATASET, r in REGION: (i,r) not in STORED} copied_unit[n,i] * place[i,r]
    + sum{i in DATASET, r in REGION} stored_unit[n,i] * place[i,r]
    + sum{(w,i,r) in REMOTE} remote_unit[n,w,i] * remote[w,i,r]
    + sum{(w,i,q,r) in REMOTE_FROM}
        (remote_unit[n,w,i] + (if n = "egress" then price_usd_per_tb[q,r] * read_mb_per_day[w,i] else 0))
        * remote_from[w,i,q,r]
    + sum{(i,q,r) in COPY} (if n = "egress" then price_usd_per_tb[q,r] * size_mb[i] / days else 0) * copy[i,q,r]
    + (if n = "running_cost" then
        sum{i in DATASET, r in REGION} size_mb[i] * storage_usd_per_tb_month[r] * place[i,r]
        + sum{(w,r,k) in RUN} 1e6 * run_usd_per_month[w,r,k] * (if w in SPLITTABLE then part[w,r,k] else run[w,r,k])
        + sum{(w,i,q,r) in REMOTE_FROM}
            price_usd_per_tb[q,r] * read_mb_per_day[w,i] * hours_a_month / 24 * remote_from[w,i,q,r])
    + (if n = "migration_cost" then
        sum{i in DATASET, r in REGION: (i,r) not in STORED} size_mb[i] * copy_usd_per_tb[r] * place[i,r]
        + sum{(i,q,r) in COPY} price_usd_per_tb[q,r] * size_mb[i] * copy[i,q,r])
    + sum{(w,r) in CURRENT} moved_unit[n,w] * left[w,r]
    + sum{(r,k) in SUPPLIED} (if n = "overload_gpus" then 1 else 0) * overload[r, k, max{p in TIER} p]
    + sum{w in WORKLOAD: may_refuse}
        refused_unit[n,w] * (if w in SPLITTABLE then unserved_part[w] else unserved[w])
    <= most[n] * limit_scale[n];


#### Objective: Σ weight · term; every term is a penalty ≥ 0, and 0 where its denominator is 0

minimize total:

    weight["peak"] * sum{k in TYPE, p in TIER} tier_weight[p] * peak[k,p]

    + weight["overload"] * sum{(r,k) in SUPPLIED, p in TIER} tier_weight[p] * overload[r,k,p] / fleet_mgpu[k]

    + weight["idle"] * sum{(r,k) in SUPPLIED} idle[r,k] / fleet_mgpu[k]

    # remote read volume / all read volume
    + weight["remote"] *
        ( sum{(w,i,r) in REMOTE} read_mb_per_day[w,i] / max(1, all_reads_mb) * remote[w,i,r]
        + sum{(w,i,q,r) in REMOTE_FROM} read_mb_per_day[w,i] / max(1, all_reads_mb) * remote_from[w,i,q,r] )

    # USD a day; copies are spread over the days that they may take
    + weight["egress"] *
        ( sum{(w,i,q,r) in REMOTE_FROM} price_usd_per_tb[q,r] / 1e6 * read_mb_per_day[w,i] * remote_from[w,i,q,r]
        + sum{(i,q,r) in COPY} price_usd_per_tb[q,r] / 1e6 * size_mb[i] / days * copy[i,q,r] )

    # bytes copied (uploads too) and bytes stored / size of one copy of everything; outputs are not counted
    + weight["copy"] *
        sum{i in DATASET, r in REGION: (i,r) not in STORED} size_mb[i] / max(1, all_data_mb) * place[i,r]

    + weight["storage"] * sum{i in DATASET, r in REGION} size_mb[i] / max(1, all_data_mb) * place[i,r]

    # share of GPU demand that leaves the region where it runs today
    + weight["moved_work"] * sum{(w,r) in CURRENT} demand_mgpu[w] / all_demand_mgpu * left[w,r]

    # tier-weighted share of demand
    + weight["unserved"] * sum{w in WORKLOAD: may_refuse and all_weighted_demand > 0}
        tier_weight[tier[w]] * demand_mgpu[w] / all_weighted_demand
        * (if w in SPLITTABLE then unserved_part[w] else unserved[w])

    # USD a month: GPUs by the hour, what is stored, what is read over links
    + weight["running_cost"] *
        ( sum{i in DATASET, r in REGION} size_mb[i] / 1e6 * storage_usd_per_tb_month[r] * place[i,r]
        + sum{(w,r,k) in RUN} run_usd_per_month[w,r,k] * (if w in SPLITTABLE then part[w,r,k] else run[w,r,k])
        + sum{(w,i,q,r) in REMOTE_FROM}
            price_usd_per_tb[q,r] / 1e6 * read_mb_per_day[w,i] * hours_a_month / 24 * remote_from[w,i,q,r] )

    # USD, once: new replicas by region, copies by link
    + weight["migration_cost"] *
        ( sum{i in DATASET, r in REGION: (i,r) not in STORED} size_mb[i] / 1e6 * copy_usd_per_tb[r] * place[i,r]
        + sum{(i,q,r) in COPY} price_usd_per_tb[q,r] / 1e6 * size_mb[i] * copy[i,q,r] )

    # share of GPU demand that leaves the GPU type on which it runs today
    + weight["retyped_work"] * sum{(w,k) in TYPED} demand_mgpu[w] / all_demand_mgpu * retyped[w,k]

    # new replicas and workloads that leave their region, as many as datasets and workloads are
    + weight["moved_items"] / (card(DATASET) + card(WORKLOAD)) *
        ( sum{i in DATASET, r in REGION: (i,r) not in STORED} place[i,r] + sum{(w,r) in CURRENT} left[w,r] );


solve;

printf{i in DATASET, r in REGION: place[i,r] > 0.5} "place %s in %s\n", i, r;
printf{(w,r,k) in RUN: w not in SPLITTABLE and run[w,r,k] > 0.5} "run %s in %s on %s\n", w, r, k;
printf{(w,r,k) in RUN: w in SPLITTABLE and part[w,r,k] > 0} "run %s in %s on %s: %.3f\n", w, r, k, part[w,r,k];
printf{(i,q,r) in COPY: copy[i,q,r] > 0} "copy %s from %s to %s: %.3f\n", i, q, r, copy[i,q,r];
printf{(w,i,r) in REMOTE: remote[w,i,r] > 0} "read %s for %s remotely to %s: %.3f\n", i, w, r, remote[w,i,r];
printf{(w,i,q,r) in REMOTE_FROM: remote_from[w,i,q,r] > 0}
    "read %s for %s from %s to %s: %.3f\n", i, w, q, r, remote_from[w,i,q,r];
printf "total %.9g\n", total;

end;
