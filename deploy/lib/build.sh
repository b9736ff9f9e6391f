# shellcheck shell=bash
# Building Steward on a machine that has cargo: shared by the demo and the tests.

# Outside the clone, so that a second clone or run finds what the first one built.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-/var/tmp/steward-target}

# need_build_tools: cargo must be there; a linker is a Debian package away.
need_build_tools() {
    # rustup puts cargo where a root shell may not look.
    command -v cargo >/dev/null || PATH=$PATH:$HOME/.cargo/bin
    command -v cargo >/dev/null || {
        echo 'cargo is not installed: install Rust 1.95 with rustup' >&2
        return 1
    }
    need_command cc gcc libc6-dev
}

# need_command COMMAND PACKAGE…: installs the Debian packages unless the command is there.
need_command() {
    command -v "$1" >/dev/null && return
    shift
    install_packages "$@"
}

# need_python: a python3 that can make environments of its own.
need_python() {
    python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages python3 python3-venv
}

install_packages() {
    echo "installing $*"
    apt-get -q -y update >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "$@" >/dev/null
}
