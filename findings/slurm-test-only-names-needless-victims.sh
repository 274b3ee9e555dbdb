#!/usr/bin/env bash
# Slurm: sbatch --test-only names victims, and nodes, that are not those that are preempted when the job is submitted.
#
# Versions: Slurm 22.05.8 (Debian bookworm, packages slurmctld, slurmd, slurm-client), preempt/partition_prio.
#
# Expected: `sbatch --test-only` says which jobs a submission would preempt (`Preempts: ...`). Jobs of a lower tier run on
# n0 (1 node), and on n1 and n2 (one job of 2 nodes); each leaves 2 of the 4 CPUs. An urgent job asks for two nodes with
# 3 CPUs; n3 is idle. One victim is enough: the job of n0.
# Found: --test-only chooses nodes as if all jobs that may be preempted had already left, n0 and n1, and names two victims.
# Submitted, the job preempts one and runs on n0 and n3.
#
# Output seen:
#   predicted: nodes n[0-1], preempts 2 jobs
#   submitted: nodes n[0,3], preempts 1 job
#
# Why a user cares: scripts and portals show "this would stop jobs A and B" and people decide not to submit, or to warn
# the owner of a job that is not touched.
#
# Needs root, as a Slurm cluster of one's own does; it listens on ports 27937 to 27941 of this machine alone.
set -euo pipefail

if ! command -v slurmctld >/dev/null; then
    apt-get install --yes --no-install-recommends slurmctld slurmd slurm-client >/dev/null
fi
folder=$(mktemp -d)
export SLURM_CONF=$folder/slurm.conf
pids=""
finish() {
    scancel --user="$(id -un)" 2>/dev/null || true
    sleep 2
    for pid in $pids; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT
mkdir "$folder/state" "$folder/spool"
cat >"$SLURM_CONF" <<CONF
ClusterName=one
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=27937
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=1
ReturnToService=2
SlurmdParameters=config_overrides
MpiDefault=none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
NodeName=n[0-3] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[27938-27941] CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=low Nodes=n[0-3] Default=YES PriorityTier=1 State=UP
PartitionName=urgent Nodes=n[0-3] PriorityTier=9 PreemptMode=OFF State=UP
CONF
slurmctld -D -c >/dev/null 2>&1 & pids="$pids $!"
for node in n0 n1 n2 n3; do slurmd -D -N $node >/dev/null 2>&1 & pids="$pids $!"; done
for _ in $(seq 60); do
    [ "$(sinfo --noheader --format=%T 2>/dev/null | sort -u)" = idle ] && break
    sleep 1
done
cd "$folder"
submit() { sbatch --parsable --output=/dev/null --time=60 --wrap "sleep 600" "$@"; }
first=$(submit --partition=low --nodelist=n0 --ntasks=2)
second=$(submit --partition=low --nodelist="n[1-2]" --nodes=2 --ntasks-per-node=2)
for _ in $(seq 60); do [ "$(squeue --noheader --states=R | wc -l)" = 2 ] && break; sleep 1; done
urgent="--partition=urgent --nodes=2 --ntasks-per-node=3"
said=$(sbatch --test-only $urgent --wrap true 2>&1)
nodes=$(sed -nE 's/.* on nodes ([^ ]+) .*/\1/p' <<<"$said")
predicted=$(sed -nE 's/.*Preempts: (.*)/\1/p' <<<"$said" | tr ',' '\n' | grep -c .)
echo "predicted: nodes $nodes, preempts $predicted jobs"
job=$(submit $urgent)
for _ in $(seq 60); do [ "$(squeue --noheader --job="$job" --format=%T)" = RUNNING ] && break; sleep 1; done
really=$(squeue --noheader --job="$job" --format=%N)
stopped=0
for one in $first $second; do
    [ "$(squeue --noheader --job="$one" --format=%T)" = RUNNING ] || stopped=$((stopped + 1))
done
echo "submitted: nodes $really, preempts $stopped job"
[ "$nodes $predicted" = "n[0-1] 2" ]
[ "$really $stopped" = "n[0,3] 1" ]
