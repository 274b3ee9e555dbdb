#!/usr/bin/env bash
# Slurm: sbatch --test-only predicts a start 20 minutes from now for a job that starts at once when it is submitted.
#
# Versions: Slurm 22.05.8 (Debian bookworm, packages slurmctld, slurmd, slurm-client), backfill scheduler.
#
# Expected: `sbatch --test-only` says when a job would start. Node n0 is busy for an hour, n1 is idle, and a job for both
# nodes waits for n0. A job of 10 minutes on one node does not delay it, so that backfill starts it on n1 now.
# Found: --test-only names n1 and a start in 20 minutes: it adds the time limits of the jobs that wait in the partition to
# now, although the one that waits cannot begin before an hour has passed. The same job, submitted, runs at once.
#
# Output seen:
#   predicted: starts on n1 in 20 minutes
#   submitted: RUNNING on n1, start after 0 minutes
#
# Why a user cares: scripts (and portals) that choose the partition or cluster with the earliest --test-only start send
# small jobs away from the very place where they would start now.
#
# Needs root, as a Slurm cluster of one's own does; it listens on ports 27917 to 27919 of this machine alone.
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
    rm -rf "$folder"
}
trap finish EXIT
mkdir "$folder/state" "$folder/spool"
cat >"$SLURM_CONF" <<CONF
ClusterName=one
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=27917
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
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
SlurmdParameters=config_overrides
MpiDefault=none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
NodeName=n[0-1] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[27918-27919] CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=n[0-1] Default=YES MaxTime=INFINITE State=UP
CONF
slurmctld -D -c >/dev/null 2>&1 & pids="$pids $!"
slurmd -D -N n0 >/dev/null 2>&1 & pids="$pids $!"
slurmd -D -N n1 >/dev/null 2>&1 & pids="$pids $!"
for _ in $(seq 60); do
    [ "$(sinfo --noheader --format=%T 2>/dev/null | sort -u)" = idle ] && break
    sleep 1
done
cd "$folder"
submit() { sbatch --parsable --output=/dev/null --mem=100 --wrap "sleep 600" "$@"; }
submit --nodes=1 --exclusive --time=60 --nodelist=n0 >/dev/null
for _ in $(seq 30); do [ "$(squeue --noheader --states=R | wc -l)" = 1 ] && break; sleep 1; done
submit --nodes=2 --exclusive --time=20 >/dev/null
sleep 5
said=$(sbatch --test-only --nodes=1 --mem=100 --time=10 --wrap true 2>&1)
at=$(sed -E 's/.* start at ([^ ]+) .*/\1/' <<<"$said")
node=$(sed -E 's/.* on nodes ([^ ]+) .*/\1/' <<<"$said")
in=$((($(date --date="$at" +%s) - $(date +%s) + 30) / 60))
echo "predicted: starts on $node in $in minutes"
job=$(submit --nodes=1 --time=10)
for _ in $(seq 60); do [ "$(squeue --noheader --job="$job" --format=%T)" = RUNNING ] && break; sleep 1; done
really=$(squeue --noheader --job="$job" --format="%T on %N")
after=$((($(date +%s) - $(date --date="$(squeue --noheader --job="$job" --format=%V)" +%s)) / 60))
echo "submitted: $really, start after $after minutes"
[ "$node in $in" = "n1 in 20" ]
[ "$really after $after" = "RUNNING on n1 after 0" ]
