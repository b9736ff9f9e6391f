# shellcheck shell=bash
# shellcheck disable=SC2034  # the colours are used by status.sh too
# What the script says: progress with elapsed time on stdout, failures on stderr.

if [[ -t 1 ]]; then
    GREEN=$'\e[32m' RED=$'\e[31m' PLAIN=$'\e[0m'
else
    GREEN='' RED='' PLAIN=''
fi

# Milliseconds since the script began; EPOCHREALTIME's decimal sign depends on the locale.
STARTED_AT=${EPOCHREALTIME//[!0-9]/}
elapsed_ms() { echo $(((${EPOCHREALTIME//[!0-9]/} - STARTED_AT) / 1000)); }

say() {
    local ms
    ms=$(elapsed_ms)
    printf '[%3d.%d s] %s\n' $((ms / 1000)) $((ms % 1000 / 100)) "$*"
}

warn() { printf 'testbed: %s\n' "$*" >&2; }

fail() {
    printf '%stestbed: %s%s\n' "$RED" "$*" "$PLAIN" >&2
    exit 1
}

usage_error() {
    printf "testbed: %s\nTry 'testbed --help'.\n" "$*" >&2
    exit 2
}
