#!/bin/sh
# Compares sshpace with other fan-out tools on this machine: client CPU per host,
# the servers' CPU, wall time, and whether host keys are checked. Installs what is
# missing: pssh, pdsh, clustershell and ansible-core from Debian (when run as root),
# parallel-ssh and asyncssh from PyPI into a Python environment of their own. Arguments
# go to crosscheck/fanout, such as -n 200 -rounds 7, or -copy 100M -n 50 -f 50
# -rounds 1 -dir /dev/shm; -only leaves tools out, and ansible wants small numbers.
set -eu
cd "$(dirname "$0")/.."
venv=${FANOUT_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/sshpace-bench/venv}

missing=
command -v parallel-ssh >/dev/null || missing="$missing pssh"
command -v pdsh >/dev/null || missing="$missing pdsh"
command -v clush >/dev/null || missing="$missing clustershell"
command -v ansible >/dev/null || missing="$missing ansible-core"
if [ -n "$missing" ]; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		# shellcheck disable=SC2086 # a list of words
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q $missing >&2 || echo "fanout.sh: going on without$missing" >&2
	else
		echo "fanout.sh: not installed, and left out:$missing" >&2
	fi
fi
if ! "$venv/bin/python" -c 'import pssh, asyncssh' 2>/dev/null; then
	mkdir -p "$(dirname "$venv")"
	python3 -m venv "$venv" && "$venv/bin/pip" install -q parallel-ssh asyncssh >&2 || echo "fanout.sh: going on without the Python libraries" >&2
fi

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go build -o "$bin/" . ./crosscheck/fanout
"$bin/fanout" -sshpace "$bin/sshpace" -venv "$venv" "$@"
