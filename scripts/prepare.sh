# Sourced by ./try and ./test: finds Go and installs what is missing, where
# this machine's package manager and the user's rights allow it.

# die WHAT HINT: the two-line error of sshpace.
die() {
	printf '%s: error: %s\n%s: hint: %s\n' "$program" "$1" "$program" "$2" >&2
	exit 1
}

# require_go makes sure that `go` is there and new enough for go.mod.
require_go() {
	command -v go >/dev/null 2>&1 || PATH=$PATH:/usr/local/go/bin
	want=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
	command -v go >/dev/null 2>&1 ||
		die "Go is not installed" "install Go $want or newer (https://go.dev/dl/), then run $0 again"
	have=$(go env GOVERSION | sed 's/^go//')
	newest=$(printf '%s\n%s\n' "$want" "$have" | sort -V | tail -n 1)
	[ "$newest" = "$have" ] ||
		die "Go $have is too old" "install Go $want or newer (https://go.dev/dl/), then run $0 again"
}

# What tests need for more than one script: servers that files are copied to, and login shells.
# shellcheck disable=SC2034 # used by those that source this
file_servers="proftpd:proftpd-core /usr/lib/proftpd/mod_sftp.so:proftpd-mod-crypto rclone:rclone mysecureshell:mysecureshell
	/usr/lib/python3/dist-packages/asyncssh:python3-asyncssh /usr/lib/python3/dist-packages/paramiko:python3-paramiko
	/usr/lib/python3/dist-packages/twisted/conch:python3-twisted"
# shellcheck disable=SC2034
login_shells="zsh:zsh fish:fish tcsh:tcsh ksh93:ksh mksh:mksh"

# missing NAME:PACKAGE...: the packages whose command or file is not there.
missing() {
	for pair in "$@"; do
		PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null 2>&1 || [ -e "${pair%%:*}" ] || printf '%s ' "${pair#*:}"
	done
}

# quiet_install PACKAGE...: packages of servers must not start anything on this
# machine, which Debian's policy-rc.d sees to while they are installed.
quiet_install() (
	guard=/usr/sbin/policy-rc.d
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	trap 'exit 130' INT TERM
	if [ ! -e $guard ]; then
		trap 'rm -f "$log" $guard' EXIT
		printf '#!/bin/sh\nexit 101\n' >$guard && chmod 755 $guard
	fi
	export DEBIAN_FRONTEND=noninteractive
	if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1; then
		tail -n 5 "$log" >&2
		exit 1
	fi
)

# install_packages PACKAGE...: false if it may not or cannot.
install_packages() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
	echo "$program: installing $*" >&2
	quiet_install "$@" || return 1
	for service in "$@"; do
		case $service in
		openssh-server) services="ssh.service ssh.socket" ;;
		tinysshd) services="tinysshd.socket" ;;
		proftpd-core) services="proftpd.service" ;;
		*) continue ;;
		esac
		if command -v systemctl >/dev/null 2>&1; then
			# shellcheck disable=SC2086 # a list on purpose
			systemctl disable $services >/dev/null 2>&1 || true
		fi
		if command -v update-rc.d >/dev/null 2>&1 && [ "$service" = openssh-server ]; then
			update-rc.d ssh disable >/dev/null 2>&1 || true
		fi
	done
}
