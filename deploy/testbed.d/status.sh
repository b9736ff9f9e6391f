# shellcheck shell=bash
# What runs, for people and for programs.

# state_of NAME: up, failing (runs and does not answer) or down.
state_of() {
    if ! alive "$1"; then echo down; elif ready "$1" >/dev/null 2>&1; then echo up; else echo failing; fi
}

# survey: fills SERVICE_ROWS (name pid address state) and NODE_ROWS (name state), and tells whether all is well.
survey() {
    local name state node well=0
    local -A seen=()
    SERVICE_ROWS=() NODE_ROWS=()
    for name in "${SERVICES[@]}"; do
        state=$(state_of "$name")
        [[ $state == up ]] || well=1
        SERVICE_ROWS+=("$name $(pid_of "$name" || echo -) $(address_of "$name") $state")
        if [[ $name == slurmctld* && $state == up ]]; then
            # One that is down would be waited for.
            enter_cluster_named "$name"
            while read -r node state; do seen[$node]=$state; done < <(states_of_nodes 2>/dev/null)
            enter_cluster 1
        fi
    done
    for node in "${NODES[@]}"; do
        state=${seen[$node]:-unknown}
        node_is_well "$state" || well=1
        NODE_ROWS+=("$node $state")
    done
    return "$well"
}

print_table() {
    local row name pid address state
    printf '%-14s %8s  %-46s %s\n' SERVICE PID ADDRESS STATE
    for row in "${SERVICE_ROWS[@]}"; do
        read -r name pid address state <<<"$row"
        printf '%-14s %8s  %-46s %s\n' "$name" "$pid" "$address" "$(coloured "$state")"
    done
    printf '\n%-14s %s\n' NODE STATE
    for row in "${NODE_ROWS[@]}"; do
        read -r name state <<<"$row"
        if node_is_well "$state"; then state=$GREEN$state$PLAIN; else state=$RED$state$PLAIN; fi
        printf '%-14s %s\n' "$name" "$state"
    done
}

coloured() { if [[ $1 == up ]]; then echo "$GREEN$1$PLAIN"; else echo "$RED$1$PLAIN"; fi; }

# Every value is a name, number or path of checked characters, so nothing needs escaping.
print_json() {
    local row name pid address state comma=''
    printf '{"dir":"%s","cluster":"%s","clusters":%s,"cgroup":"%s","up":%s,"services":[' \
        "$DIR" "$CLUSTER" "$CLUSTERS" "$CGROUP" "$1"
    for row in "${SERVICE_ROWS[@]}"; do
        read -r name pid address state <<<"$row"
        printf '%s{"name":"%s","pid":%s,"address":"%s","state":"%s"}' "$comma" "$name" "${pid/#-/null}" "$address" "$state"
        comma=,
    done
    printf '],"nodes":['
    comma=''
    for row in "${NODE_ROWS[@]}"; do
        read -r name state <<<"$row"
        printf '%s{"name":"%s","state":"%s"}' "$comma" "$name" "$state"
        comma=,
    done
    printf ']}\n'
}

show_status() {
    local well=true
    survey || well=false
    if [[ $1 == json ]]; then print_json "$well"; else print_table; fi
    [[ $well == true ]]
}
