# shellcheck shell=bash
# The services: for each a run_NAME that launches it and a ready_NAME that asks it. Slurm's own are in slurm.sh.
# `slurmd@n1` is the service slurmd with the argument n1.

# shellcheck disable=SC2034
# What Slurm does not need. SERVICES (layout.sh) has all in the order of starting; stopping goes backwards, so that
# munge, which all of Slurm needs, goes last.
MONITORING=(smtp pushgateway alertmanager prometheus)

address_of() {
    local key
    case $1 in
        munge) echo "$DIR/munge/munge.socket" && return ;;
        slurmd@*) echo "127.0.0.1:$(node_port "${1#slurmd@}")" && return ;;
        *) key=$1_port ;;
    esac
    key=${key^^}
    echo "127.0.0.1:${!key}"
}

ready() { "ready_${1%@*}" "${1#*@}"; }

# What answers on our ports and is not ours would pass for ready; and two testbeds would share users and cgroups.
check_ports() {
    local name address
    for name in "${SERVICES[@]}"; do
        address=$(address_of "$name")
        if [[ $address == 127.0.0.1:* ]] && ! alive "$name" && listens "${address#*:}"; then
            fail "$name cannot start: another process listens on $address (a testbed in another directory?)"
        fi
    done
}

# start NAME: launches it unless it runs.
start() {
    if alive "$1"; then return; fi
    if [[ -e $DIR/run/$1.pid ]]; then say "$1 had ended: started again"; fi
    "run_${1%@*}" "$1" "${1#*@}"
}

# await NAME: until it answers; says what it was and what it logged if it does not.
await() {
    local why="was not ready within 60 s" log=$DIR/log/$1.out
    within 60 dead_or "$1" ready "$1" || true
    if ! alive "$1"; then why='ended while starting'; elif ready "$1" >/dev/null 2>&1; then return; fi
    if alive "$1"; then ready "$1" 2>&1 >/dev/null | sed 's/^/asked, it says: /' >&2 || true; fi
    warn "$1 $why: $(cat "$DIR/run/$1.command" 2>/dev/null)"
    printf '%s\n' "--- the end of $log" >&2
    tail -n 15 "$log" >&2
    fail "$1 is not up"
}

run_munge() {
    launch munge munge munged --foreground --key-file="$DIR/munge/munge.key" --socket="$DIR/munge/munge.socket" \
        --pid-file="$DIR/munge/munged.pid" --log-file="$DIR/munge/munged.log" --seed-file="$DIR/munge/munged.seed"
}
ready_munge() { munge --no-input --socket="$DIR/munge/munge.socket" | unmunge --socket="$DIR/munge/munge.socket" >/dev/null; }

run_mariadb() {
    if [[ ! -d $DIR/mariadb/data/mysql ]]; then
        say 'creating the accounting database (some seconds)'
        rm -rf "$DIR/mariadb/data"
        mariadb-install-db --no-defaults --user=mysql --datadir="$DIR/mariadb/data" --skip-test-db \
            --auth-root-authentication-method=socket >"$DIR/log/mariadb-install.out" 2>&1 9>&- ||
            { tail "$DIR/log/mariadb-install.out" >&2; fail 'mariadb-install-db failed'; }
    fi
    # slurmdbd asks for the lock wait; the rest trades durability of test data for speed.
    launch mariadb mysql mariadbd --no-defaults --datadir="$DIR/mariadb/data" --socket="$DIR/mariadb/socket" \
        --pid-file="$DIR/mariadb/mariadbd.pid" --bind-address=127.0.0.1 --port="$MARIADB_PORT" --skip-name-resolve \
        --innodb-lock-wait-timeout=900 --innodb-buffer-pool-size=128M --innodb-flush-log-at-trx-commit=0 --skip-log-bin
}
ready_mariadb() { mariadb-admin --no-defaults --socket="$DIR/mariadb/socket" --connect-timeout=2 ping; }

# root is known by its uid on the socket. The password goes through stdin and shows in no process list.
ensure_database() {
    local password
    password=$(<"$DIR/secret/db-password")
    mariadb --no-defaults --socket="$DIR/mariadb/socket" --user=root <<<"CREATE DATABASE IF NOT EXISTS slurm_acct_db;
        CREATE OR REPLACE USER slurm@'127.0.0.1' IDENTIFIED BY '$password';
        GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';" || fail 'the accounting database cannot be prepared'
}

# Debian's own interpreter: aiosmtpd is a Debian package, and another python3 may come first in PATH.
run_smtp() {
    launch smtp nobody /usr/bin/python3 -m aiosmtpd --nosetuid --listen "127.0.0.1:$SMTP_PORT" \
        --class aiosmtpd.handlers.Mailbox "$DIR/smtp/maildir"
}
ready_smtp() { line_from "$SMTP_PORT" '' '^220'; }

# Debian's build persists to /var/lib/prometheus unless told not to.
run_pushgateway() { launch pushgateway prometheus prometheus-pushgateway --web.listen-address="$(address_of pushgateway)" --persistence.file=; }
ready_pushgateway() { http_ready "$PUSHGATEWAY_PORT"; }

run_alertmanager() {
    launch alertmanager prometheus prometheus-alertmanager --config.file="$DIR/alertmanager/alertmanager.yml" \
        --storage.path="$DIR/alertmanager/data" --web.listen-address="$(address_of alertmanager)" --cluster.listen-address=
}
ready_alertmanager() { http_ready "$ALERTMANAGER_PORT"; }

run_prometheus() {
    launch prometheus prometheus prometheus --config.file="$DIR/prometheus/prometheus.yml" \
        --storage.tsdb.path="$DIR/prometheus/data" --storage.tsdb.retention.time=7d \
        --web.listen-address="$(address_of prometheus)" --web.enable-lifecycle --web.enable-admin-api
}
ready_prometheus() { http_ready "$PROMETHEUS_PORT"; }
