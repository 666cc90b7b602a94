//go:build linux

package transfer

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/relay"
)

const runLimit = 5 * time.Minute

// Open makes the ground of a testbed. Files at this end go into directory, which is private and of
// this run; those on a host into a private one in there, "" is /tmp. The returned function removes
// the files at the server; it is never nil.
func Open(ctx context.Context, tb *testbed.Testbed, directory, there string, random bool) (b *Ground, cleanUp func(), err error) {
	b = Look(tb, directory)
	b.Here.Random, b.Programs = random, programs(tb.SSH.Path)
	if tb.Own() {
		b.There = Local(directory)
		return b, func() {}, nil
	}
	place, err := openRemote(ctx, b, cmp.Or(there, "/tmp"))
	if err != nil {
		return b, func() {}, err
	}
	b.There, b.Swept = place, place.swept
	return b, place.close, nil
}

// Look makes the ground for Limit only: it needs no directory at the server.
func Look(tb *testbed.Testbed, directory string) *Ground {
	b := &Ground{
		Runner: Runner{Bed: tb.Bed, Spawner: tb.Spawner, Limit: runLimit}, RTT: tb.Environment.RoundTripNS,
		Here: &Files{Directory: directory}, Port: freePort,
	}
	if tb.Own() {
		b.Helper = tb.Helper
	}
	return b
}

// Over returns the ground with a path before its private server; one of the relays is that path.
func (b *Ground) Over(path relay.Path, relays *relay.Group) (*Ground, error) {
	if path == (relay.Path{}) {
		return b, nil
	}
	host, own := b.Server.Address()
	port, err := relays.Before(host, own, path)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	far := *b
	far.Path, far.Destination.Port = path, uint16(number)
	return &far, err
}

// PathOf returns a path as records describe it.
func PathOf(p relay.Path) record.Path {
	return record.Path{RTT: 2 * p.Delay, BytesPerS: p.Rate, SegmentsLost: p.Loss.Share}
}

// programs returns the programs of all modes: next to ssh, or else on the PATH.
func programs(ssh string) map[string]string {
	paths := map[string]string{}
	for _, m := range modes {
		if !m.isCopy() {
			continue
		}
		path, err := exec.LookPath(filepath.Join(filepath.Dir(ssh), m.program))
		if err != nil {
			path, _ = exec.LookPath(m.program)
		}
		paths[m.program] = path
	}
	paths["sshpace"], _ = os.Executable()
	return paths
}

// jumpHost is the name of the private server as a jump host.
const jumpHost = "sshpace-jump"

// privateJump leads through the private server to the private server. The ssh to a jump host gets
// no options of the command line except the file.
func (b *Ground) privateJump(o Options) (openssh.Destination, error) {
	to := b.destination(o)
	lines := append(b.settings(o), "HostName "+to.Host, "BatchMode yes", "ControlMaster no", "ControlPath none")
	text := "Host " + jumpHost + "\n  " + strings.Join(lines, "\n  ") + "\n"
	if net.ParseIP(b.Destination.Host) == nil {
		return to, fmt.Errorf("the private server is at %q", b.Destination.Host)
	}
	to.Jump, to.Config = jumpHost, b.here("jump.conf")
	return to, os.WriteFile(b.here("jump.conf"), []byte(text), 0o600)
}

// settings returns the way to the server, and what is measured, as lines of ssh_config.
func (b *Ground) settings(o Options) []string {
	to := b.Destination
	lines := []string{"StrictHostKeyChecking yes", "Compression " + map[bool]string{true: "yes", false: "no"}[o.Compression]}
	add := func(keyword, value string) {
		if value != "" {
			lines = append(lines, keyword+" "+value)
		}
	}
	if to.Port != 0 {
		add("Port", strconv.Itoa(int(to.Port)))
	}
	add("User", to.User)
	add("ProxyCommand", to.Way)
	for _, setting := range slices.Concat(to.Settings, o.Suite.Settings()) {
		lines = append(lines, strings.Replace(setting, "=", " ", 1))
	}
	for _, file := range to.Identities {
		add("IdentityFile", file)
	}
	return lines
}
