# shellcheck shell=bash
# Which cgroup version Slurm is to use here, what it needs of it, and what it leaves behind.

CGROUP_ROOT=/sys/fs/cgroup

# A hybrid machine has v2 below a v1 root, without the controllers: it counts as v1.
if [[ $(stat -f -c %T "$CGROUP_ROOT" 2>/dev/null) == cgroup2fs ]]; then CGROUP=v2; else CGROUP=v1; fi

check_cgroups() { "check_cgroups_$CGROUP"; }

# Mounting is left to whoever owns the machine.
check_cgroups_v1() {
    local controller missing=()
    for controller in freezer memory cpuacct; do
        [[ -e $CGROUP_ROOT/$controller/cgroup.procs ]] || missing+=("$controller")
    done
    if ((${#missing[@]} == 0)); then return; fi
    warn 'Slurm needs cgroup v1 controllers that are not mounted. To mount them:'
    for controller in "${missing[@]}"; do
        warn "  mkdir -p $CGROUP_ROOT/$controller && mount -t cgroup -o $controller cgroup $CGROUP_ROOT/$controller"
    done
    fail "missing cgroup v1 controllers: ${missing[*]}"
}

# Each slurmd starts in a cgroup of its own, as under a service manager: it takes that one for its home, and moves on
# into <node>_slurmstepd.scope/slurmd from there.
v2_slurmd_dir() { echo "$CGROUP_ROOT/system.slice/steward-testbed-$1.service"; }

check_cgroups_v2() {
    local controller parent node
    mkdir -p "$CGROUP_ROOT/system.slice"
    for parent in "$CGROUP_ROOT" "$CGROUP_ROOT/system.slice"; do
        for controller in cpuset cpu io memory pids; do
            grep -qw "$controller" "$parent/cgroup.controllers" ||
                fail "the cgroup v2 controller $controller is not to be had in $parent"
            echo "+$controller" >"$parent/cgroup.subtree_control" ||
                fail "cannot enable the controller $controller in $parent/cgroup.subtree_control"
        done
    done
    for node in "${NODES[@]}"; do mkdir -p "$(v2_slurmd_dir "$node")"; done
}

# The directories of the nodes' jobs in every hierarchy; their names hold our node names.
slurm_cgroups() {
    local node
    shopt -s nullglob
    for node in "${NODES[@]}"; do
        if [[ $CGROUP == v1 ]]; then
            printf '%s\n' "$CGROUP_ROOT"/*/"slurm_$node"
        else
            printf '%s\n' "$CGROUP_ROOT/system.slice/${node}_slurmstepd.scope"* "$(v2_slurmd_dir "$node")"
        fi
    done
    shopt -u nullglob
}

# sweep_once: kills what is left in them and removes them, deepest first; true when nothing is left.
# For after the slurmd have ended: no job process outlives its cluster, not even one that its slurmstepd lost.
sweep_once() {
    local dir pid left=0
    while read -r dir; do
        [[ -d $dir ]] || continue
        while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done \
            < <(find "$dir" -name cgroup.procs -exec cat {} + 2>/dev/null)
        find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null || true
        if [[ -d $dir ]]; then left=1; fi
    done < <(slurm_cgroups)
    ((left == 0))
}

# The cgroups of a testbed in another directory may have the same names: without a record of a slurmd they are not ours.
nodes_were_started() { compgen -G "$DIR/run/slurmd@*.pid" >/dev/null; }

sweep_cgroups() { within 15 sweep_once || warn "cgroups left behind: $(slurm_cgroups | tr '\n' ' ')"; }
