# Job placement: which pending job runs on which servers, and which running job makes room for it.
#
# This file is the statement of the problem, in GNU MathProg. It is executable: with the data of an instance,
#
#     mast-opt export INSTANCE instance.dat
#     glpsol --model models/job_placement.mod --data instance.dat
#
# prints an optimal plan. The formulation in mast_opt/problems/job_placement/formulation/formulation.py has the same rows, columns and
# numbers; the tests read this file with GLPK and compare the two entry by entry, by name.
#
# Quantities are integers in base units: milli-GPUs, millicores, MiB, MB, thousandths of a GPU-hour. Index letters:
#
#     j pending job   v running job   r, q region   c cluster   b rack   s server   k GPU type   p tier (0 first)
#     g pending job of several parts, each of which is a j
#     d device (one GPU of a server)   n resource


#### The fleet

set REGION;
set CLUSTER;
param region{CLUSTER} symbolic in REGION;
set RACK;
param cluster{RACK} symbolic in CLUSTER;
param rack_at{RACK} integer;                            # a number for each rack, to break ties
set TYPE;
set SERVER;
param rack{SERVER} symbolic in RACK;
param type{SERVER} symbolic in TYPE;
set RESOURCE := {"gpu", "cpu", "memory"};
param supply{SERVER, RESOURCE} >= 0;                    # GPUs are whole: multiples of 1000


#### Jobs to place: those that wait, and those that run and may be moved (MOVABLE, below)
#
# A movable job has no value, reads nothing but its state, which is resident in its region, accepts its GPU type,
# stays as close together as it is, and is of the last tier: it takes what is free or what other moves free.

set TIER;
set JOB;
param tier{JOB} in TIER;                                # after quotas: over-quota work has the lowest
param value_milli{JOB} >= 0;
param tasks{JOB} integer, >= 1;
param mcores{JOB} >= 0;                                 # of one task
param mib{JOB} >= 0;
param level{JOB} symbolic in {"server", "rack", "cluster"};   # what it must stay within
set OPTION within JOB cross TYPE;                       # the types that a job accepts
param mgpu{OPTION} >= 0;                                # of one task: whole GPUs, or less than one
set DATASET;
set STORED within DATASET cross REGION;
set RESIDENCY within DATASET cross REGION;  # where any is listed, jobs that read the dataset run in no other region
set READ within JOB cross DATASET;
param read_mb_per_day{READ} >= 0;
set PRICED within JOB cross CLUSTER;
param cost_micro{PRICED} >= 0;


#### Jobs of several parts: all are admitted, or none
#
# The first part has the value, the reads and the costs of its job.

set MULTIPART;
param whole_level{MULTIPART} symbolic in {"server", "rack", "cluster", "region"};   # what all parts must stay within
set PART within JOB;
param job_of{PART} symbolic in MULTIPART;
param first{MULTIPART} symbolic in PART;


#### Jobs that run

set RUNNING;
param running_tier{RUNNING} in TIER;
param preemptible{RUNNING} binary;
param at_risk{RUNNING} >= 0;                            # lost if it is stopped now
set HOLDS within RUNNING cross SERVER;
param held{HOLDS, RESOURCE} >= 0;                       # all its tasks on that server together
set HOLDS_DEVICE dimen 3;                               # (running job, server, device)
param held_device{HOLDS_DEVICE} > 0;
set FRACTION_RUNS within SERVER;                        # servers where a running task holds less than one GPU
set MOVABLE within (RUNNING inter JOB);
param restart{MOVABLE} >= 0;                            # lost if it is moved: since its checkpoint, and to restart
set MOVE_LIMIT within {"moves", "restart_gpu_hours"};
param most_milli{MOVE_LIMIT} >= 0;                      # of all moves together


#### Rules and objective

param remote_reads binary;                              # may a job run where its data is not?
set TERM := {"rejected", "preemption", "balance", "spread", "remote", "fragmentation", "cost"};
param weight{TERM} >= 0;
param tier_weight{TIER} >= 0;


#### What follows from the data

