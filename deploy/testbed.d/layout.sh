# shellcheck shell=bash
# shellcheck disable=SC2034  # the names are used by the other files
# Where everything lives: one state directory, private ports, files made from templates.

DIR=${STEWARD_TESTBED_DIR:-/var/tmp/steward-testbed}
DIR=${DIR%/}
CLUSTER=steward
HOST=$(hostname -s)
NODES=(n1 n2 n3 n4)

MARIADB_PORT=16306
SLURMCTLD_PORT=16817
SLURMDBD_PORT=16819
N1_PORT=17001 N2_PORT=17002 N3_PORT=17003 N4_PORT=17004
SMTP_PORT=16025
PROMETHEUS_PORT=19090
PUSHGATEWAY_PORT=19091
ALERTMANAGER_PORT=19093

# Marks a directory as ours: nothing else is ever adopted or deleted.
MARKER=.steward-testbed

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
    install -d -m 755 "$DIR"/{slurm,run,log,home,slurmd,prometheus,prometheus/agents,prometheus/rules}
    install -d -m 700 "$DIR/secret"
    install -d -m 755 -o slurm -g slurm "$DIR"/{slurmctld,slurm-run}
    install -d -m 755 -o munge -g munge "$DIR/munge"
    install -d -m 755 -o mysql -g mysql "$DIR/mariadb"
    install -d -m 755 -o prometheus -g prometheus "$DIR"/{prometheus/data,alertmanager}
    install -d -m 755 -o nobody -g nogroup "$DIR/smtp"
    # Slurm's own two do not run as root, and the directory of the logs is root's.
    local node name
    for name in slurmdbd slurmctld; do
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
    for key in DIR CLUSTER HOST CGROUP DB_PASSWORD MARIADB_PORT SLURMCTLD_PORT SLURMDBD_PORT \
        N1_PORT N2_PORT N3_PORT N4_PORT SMTP_PORT PROMETHEUS_PORT PUSHGATEWAY_PORT ALERTMANAGER_PORT; do
        text=${text//"@$key@"/"${!key}"}
    done
    (umask 077 && printf '%s\n' "$text" >"$2.new")
    chown "${4:-root}:" "$2.new"
    chmod "${3:-644}" "$2.new"
    mv "$2.new" "$2"
}

write_configs() {
    DB_PASSWORD=$(<"$DIR/secret/db-password")
    local name
    for name in slurm cgroup gres; do render "$name.conf" "$DIR/slurm/$name.conf"; done
    render slurmdbd.conf "$DIR/slurm/slurmdbd.conf" 600 slurm
    render prometheus.yml "$DIR/prometheus/prometheus.yml"
    render alertmanager.yml "$DIR/alertmanager/alertmanager.yml"
}

write_env() {
    cat >"$DIR/env.new" <<END
STEWARD_TESTBED_DIR=$DIR
SLURM_CONF=$SLURM_CONF
STEWARD_CLUSTER=$CLUSTER
STEWARD_CGROUP=$CGROUP
STEWARD_PROMETHEUS_URL=http://127.0.0.1:$PROMETHEUS_PORT
STEWARD_PROMETHEUS_AGENTS=$DIR/prometheus/agents
STEWARD_PROMETHEUS_RULES=$DIR/prometheus/rules
STEWARD_PUSHGATEWAY_URL=http://127.0.0.1:$PUSHGATEWAY_PORT
STEWARD_ALERTMANAGER_URL=http://127.0.0.1:$ALERTMANAGER_PORT
STEWARD_SMTP=127.0.0.1:$SMTP_PORT
STEWARD_MAILDIR=$DIR/smtp/maildir
END
    chmod 644 "$DIR/env.new"
    mv "$DIR/env.new" "$DIR/env"
}
