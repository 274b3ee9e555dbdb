#!/usr/bin/env bash
# Slurm with ClusterShell or python-hostlist: host names that end in letters are folded into a list that Slurm cannot
# read, and scontrol then prints no host and exits with 0.
#
# Versions: Slurm 22.05.8 (Debian bookworm, package slurm-client), ClusterShell 1.10.1, python-hostlist 2.3.0.
#
# Expected: both libraries are made for Slurm's lists of hosts, so what they fold from the names of nodes, `scontrol show
# hostnames` unfolds into the same names. Where it cannot, it exits with a code other than 0.
# Found: names such as those of a second network, n1-ib and n2-ib, are folded to n[1-2]-ib, with what follows the
# brackets. Slurm has no such lists ("Invalid hostlist" on standard error): it prints nothing, also nothing of the valid
# names next to it, and exits with 0. Its own `scontrol show hostlist` leaves such names unfolded. Names that end in
# digits agree in all three, with zeros in front and in two dimensions too.
#
# Output seen:
#   ClusterShell     n[1-2]-ib,m[1-2]   scontrol: exit 0, 0 hosts
#   python-hostlist  n[1-2]-ib,m[1-2]   scontrol: exit 0, 0 hosts
#   scontrol         n1-ib,n2-ib,m[1-2] scontrol: exit 0, 4 hosts
#   r[1-2]n[01-02]   scontrol: exit 0, 4 hosts
#
# Why a user cares: "for host in $(scontrol show hostnames ...)" runs nowhere and succeeds, so that a drain, a copy or a
# launch of servers is believed to be done.
set -euo pipefail

if ! command -v scontrol >/dev/null; then
    apt-get install --yes --no-install-recommends slurm-client >/dev/null
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export SLURM_CONF=$folder/slurm.conf
printf 'ClusterName=one\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=all Nodes=ALL\n' >"$SLURM_CONF"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ClusterShell==1.10.1 python-hostlist==2.3.0

unfolded() {
    local code=0 hosts
    hosts=$(scontrol show hostnames "$1" 2>/dev/null) || code=$?
    echo "scontrol: exit $code, $(grep -c . <<<"$hosts" || true) hosts"
}

names="n1-ib n2-ib m1 m2"
shell=$("$folder/venv/bin/python" -c "
from ClusterShell.NodeSet import NodeSet
print(','.join(sorted(str(NodeSet.fromlist('$names'.split())).split(','), reverse=True)))")
hostlist=$("$folder/venv/bin/python" -c "
import hostlist
print(','.join(sorted(hostlist.collect_hostlist('$names'.split()).split(','), reverse=True)))")
own=$(scontrol show hostlist "${names// /,}")
seen=$(
    echo "ClusterShell     $shell   $(unfolded "$shell")"
    echo "python-hostlist  $hostlist   $(unfolded "$hostlist")"
    echo "scontrol         $own $(unfolded "$own")"
    echo "r[1-2]n[01-02]   $(unfolded 'r[1-2]n[01-02]')"
)
echo "$seen"
diff <(
    cat <<'SEEN'
ClusterShell     n[1-2]-ib,m[1-2]   scontrol: exit 0, 0 hosts
python-hostlist  n[1-2]-ib,m[1-2]   scontrol: exit 0, 0 hosts
scontrol         n1-ib,n2-ib,m[1-2] scontrol: exit 0, 4 hosts
r[1-2]n[01-02]   scontrol: exit 0, 4 hosts
SEEN
) <(echo "$seen")