set VICTIM := {v in RUNNING: preemptible[v]};
set WAITING := JOB diff MOVABLE;
param free{s in SERVER, n in RESOURCE} := supply[s,n] - sum{(v,s) in HOLDS} held[v,s,n];
param all_mgpu := sum{s in SERVER} supply[s,"gpu"];
param where{s in SERVER} symbolic := region[cluster[rack[s]]];
param need{(j,k) in OPTION, n in RESOURCE} := if n = "gpu" then mgpu[j,k] else if n = "cpu" then mcores[j] else mib[j];

# Tasks of a job that the server holds when it is empty; 1e15 for a resource that they do not need.
param holds{j in JOB, s in SERVER: (j,type[s]) in OPTION} := min(
    if mgpu[j,type[s]] = 0 then 1e15
    else if mgpu[j,type[s]] < 1000 then supply[s,"gpu"] div 1000 * (1000 div mgpu[j,type[s]])
    else supply[s,"gpu"] div mgpu[j,type[s]],
    if mcores[j] = 0 then 1e15 else supply[s,"cpu"] div mcores[j],
    if mib[j] = 0 then 1e15 else supply[s,"memory"] div mib[j]);

# A region that lacks a dataset of the job is closed to it, unless remote reads are priced; all are if the job reads a
# dataset that no region holds; one outside the residency of
# a dataset that the job reads is closed to it.
param lacks_mb{j in JOB, r in REGION} := sum{(j,i) in READ: (i,r) not in STORED} read_mb_per_day[j,i];
set RESIDENT := setof{(i,r) in RESIDENCY} i;
set OUTSIDE := {i in RESIDENT, r in REGION: (i,r) not in RESIDENCY};
set READ_OUTSIDE := setof{(j,i) in READ, (i,r) in OUTSIDE} (j,r);
set HELD := setof{(i,r) in STORED} i;
set READS_LOST := setof{(j,i) in READ: i not in HELD} j;
set OPEN := {j in JOB, r in REGION: (remote_reads or not exists{(j,i) in READ} (i,r) not in STORED)
    and j not in READS_LOST and (j,r) not in READ_OUTSIDE};

set CELL := {j in JOB, s in SERVER: (j,type[s]) in OPTION and (j,where[s]) in OPEN
    and (if (j,type[s]) in OPTION then holds[j,s]) >= 1};
set ASSIGN := setof{(j,s) in CELL} (j, cluster[rack[s]], type[s]);
set GANG := {j in JOB: tasks[j] > 1};
set USES_RACK := setof{(j,s) in CELL: j in GANG} (j, rack[s]);
set TIED := {(j,s) in CELL: j in GANG and level[j] = "server"};

set FURTHER := {j in PART: j <> first[job_of[j]]};
set IN_WHOLE_RACK := {j in PART, (j,s) in CELL: whole_level[job_of[j]] = "rack"};
set IN_WHOLE_SERVER := {j in PART, (j,s) in CELL: whole_level[job_of[j]] = "server"};
set WHOLE_RACK := setof{(j,s) in IN_WHOLE_RACK} (job_of[j], rack[s]);
set WHOLE_SERVER := setof{(j,s) in IN_WHOLE_SERVER} (job_of[j], s);

# The fewest racks of one cluster and type that would hold a gang if all were empty: fill the largest first.
param rack_holds{(j,k) in OPTION, b in RACK: j in GANG} :=
    sum{s in SERVER: rack[s] = b and type[s] = k and (j,where[s]) in OPEN} min(holds[j,s], tasks[j]);
set FILLS := {(j,k) in OPTION, b in RACK: j in GANG
    and (if j in GANG then sum{e in RACK: cluster[e] = cluster[b] and (rack_holds[j,k,e] > rack_holds[j,k,b]
        or rack_holds[j,k,e] = rack_holds[j,k,b] and rack_at[e] <= rack_at[b])} rack_holds[j,k,e]) >= tasks[j]};
param fewest_racks{j in GANG} := if not exists{(j,k,b) in FILLS} 1 then 1 else min{(j,k,b) in FILLS}
    card({e in RACK: cluster[e] = cluster[b] and (rack_holds[j,k,e] > rack_holds[j,k,b]
        or rack_holds[j,k,e] = rack_holds[j,k,b] and rack_at[e] <= rack_at[b])});

