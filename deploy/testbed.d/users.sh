# shellcheck shell=bash
# The test users: the only thing outside the state directory besides packages.

USERS=(stw-alice stw-bob stw-carol)
# user account; the first of a user is the default.
# shellcheck disable=SC2034
ASSOCIATIONS=('stw-alice physics' 'stw-bob physics' 'stw-bob biology' 'stw-carol biology')

home_of() { getent passwd "$1" | cut -d: -f6; }

# Whether it is the user of another testbed, which may be up: its home stays where it is.
lives_elsewhere() {
    local home
    home=$(home_of "$1")
    [[ $home == */home/$1 && -e ${home%"/home/$1"}/$MARKER ]]
}

ensure_users() {
    local user home
    for user in "${USERS[@]}"; do
        home=$DIR/home/$user
        if ! getent passwd "$user" >/dev/null; then
            useradd --no-log-init --create-home --home-dir "$home" --shell /bin/bash \
                --comment 'Steward testbed' "$user" || fail "cannot add the user $user"
        elif [[ $(home_of "$user") != "$home" ]] && ! lives_elsewhere "$user"; then
            usermod --home "$home" "$user" || fail "cannot move the home of $user to $home"
        fi
        # The user may have outlived an earlier state directory.
        [[ -d $home ]] || install -d -m 755 -o "$user" -g "$(id -g "$user")" "$home"
    done
}

# Only users that live in this testbed; their homes go with the state directory.
remove_users() {
    local user
    for user in "${USERS[@]}"; do
        [[ $(home_of "$user") == "$DIR/home/$user" ]] || continue
        userdel "$user" || warn "cannot remove the user $user"
    done
}
