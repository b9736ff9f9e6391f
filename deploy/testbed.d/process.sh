# shellcheck shell=bash
# Processes by pid and start time: a record never matches another process that was given the same pid later.

# Names of the services that this run started, for taking them back when it fails or is interrupted.
STARTED=()
LAUNCHING='' INTERRUPTED=''

# An interrupt between the fork and the record would leave a process that nobody ends: it waits until the record is written.
interrupt() {
    if [[ -n $LAUNCHING ]]; then INTERRUPTED=$1; else exit "$1"; fi
}

# The 22nd field of stat; the command's name in the second may hold spaces and brackets.
start_time() {
    local line fields
    { line=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    read -ra fields <<<"${line##*) }"
    # A zombie has ended, whatever its parent does about it.
    [[ ${fields[0]} != Z ]] && echo "${fields[19]}"
}

# pid_of NAME: prints the pid of a service that still runs.
pid_of() {
    local pid born
    { read -r pid born <"$DIR/run/$1.pid"; } 2>/dev/null || return 1
    [[ -n $born && $(start_time "$pid") == "$born" ]] && echo "$pid"
}

alive() { pid_of "$1" >/dev/null; }

# launch NAME USER COMMAND...: a session of its own, a clean environment, none of the caller's files.
# env resets INT and QUIT, which a shell without job control ignores for its background commands, and jobs would inherit.
launch() {
    local name=$1 user=$2 pid log=$DIR/log/$1.out
    shift 2
    local as=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --init-groups)
    [[ $user == root ]] && as=()
    printf '%s\n' "$*" >"$DIR/run/$name.command"
    LAUNCHING=yes
    (
        cd /
        umask 022
        for fd in "/proc/$BASHPID/fd"/*; do
            fd=${fd##*/}
            if ((fd > 2)); then eval "exec $fd>&-"; fi
        done
        exec setsid env -i --default-signal=INT,QUIT LANG=C.UTF-8 SLURM_CONF="$SLURM_CONF" \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ${as[@]+"${as[@]}"} "$@"
    ) </dev/null >"$log" 2>&1 &
    pid=$!
    disown "$pid"
    printf '%s %s\n' "$pid" "$(start_time "$pid")" >"$DIR/run/$name.pid"
    STARTED+=("$name")
    LAUNCHING=''
    if [[ -n $INTERRUPTED ]]; then exit "$INTERRUPTED"; fi
}

# within SECONDS COMMAND...: polls until the command succeeds.
within() {
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < until)) || return 1
        sleep 0.05
    done
}

# dead_or NAME COMMAND...: ends a wait early when the service has ended.
dead_or() {
    local name=$1
    shift
    "$@" >/dev/null 2>&1 || ! alive "$name"
}

# stop NAME...: asks all, waits for all, forces who is left.
stop() {
    local name
    for name in "$@"; do signal "$name" TERM; done
    for name in "$@"; do
        within 20 gone "$name" && continue
        warn "$name did not end within 20 s: killed"
        signal "$name" KILL
        within 5 gone "$name" || fail "$name (pid $(pid_of "$name")) cannot be killed"
    done
    for name in "$@"; do rm -f "$DIR/run/$name.pid" "$DIR/run/$name.command"; done
}

gone() { ! alive "$1"; }

signal() {
    local pid
    if pid=$(pid_of "$1"); then kill "-$2" "$pid" 2>/dev/null || true; fi
}

# listens PORT: from the kernel's table, since Slurm's daemons log an error for every connection that says nothing.
listens() { grep -qsE ": [0-9A-F]+:$(printf '%04X' "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6; }

# line_from PORT REQUEST PATTERN: the first line that comes back after an optional request matches.
line_from() (
    exec 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    if [[ -n $2 ]]; then printf '%b' "$2" >&3; fi
    read -r -t 2 line <&3 && [[ $line =~ $3 ]]
)

http_ready() { line_from "$1" 'GET /-/ready HTTP/1.0\r\n\r\n' '^HTTP/1.. 200'; }