# Single GPUs count where a fraction of one runs or may run.
set FRACTION := {(j,s) in CELL: mgpu[j,type[s]] > 0 and mgpu[j,type[s]] < 1000};
set SHARED := FRACTION_RUNS union setof{(j,s) in FRACTION} s;
set DEVICE{s in SHARED} := 0 .. supply[s,"gpu"] / 1000 - 1;
set WHOLE := {(j,s) in CELL: s in SHARED and mgpu[j,type[s]] >= 1000};
set TAKES := setof{(j,s) in WHOLE} (s, tier[j]);
set LIMITED := setof{(j,s) in CELL} (s, tier[j]);       # tiers of which some job may use the server
set DEVICE_LIMITED := setof{(j,s) in CELL: s in SHARED and mgpu[j,type[s]] > 0} (s, tier[j]);

param region_mgpu{r in REGION, k in TYPE} := sum{s in SERVER: where[s] = r and type[s] = k} supply[s,"gpu"];
set BALANCED := {r in REGION, k in TYPE: region_mgpu[r,k] > 0 and exists{q in REGION} (q <> r and region_mgpu[q,k] > 0)};

# The commonest pending task that takes all GPUs of a server of its type and size, as (job, type); of equals,
# that of the job listed first.
param job_at{JOB} integer;                              # position in the queue's table
set FULL := {(j,k) in OPTION: j in WAITING and exists{s in SERVER} (type[s] = k and supply[s,"gpu"] > 0 and supply[s,"gpu"] = mgpu[j,k])};
param alike{(j,k) in FULL} := sum{(i,k) in FULL:
    mgpu[i,k] = mgpu[j,k] and mcores[i] = mcores[j] and mib[i] = mib[j]} tasks[i];
set COMMONEST := {(j,k) in FULL: not exists{(i,k) in FULL} (mgpu[i,k] = mgpu[j,k]
    and (alike[i,k] > alike[j,k] or alike[i,k] = alike[j,k] and job_at[i] < job_at[j]))};
set CHECKED := {s in SERVER: exists{(j,k) in COMMONEST} (type[s] = k and supply[s,"gpu"] = mgpu[j,k])};
param common{s in CHECKED, n in RESOURCE} :=
    sum{(j,k) in COMMONEST: type[s] = k and supply[s,"gpu"] = mgpu[j,k]} need[j,k,n];

param worth{j in JOB} := tier_weight[tier[j]] * value_milli[j];
param all_worth := sum{j in JOB} worth[j];
param all_reads_mb := sum{(j,i) in READ} read_mb_per_day[j,i];
param all_tasks := sum{j in WAITING} tasks[j];


#### Decisions

var assign{ASSIGN} binary;                              # does j run in c on k?
var count{(j,s) in CELL} integer, >= 0, <= tasks[j];    # how many of its tasks on s
var uses_rack{USES_RACK} binary;
var uses_server{TIED} binary;
var whole_rack{WHOLE_RACK} binary;                      # is it the rack of all parts?
var whole_server{WHOLE_SERVER} binary;
var preempt{VICTIM} binary;                             # is v stopped?
var move{MOVABLE} binary;                               # is v moved to where assign and count say?
var on{(j,s) in FRACTION, d in DEVICE[s]} integer, >= 0, <= tasks[j];   # tasks of j on GPU d
var takes{(s,p) in TAKES, d in DEVICE[s]} binary;       # GPU d is taken whole by work of tier p


#### What follows from the decisions

var use{(r,k) in BALANCED} >= 0, <= region_mgpu[r,k];   # milli-GPUs in use after the plan
var off{(r,k) in BALANCED} >= 0, <= region_mgpu[r,k];   # how far that is from the mean use of the type
var fits{CHECKED} binary;                               # could s take the commonest whole-server task?
var fragment{s in CHECKED} >= 0, <= supply[s,"gpu"];    # free milli-GPUs where it could not


#### Hard limits

s.t. admitted{j in WAITING}: sum{(j,c,k) in ASSIGN} assign[j,c,k] <= 1;
s.t. moved{v in MOVABLE}: sum{(v,c,k) in ASSIGN} assign[v,c,k] - move[v] = 0;
s.t. interrupted{v in MOVABLE inter VICTIM}: move[v] + preempt[v] <= 1;
s.t. move_limit{b in MOVE_LIMIT}: sum{v in MOVABLE} (if b = "moves" then 1000 else restart[v]) * move[v] <= most_milli[b];

