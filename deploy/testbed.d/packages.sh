# shellcheck shell=bash
# Debian packages: what is missing is installed, and none of their services starts.

PACKAGES=(slurm-wlm slurmdbd slurm-client munge mariadb-server prometheus prometheus-pushgateway
    prometheus-alertmanager postgresql slapd ldap-utils python3 python3-aiosmtpd strace fonts-dejavu-core openssl)
UNITS=(slurmctld slurmd slurmdbd munge mariadb prometheus prometheus-pushgateway prometheus-alertmanager postgresql slapd)

POLICY=/usr/sbin/policy-rc.d
POLICY_ASIDE=$POLICY.steward-testbed-aside
POLICY_MARK='# steward testbed'

installed() { [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]]; }

unit_exists() { [[ -e /lib/systemd/system/$1.service || -e /etc/systemd/system/$1.service ]]; }

policy_forbids() {
    local code=0
    [[ -x $POLICY ]] || return 1
    "$POLICY" mariadb start >/dev/null 2>&1 || code=$?
    ((code == 101))
}

forbid_services() {
    allow_services
    policy_forbids && return
    if [[ -e $POLICY ]]; then mv "$POLICY" "$POLICY_ASIDE"; fi
    printf '#!/bin/sh\n%s\nexit 101\n' "$POLICY_MARK" >"$POLICY"
    chmod 755 "$POLICY"
}

# Takes back only what forbid_services did, in this run or in one that was killed.
allow_services() {
    if [[ -e $POLICY ]] && grep -qxF "$POLICY_MARK" "$POLICY"; then rm "$POLICY"; fi
    if [[ -e $POLICY_ASIDE ]]; then mv "$POLICY_ASIDE" "$POLICY"; fi
}

apt() {
    local log=$DIR/log/apt.log
    DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@" </dev/null >>"$log" 2>&1 9>&- ||
        { tail -n 20 "$log" >&2; fail "apt-get $* failed; its whole log is $log"; }
}

ensure_packages() {
    local package unit missing=() fresh=()
    for package in "${PACKAGES[@]}"; do installed "$package" || missing+=("$package"); done
    if ((${#missing[@]} == 0)); then return; fi

    say "installing ${missing[*]} (a minute or so)"
    for unit in "${UNITS[@]}"; do unit_exists "$unit" || fresh+=("$unit"); done
    install -d -m 755 "$DIR/log"
    forbid_services
    apt update
    apt install --no-install-recommends -o Dpkg::Options::=--force-confold "${missing[@]}"
    allow_services
    # The packages enable their units for the next boot; a machine that had none of them shall not gain a second Slurm.
    if [[ -d /run/systemd/system && ${#fresh[@]} -gt 0 ]]; then
        systemctl disable "${fresh[@]}" >>"$DIR/log/apt.log" 2>&1 || warn "could not disable ${fresh[*]} for the next boot"
    fi
    say "packages installed"
}
