# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153  # the names are used by the other files
# Where everything lives: one state directory, private ports, files made from templates.

DIR=${STEWARD_TESTBED_DIR:-/var/tmp/steward-testbed}
DIR=${DIR%/}
HOST=$(hostname -s)

# Marks a directory as ours: nothing else is ever adopted or deleted.
MARKER=.steward-testbed

# What makes this testbed another than the usual one. What it came up with holds until it goes down, whatever the
# environment of a later command says: `up` keeps it in the file `shape`.
CLUSTERS=1
SLURM_ONLY=no
PORTS=${STEWARD_TESTBED_PORTS:-16000}
PREFIX=${STEWARD_TESTBED_NODES:-n}
# What slurmctld holds jobs to; tests of the bank start it with another. It reads that when it starts.
ENFORCE=${STEWARD_TESTBED_ENFORCE:-associations,limits,qos,safe}

check_shape() {
    # Whole thousands, because ports of nodes are written as thousands and number.
    [[ $PORTS =~ ^([2-9]|[1-5][0-9]|60)000$ ]] ||
        usage_error "STEWARD_TESTBED_PORTS must be a whole thousand from 2000 to 60000: '$PORTS'"
    [[ $PREFIX =~ ^[a-z]{1,8}$ ]] || usage_error "STEWARD_TESTBED_NODES must be up to eight small letters: '$PREFIX'"
    # The directories of jobs in the cgroup tree are named by node: two testbeds would sweep away one another's.
    [[ $PORTS == 16000 || $PREFIX != n ]] ||
        usage_error "STEWARD_TESTBED_PORTS is for a second testbed, whose nodes need other names: set STEWARD_TESTBED_NODES"
}

read_shape() {
    local key value
    [[ -e $DIR/shape ]] || return 0
    while IFS='=' read -r key value; do
        case $key in CLUSTERS | SLURM_ONLY | PORTS | PREFIX) printf -v "$key" %s "$value" ;; esac
    done <"$DIR/shape"
}

write_shape() {
    printf '%s\n' "CLUSTERS=$CLUSTERS" "SLURM_ONLY=$SLURM_ONLY" "PORTS=$PORTS" "PREFIX=$PREFIX" >"$DIR/shape.new"
    mv "$DIR/shape.new" "$DIR/shape"
}

# lay_out: names and ports that follow from the shape.
lay_out() {
    MARIADB_PORT=$((PORTS + 306))
    SLURMCTLD_PORT=$((PORTS + 817)) SLURMCTLD2_PORT=$((PORTS + 827))
    SLURMDBD_PORT=$((PORTS + 819))
    SMTP_PORT=$((PORTS + 25))
    PROMETHEUS_PORT=$((PORTS + 3090))
    PUSHGATEWAY_PORT=$((PORTS + 3091))
    ALERTMANAGER_PORT=$((PORTS + 3093))
    SERVICES=(munge mariadb)
    [[ $SLURM_ONLY == yes ]] || SERVICES+=("${MONITORING[@]}")
    SERVICES+=(slurmdbd)
    NODES=()
    local cluster
    for ((cluster = 1; cluster <= CLUSTERS; cluster++)); do
        enter_cluster "$cluster"
        NODES+=("${CLUSTER_NODES[@]}")
        SERVICES+=("$SLURMCTLD" "${CLUSTER_NODES[@]/#/slurmd@}")
    done
    enter_cluster 1
}

# enter_cluster NUMBER: which cluster Slurm's commands ask, and what its parts are called.
enter_cluster() {
    local number
    case $1 in
        1) CLUSTER=steward SLURMCTLD=slurmctld CONF_DIR=$DIR/slurm NUMBERS=(1 2 3 4) ;;
        2) CLUSTER=steward2 SLURMCTLD=slurmctld2 CONF_DIR=$DIR/slurm2 NUMBERS=(11 12) ;;
    esac
    CLUSTER_NODES=()
    for number in "${NUMBERS[@]}"; do CLUSTER_NODES+=("$PREFIX$number"); done
    export SLURM_CONF=$CONF_DIR/slurm.conf
}