# A gang runs as a whole, in one cluster, on one GPU type.
s.t. gang{(j,c,k) in ASSIGN}:
    sum{(j,s) in CELL: cluster[rack[s]] = c and type[s] = k} count[j,s] = tasks[j] * assign[j,c,k];

s.t. in_rack{(j,s) in CELL: j in GANG}: count[j,s] <= tasks[j] * uses_rack[j,rack[s]];
s.t. in_server{(j,s) in TIED}: count[j,s] <= tasks[j] * uses_server[j,s];
s.t. one_rack{j in GANG: level[j] = "rack"}: sum{(j,b) in USES_RACK} uses_rack[j,b] <= 1;
s.t. one_server{j in GANG: level[j] = "server"}: sum{(j,s) in TIED} uses_server[j,s] <= 1;

# Parts of a job run together or not at all, and within the level of their job.
s.t. same_region{j in FURTHER, r in REGION: whole_level[job_of[j]] = "region"}:
    sum{(j,c,k) in ASSIGN: region[c] = r} assign[j,c,k]
    - sum{(i,c,k) in ASSIGN: i = first[job_of[j]] and region[c] = r} assign[i,c,k] = 0;
s.t. same_cluster{j in FURTHER, c in CLUSTER: whole_level[job_of[j]] <> "region"}:
    sum{(j,c,k) in ASSIGN} assign[j,c,k] - sum{(i,c,k) in ASSIGN: i = first[job_of[j]]} assign[i,c,k] = 0;
s.t. in_whole_rack{(j,s) in IN_WHOLE_RACK}: count[j,s] <= tasks[j] * whole_rack[job_of[j],rack[s]];
s.t. in_whole_server{(j,s) in IN_WHOLE_SERVER}: count[j,s] <= tasks[j] * whole_server[job_of[j],s];
s.t. one_whole_rack{g in MULTIPART: whole_level[g] = "rack"}: sum{(g,b) in WHOLE_RACK} whole_rack[g,b] <= 1;
s.t. one_whole_server{g in MULTIPART: whole_level[g] = "server"}: sum{(g,s) in WHOLE_SERVER} whole_server[g,s] <= 1;

# What a victim frees serves only jobs that are more important than it; what a moved job leaves serves all.
s.t. capacity{(s,p) in LIMITED, n in RESOURCE}:
    sum{(j,s) in CELL: tier[j] >= p} need[j,type[s],n] * count[j,s]
    <= free[s,n] + sum{(v,s) in HOLDS: v in VICTIM and running_tier[v] > p} held[v,s,n] * preempt[v]
    + sum{(v,s) in HOLDS: v in MOVABLE} held[v,s,n] * move[v];

# A fraction of a GPU lives on one GPU; a whole-GPU task takes whole ones.
s.t. split{(j,s) in FRACTION}: sum{d in DEVICE[s]} on[j,s,d] = count[j,s];

s.t. whole{(s,p) in TAKES}:
    sum{d in DEVICE[s]} takes[s,p,d] = sum{(j,s) in WHOLE: tier[j] = p} mgpu[j,type[s]] / 1000 * count[j,s];

s.t. device{(s,p) in DEVICE_LIMITED, d in DEVICE[s]}:
    sum{(j,s) in FRACTION: tier[j] >= p} mgpu[j,type[s]] * on[j,s,d]
    + sum{(s,t) in TAKES: t >= p} 1000 * takes[s,t,d]
    <= 1000 - sum{(v,s,d) in HOLDS_DEVICE} held_device[v,s,d]
    + sum{(v,s,d) in HOLDS_DEVICE: v in VICTIM and running_tier[v] > p} held_device[v,s,d] * preempt[v]
    + sum{(v,s,d) in HOLDS_DEVICE: v in MOVABLE} held_device[v,s,d] * move[v];


#### Soft goals

