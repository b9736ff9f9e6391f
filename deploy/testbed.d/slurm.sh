# shellcheck shell=bash
# Slurm's daemons, accounts, nodes and jobs.

run_slurmdbd() { launch slurmdbd slurm slurmdbd -D; }
ready_slurmdbd() { listens "$SLURMDBD_PORT" && timeout 5 sacctmgr -n show cluster; }

run_slurmctld() { launch "$1" slurm slurmctld -D -f "$SLURM_CONF"; }
ready_slurmctld() { listens "$SLURMCTLD_PORT" && timeout 5 scontrol ping | grep -q 'is UP'; }

run_slurmctld2() {
    enter_cluster 2
    run_slurmctld "$1"
    enter_cluster 1
}
ready_slurmctld2() {
    listens "$SLURMCTLD2_PORT" && SLURM_CONF=$DIR/slurm2/slurm.conf timeout 5 scontrol ping | grep -q 'is UP'
}

run_slurmd() {
    local enter=()
    # shellcheck disable=SC2016  # the inner shell expands it
    if [[ $CGROUP == v2 ]]; then enter=(bash -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' "$(v2_slurmd_dir "$2")"); fi
    enter_cluster_of "$2"
    launch "$1" root ${enter[@]+"${enter[@]}"} slurmd -D -N "$2" -f "$SLURM_CONF"
    enter_cluster 1
}
ready_slurmd() { listens "$(node_port "$1")"; }

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

# states_of_nodes: lines `n1 idle`; a `*` behind the state means that the node does not answer, a `-` that the scheduler has
# plans for it, a `+` that some job on it is still ending: both are well.
states_of_nodes() { timeout 10 sinfo -h -N -o '%N %T' | sort -u; }

# node_states: of all clusters.
node_states() { in_each_cluster states_of_nodes; }

node_is_well() { [[ $1 =~ ^(idle|mixed|allocated|completing|drained|draining|reserved|planned)[-+]?$ ]]; }

nodes_are_well() {
    local node state count=0
    while read -r node state; do
        node_is_well "$state" || return 1
        count=$((count + 1))
    done < <(node_states 2>/dev/null)
    ((count == ${#NODES[@]}))
}

# A slurmctld that is started anew asks each node once, and one that did not hear it only after a third of SlurmdTimeout.
await_nodes() {
    within 150 nodes_are_well || {
        node_states >&2 || true
        tail -n 5 "$DIR"/log/slurmd-*.log >&2
        fail 'the nodes were not ready within 150 s'
    }
    local node state
    while read -r node state; do
        if [[ $state == drain* ]]; then warn "$node is $state: scontrol update nodename=$node state=resume"; fi
    done < <(node_states)
}

# No daemon of the cluster that could know of a running job was there before this run.
began_from_nothing() {
    local name
    for name in "$SLURMCTLD" "${CLUSTER_NODES[@]/#/slurmd@}"; do [[ " ${STARTED[*]} " == *" $name "* ]] || return 1; done
}

# A testbed that was killed, not ended, comes back with jobs that slurmctld believes to run: they hold CPUs for ever.
cancel_left_jobs() { if began_from_nothing; then cancel_jobs; fi; }

no_job_runs() { [[ -z $(timeout 10 squeue -h -t running,completing,suspended,configuring -o %A) ]]; }

# Pending jobs too: they would start by themselves at the next `up`. A kill at once spares the KillWait.
cancel_jobs() {
    local jobs
    if ! alive "$SLURMCTLD" || ! ready "$SLURMCTLD"; then return; fi
    mapfile -t jobs < <(timeout 10 squeue -h -o %A | sort -un)
    if ((${#jobs[@]} == 0)); then return; fi
    say "cancelling ${#jobs[@]} jobs of $CLUSTER"
    scancel --quiet --state=PENDING "${jobs[@]}" || true
    scancel --quiet "${jobs[@]}" || true
    within 20 no_job_runs || warn 'some jobs did not end within 20 s; their processes are killed'
}