# enter_cluster_named SLURMCTLD, by the service's name; enter_cluster_of NODE.
enter_cluster_named() { if [[ $1 == slurmctld2 ]]; then enter_cluster 2; else enter_cluster 1; fi; }
enter_cluster_of() { if [[ ${1#"$PREFIX"} == ?? ]]; then enter_cluster 2; else enter_cluster 1; fi; }

# in_each_cluster COMMAND...: runs it once for each, and ends where it began, at the first.
in_each_cluster() {
    local cluster
    for ((cluster = 1; cluster <= CLUSTERS; cluster++)); do
        enter_cluster "$cluster"
        "$@"
    done
    enter_cluster 1
}

node_port() { echo $((PORTS + 1000 + ${1#"$PREFIX"})); }

# The path goes unquoted into configuration files, and slurmstepd's and MariaDB's socket names must fit into 108 bytes.
check_dir_name() {
    [[ $DIR =~ ^/[A-Za-z0-9._/-]+$ ]] ||
        usage_error "STEWARD_TESTBED_DIR must be an absolute path of letters, digits, '.', '_', '-' and '/': '$DIR'"
    ((${#DIR} <= 64)) || usage_error "STEWARD_TESTBED_DIR is longer than 64 characters: '$DIR'"
}

is_ours() { [[ -e $DIR/$MARKER ]]; }

claim_dir() {
    if [[ -e $DIR ]] && ! is_ours; then
        [[ -d $DIR && -z $(ls -A "$DIR") ]] ||
            fail "$DIR exists and is not a testbed: choose another with STEWARD_TESTBED_DIR"
    fi
    install -d -m 755 "$DIR"
    # Daemons and test users are not root; a parent that is closed to them fails much later and less clearly.
    if ! setpriv --reuid=nobody --regid=nogroup --clear-groups test -x "$DIR"; then
        rmdir --ignore-fail-on-non-empty "$DIR"
        fail "$DIR cannot be reached by other users: choose a place with STEWARD_TESTBED_DIR"
    fi
    : >"$DIR/$MARKER"
}

make_dirs() {
    install -d -m 755 "$DIR"/{slurm,slurm2,run,log,home,slurmd,prometheus,prometheus/agents,prometheus/rules}
    install -d -m 700 "$DIR/secret"
    install -d -m 755 -o slurm -g slurm "$DIR"/{slurmctld,slurmctld2,slurm-run}
    install -d -m 755 -o munge -g munge "$DIR/munge"
    install -d -m 755 -o mysql -g mysql "$DIR/mariadb"
    install -d -m 755 -o prometheus -g prometheus "$DIR"/{prometheus/data,alertmanager}
    install -d -m 755 -o nobody -g nogroup "$DIR/smtp"
    # Slurm's own do not run as root, and the directory of the logs is root's.
    local node name
    for name in slurmdbd slurmctld slurmctld2; do
        [[ -e $DIR/log/$name.log ]] || install -m 644 -o slurm -g slurm /dev/null "$DIR/log/$name.log"
    done
    for node in "${NODES[@]}"; do install -d -m 755 "$DIR/slurmd/$node"; done
    make_secret munge.key 128
    make_secret db-password 24
    install -m 400 -o munge -g munge "$DIR/secret/munge.key" "$DIR/munge/munge.key"
}

# make_secret NAME BYTES: hexadecimal, kept once made.
make_secret() {
    [[ -s $DIR/secret/$1 ]] || (umask 077 && od -An -vtx1 -N "$2" /dev/urandom | tr -d ' \n' >"$DIR/secret/$1")
}

# render NAME TARGET [MODE OWNER]: fills the @KEY@s of NAME.in. In bash, so that no secret shows in a process list.
render() {
    local text key
    text=$(<"$PARTS/$1.in")
    for key in NODE_LINES DIR CLUSTER SLURMCTLD HOST CGROUP DB_PASSWORD MARIADB_PORT CONTROL_PORT SLURMDBD_PORT PREFIX \
        ENFORCE THOUSANDS SMTP_PORT PROMETHEUS_PORT PUSHGATEWAY_PORT ALERTMANAGER_PORT; do
        text=${text//"@$key@"/"${!key}"}
    done
    (umask 077 && printf '%s\n' "$text" >"$2.new")
    chown "${4:-root}:" "$2.new"
    chmod "${3:-644}" "$2.new"
    mv "$2.new" "$2"
}

write_configs() {
    DB_PASSWORD=$(<"$DIR/secret/db-password")
    in_each_cluster write_cluster_configs
    render slurmdbd.conf "$DIR/slurm/slurmdbd.conf" 600 slurm
    render prometheus.yml "$DIR/prometheus/prometheus.yml"
    render alertmanager.yml "$DIR/alertmanager/alertmanager.yml"
}

write_cluster_configs() {
    local port=${SLURMCTLD^^}_PORT
    NODE_LINES=$(<"$PARTS/nodes-$CLUSTER.in") CONTROL_PORT=${!port} THOUSANDS=$((PORTS / 1000 + 1))
    render slurm.conf "$CONF_DIR/slurm.conf"
    render gres.conf "$CONF_DIR/gres.conf"
    render cgroup.conf "$CONF_DIR/cgroup.conf"
}

write_env() {
    cat >"$DIR/env.new" <<END
STEWARD_TESTBED_DIR=$DIR
SLURM_CONF=$SLURM_CONF
STEWARD_CLUSTER=$CLUSTER
STEWARD_CGROUP=$CGROUP
STEWARD_TESTBED_SLURM_ONLY=$SLURM_ONLY
STEWARD_TESTBED_NODES=$PREFIX
END
    if ((CLUSTERS > 1)); then
        cat >>"$DIR/env.new" <<END
SLURM_CONF_2=$DIR/slurm2/slurm.conf
STEWARD_CLUSTER_2=steward2
END
    fi
    if [[ $SLURM_ONLY == no ]]; then
        cat >>"$DIR/env.new" <<END
STEWARD_PROMETHEUS_URL=http://127.0.0.1:$PROMETHEUS_PORT
STEWARD_PROMETHEUS_AGENTS=$DIR/prometheus/agents
STEWARD_PROMETHEUS_RULES=$DIR/prometheus/rules
STEWARD_PUSHGATEWAY_URL=http://127.0.0.1:$PUSHGATEWAY_PORT
STEWARD_ALERTMANAGER_URL=http://127.0.0.1:$ALERTMANAGER_PORT
STEWARD_SMTP=127.0.0.1:$SMTP_PORT
STEWARD_MAILDIR=$DIR/smtp/maildir
END
    fi
    chmod 644 "$DIR/env.new"
    mv "$DIR/env.new" "$DIR/env"
}
