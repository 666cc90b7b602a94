# A network of its own, for doctor's scripts: name servers that are slow, an address
# that does not answer, and sshd's of which each is slow in one stage of a login. It carries out the script that it is given.
ip link set lo up
printf '127.0.0.67 two.test\n127.0.0.66 two.test\n' >hosts
printf 'nameserver 127.0.0.1\noptions timeout:5\n' >resolv.conf
printf 'hosts: files dns\npasswd: files\ngroup: files\n' >nsswitch.conf
cp /etc/group group
cp /etc/passwd passwd
echo "someone:*:4141:4141::/mnt:/bin/sh" >>passwd
echo "barred:*:4142:4142::/mnt:/usr/sbin/nologin" >>passwd
cp -r /etc/pam.d pam.d
slow="required pam_exec.so $WORK/slow.sh"
quick="required pam_permit.so"
printf "auth $quick\\naccount $quick\\nsession $slow\\n" >pam.d/sshd
printf "auth $quick\\naccount $slow\\nsession $quick\\n" >pam.d/sshd-account # PAM's service has the name of the program
ln -s /usr/sbin/sshd sshd-account
printf '#!/bin/sh\nsleep 0.5\n' >slow.sh && chmod +x slow.sh
for f in hosts resolv.conf nsswitch.conf group passwd; do mount --bind $f "$(readlink -f /etc/$f)"; done
mount --bind pam.d /etc/pam.d
slownames 0.2s &
names=$!
: >deaf.out
deafport 127.0.0.67:2204 >deaf.out &
deaf=$!
until grep -q deaf deaf.out; do sleep 0.05; done
ssh-keygen -q -t ed25519 -N '' -f hk && ssh-keygen -q -t ed25519 -N '' -f uk
mkdir -p /run/sshd
mount -t tmpfs -o mode=755 none /mnt && cp uk.pub /mnt/keys # someone cannot look into our directory
serve() { # PORT OPTION...
	port=$1; at=$2; shift 2
	printf '%s\n' "$@" "Port $port" "ListenAddress $at" "HostKey $WORK/hk" "AuthorizedKeysFile /mnt/keys" "PidFile $WORK/$port.pid" \
		"StrictModes no" "KbdInteractiveAuthentication no" "PasswordAuthentication no" "PermitRootLogin yes" "SetEnv HOME=/mnt" >$port.conf
	${sshd:-/usr/sbin/sshd} -f $WORK/$port.conf -E $WORK/$port.log
	while [ ! -s $port.pid ]; do sleep 0.05; done
}
trap 'kill $names $deaf; for p in 2201 2202 2203 2204 2205 2206 2207; do [ ! -s $p.pid ] || kill $(cat $p.pid); done' EXIT
serve 2201 127.0.0.1 "UsePAM no" "UseDNS no"
serve 2202 127.0.0.1 "UsePAM no" "UseDNS yes"
serve 2203 127.0.0.1 "UsePAM yes" "UseDNS no"
serve 2204 127.0.0.66 "UsePAM no" "UseDNS no"
printf 'known %s\n' "$(cut -d' ' -f1,2 hk.pub)" >known
sshd=$WORK/sshd-account serve 2205 127.0.0.1 "UsePAM yes" "UseDNS no"
printf '#!/bin/sh\nsleep 0.5; cat /mnt/keys\n' >/mnt/slowkeys && chmod 755 /mnt/slowkeys
serve 2206 127.0.0.1 "UsePAM no" "UseDNS no" "AuthorizedKeysCommand /mnt/slowkeys" "AuthorizedKeysCommandUser nobody" "AuthorizedKeysFile none"
serve 2207 127.0.0.1 "UsePAM no" "UseDNS no" 'ForceCommand sleep 0.5; eval "$SSH_ORIGINAL_COMMAND"'
cat >cfg <<E
Host slow.test
  Port 2201
Host two.test
  Port 2204
Host dns
  Port 2202
Host pam
  Port 2203
Host account
  Port 2205
Host keys
  Port 2206
Host forced
  Port 2207
Host nologin
  User barred
Host dns pam account keys forced plain groups nologin
  HostName 127.0.0.1
Host plain groups nologin
  Port 2201
Host groups
  User someone
  ControlPath $WORK/cm
Host *
  User $(id -un)
  HostKeyAlias known
  UserKnownHostsFile $WORK/known
  IdentityFile $WORK/uk
  IdentitiesOnly yes
  KexAlgorithms curve25519-sha256
E
found() { # HOST CHECK TEXT; on a busy machine a figure may be too uncertain to be told
	began=$(date +%s)
	while [ $(($(date +%s) - began)) -lt 120 ]; do
		code=0
		sshpace doctor -F cfg --connect-timeout ${limit:-5s} --only "$2" --json "$1" >"$1.json" 2>"$1.err" || code=$?
		[ $code = ${exit:-3} ] && grep -q "$3" "$1.json" && return
	done
	cat "$1.json" "$1.err"; exit 1
}
nothing() { # HOST CHECKS; a busy machine may itself cost what is looked for
	began=$(date +%s)
	while [ $(($(date +%s) - began)) -lt 120 ]; do
		sshpace doctor -F cfg --only "$2" "$1" >"$1.out" 2>&1 && ! grep -q -e '^1\.' -e ', normal (' "$1.out" && return
	done
	cat "$1.out"; exit 1
}
together() { # JOB...; all at once, for most of each is a wait
	jobs=
	for job; do
		eval "$job" &
		jobs="$jobs $!"
	done
	for job in $jobs; do wait $job; done
}
do_it() { # HOST [NUMBER]
	sed -n 's/^ *"do": "\(.*\)",$/\1/p' "$1.json" | sed -n "${2:-1}p" | sed 's/\\"/"/g; s/\\\\/\x01/g; s/\\n/\n/g; s/\x01/\\/g' | sh
}

. "./$1"