s.t. used{(r,k) in BALANCED}:
    use[r,k] + sum{(v,s) in HOLDS: v in VICTIM and where[s] = r and type[s] = k} held[v,s,"gpu"] * preempt[v]
    + sum{(v,s) in HOLDS: v in MOVABLE and where[s] = r and type[s] = k} held[v,s,"gpu"] * move[v]
    - sum{(j,c,k) in ASSIGN: region[c] = r} mgpu[j,k] * tasks[j] * assign[j,c,k]
    = sum{(v,s) in HOLDS: where[s] = r and type[s] = k} held[v,s,"gpu"];

s.t. above{(r,k) in BALANCED}:
    off[r,k] - use[r,k] + region_mgpu[r,k] / (sum{q in REGION} region_mgpu[q,k]) * sum{(q,k) in BALANCED} use[q,k] >= 0;

s.t. below{(r,k) in BALANCED}:
    off[r,k] + use[r,k] - region_mgpu[r,k] / (sum{q in REGION} region_mgpu[q,k]) * sum{(q,k) in BALANCED} use[q,k] >= 0;

s.t. room{s in CHECKED, n in RESOURCE: common[s,n] > 0}:
    common[s,n] * fits[s] + sum{(j,s) in CELL} need[j,type[s],n] * count[j,s]
    <= free[s,n] + sum{(v,s) in HOLDS: v in VICTIM} held[v,s,n] * preempt[v]
    + sum{(v,s) in HOLDS: v in MOVABLE} held[v,s,n] * move[v];

s.t. waste{s in CHECKED}:
    fragment[s] >= free[s,"gpu"] + sum{(v,s) in HOLDS: v in VICTIM} held[v,s,"gpu"] * preempt[v]
    + sum{(v,s) in HOLDS: v in MOVABLE} held[v,s,"gpu"] * move[v]
    - sum{(j,s) in CELL} mgpu[j,type[s]] * count[j,s] - supply[s,"gpu"] * fits[s];


#### Objective: Σ weight · term; every term is a penalty ≥ 0, and 0 where its denominator is 0

minimize total:

    # share of the tier-weighted value that is not admitted
    weight["rejected"] * (if all_worth > 0 then
        1 - sum{(j,c,k) in ASSIGN} worth[j] / (if all_worth > 0 then all_worth else 1) * assign[j,c,k])

    # GPU-hours lost and GPUs held by victims, and GPU-hours lost by moves, tier-weighted / all GPUs
    + weight["preemption"] * sum{v in VICTIM: all_mgpu > 0}
        tier_weight[running_tier[v]] * (at_risk[v] + sum{(v,s) in HOLDS} held[v,s,"gpu"]) / all_mgpu * preempt[v]
    + weight["preemption"] * sum{v in MOVABLE: all_mgpu > 0} tier_weight[running_tier[v]] * restart[v] / all_mgpu * move[v]

    # |use − mean use of the type| over regions and types, weighted by supply
    + weight["balance"] * sum{(r,k) in BALANCED} off[r,k] / all_mgpu

    # racks used beyond the fewest possible / tasks that wait
    + weight["spread"] *
        ( sum{(j,b) in USES_RACK: j in WAITING} uses_rack[j,b] / all_tasks
        - sum{(j,c,k) in ASSIGN: j in GANG inter WAITING} fewest_racks[j] / all_tasks * assign[j,c,k] )

    # volume read from other regions / all volume
    + weight["remote"] * sum{(j,c,k) in ASSIGN} lacks_mb[j,region[c]] / max(1, all_reads_mb) * assign[j,c,k]

    # free GPUs on servers that could not take the commonest whole-server task / all GPUs
    + weight["fragmentation"] * sum{s in CHECKED} fragment[s] / max(1, all_mgpu)

    + weight["cost"] * sum{(j,c,k) in ASSIGN: (j,c) in PRICED} cost_micro[j,c] / 1e6 * assign[j,c,k];


solve;

printf{(j,s) in CELL: count[j,s] > 0.5} "run %d tasks of %s on %s\n", count[j,s], j, s;
printf{v in MOVABLE: move[v] > 0.5} "move %s\n", v;
printf{v in VICTIM: preempt[v] > 0.5} "stop %s\n", v;
printf "total %.9g\n", total;

end;
