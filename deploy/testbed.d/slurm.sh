# shellcheck shell=bash
# Slurm's daemons, accounts, nodes and jobs.

export SLURM_CONF=$DIR/slurm/slurm.conf

run_slurmdbd() { launch slurmdbd slurm slurmdbd -D; }
ready_slurmdbd() { listens "$SLURMDBD_PORT" && timeout 5 sacctmgr -n show cluster; }

run_slurmctld() { launch slurmctld slurm slurmctld -D -f "$SLURM_CONF"; }
ready_slurmctld() { listens "$SLURMCTLD_PORT" && timeout 5 scontrol ping | grep -q 'is UP'; }

run_slurmd() {
    local enter=()
    # shellcheck disable=SC2016  # the inner shell expands it
    if [[ $CGROUP == v2 ]]; then enter=(bash -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' "$(v2_slurmd_dir "$2")"); fi
    launch "$1" root ${enter[@]+"${enter[@]}"} slurmd -D -N "$2" -f "$SLURM_CONF"
}
ready_slurmd() {
    local key=${1^^}_PORT
    listens "${!key}"
}

# ensure_accounts: before slurmctld starts for the first time, so that it knows them at once.
ensure_accounts() {
    local known wanted user account
    if [[ -z $(sacctmgr -nP show cluster "$CLUSTER" format=cluster) ]]; then add cluster "$CLUSTER"; fi
    known=$(sacctmgr -nP show assoc cluster="$CLUSTER" format=account,user)
    for wanted in "${ASSOCIATIONS[@]}"; do
        read -r user account <<<"$wanted"
        if ! grep -qxF "$account|" <<<"$known"; then
            add account "$account" cluster="$CLUSTER" description="$account" organization=testbed
            known+=$'\n'"$account|"
        fi
        grep -qxF "$account|$user" <<<"$known" || add user "$user" account="$account" cluster="$CLUSTER"
    done
}

add() {
    local said
    said=$(sacctmgr -i add "$@" 2>&1) || fail "sacctmgr add $*: $said"
}

# node_states: lines `n1 idle`; a `*` behind the state means that the node does not answer, a `-` that the scheduler has
# plans for it, a `+` that some job on it is still ending: both are well.
node_states() { timeout 10 sinfo -h -N -o '%N %T' | sort -u; }

node_is_well() { [[ $1 =~ ^(idle|mixed|allocated|completing|drained|draining|reserved|planned)[-+]?$ ]]; }

nodes_are_well() {
    local node state count=0
    while read -r node state; do
        node_is_well "$state" || return 1
        count=$((count + 1))
    done < <(node_states 2>/dev/null)
    ((count == ${#NODES[@]}))
}

await_nodes() {
    within 60 nodes_are_well || {
        node_states >&2 || true
        tail -n 5 "$DIR"/log/slurmd-n*.log >&2
        fail 'the nodes were not ready within 60 s'
    }
    local node state
    while read -r node state; do
        if [[ $state == drain* ]]; then warn "$node is $state: scontrol update nodename=$node state=resume"; fi
    done < <(node_states)
}

# No daemon that could know of a running job was there before this run.
began_from_nothing() {
    local name
    for name in slurmctld "${NODES[@]/#/slurmd@}"; do [[ " ${STARTED[*]} " == *" $name "* ]] || return 1; done
}

no_job_runs() { [[ -z $(timeout 10 squeue -h -t running,completing,suspended,configuring -o %A) ]]; }

# Pending jobs too: they would start by themselves at the next `up`. A kill at once spares the KillWait.
cancel_jobs() {
    local jobs
    if ! alive slurmctld || ! ready slurmctld; then return; fi
    mapfile -t jobs < <(timeout 10 squeue -h -o %A | sort -un)
    if ((${#jobs[@]} == 0)); then return; fi
    say "cancelling ${#jobs[@]} jobs"
    scancel --quiet --state=PENDING "${jobs[@]}" || true
    scancel --quiet "${jobs[@]}" || true
    within 20 no_job_runs || warn 'some jobs did not end within 20 s; their processes are killed'
}
