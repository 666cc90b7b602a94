# Forty hosts in a network of their own, as README.md has them: one refuses, two have another release. It carries out its arguments.
ip link set lo up
ip addr add 192.0.2.1/24 dev lo
ssh-keygen -q -t ed25519 -N '' -f hk && ssh-keygen -q -t ed25519 -N '' -f uk
mkdir -p /run/sshd
trap 'kill $(cat *.pid)' EXIT
for i in $(seq 40); do
	printf 'Host web%02d\n  HostName 192.0.2.%d\n' $i $i >>cfg
	[ $i = 31 ] || echo "ListenAddress 192.0.2.$i" >>$((i % 3)).listen # an sshd listens at 16 addresses
done
printf 'Host *\n  HostKeyAlias known\n  UserKnownHostsFile %s/known\n  IdentityFile %s/uk\n  IdentitiesOnly yes\n' "$PWD" "$PWD" >>cfg
echo "known $(cut -d' ' -f1,2 hk.pub)" >known
for n in 0 1 2; do
	cat $n.listen - >$n.conf <<S
HostKey $PWD/hk
PidFile $PWD/$n.pid
AuthorizedKeysFile $PWD/uk.pub
StrictModes no
UsePAM no
SetEnv HOME=$PWD
MaxStartups 100
ForceCommand case "\$SSH_CONNECTION" in *' 192.0.2.7 22'|*' 192.0.2.19 22') echo 12.9;; *) echo 12.11;; esac
S
	/usr/sbin/sshd -D -f $n.conf -E sshd.log &
done
until [ -s 0.pid ] && [ -s 1.pid ] && [ -s 2.pid ]; do sleep 0.05; done
"$@" 2>&1
