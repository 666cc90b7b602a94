//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sshpace/crosscheck/lab"
	"sshpace/internal/sys/relay"
)

// fleet is the number of hosts that users with large fleets have.
const fleet = 1400

// rig is what the subjects measure on; each part is made when it is first needed.
type rig struct {
	dir   string
	labs  map[string]*lab.Lab
	paths relay.Group
	known string // a known_hosts of 5,000 hosts
}

func (r *rig) stop() {
	for _, l := range r.labs {
		l.Stop()
	}
	r.paths.Close()
}

// lab of a name, made by p the first time.
func (r *rig) lab(ctx context.Context, name string, p lab.Params) (*lab.Lab, error) {
	if l := r.labs[name]; l != nil {
		return l, nil
	}
	l, err := lab.Start(ctx, p)
	if err != nil {
		return nil, err
	}
	if r.labs == nil {
		r.labs = map[string]*lab.Lab{}
	}
	r.labs[name] = l
	return l, nil
}

// open is a lab that lets everybody in at once.
func (r *rig) open(ctx context.Context) (*lab.Lab, error) {
	return r.lab(ctx, "open", lab.Params{Hosts: 100})
}

// crowded is one with MaxStartups as OpenSSH has it, for a whole fleet.
func (r *rig) crowded(ctx context.Context) (*lab.Lab, error) {
	return r.lab(ctx, "crowded", lab.Params{Hosts: fleet, Startups: "10:30:100"})
}

// copying is one host to copy to, in memory where that is a file system.
func (r *rig) copying(ctx context.Context, what string) (*lab.Lab, error) {
	shm := "/dev/shm"
	if _, err := os.Stat(shm); err != nil {
		shm = ""
	}
	return r.lab(ctx, what, lab.Params{Hosts: 1, Copied: what, Dir: shm})
}

// distant is the ssh_config of the open lab's first host behind a relay with this round trip.
func (r *rig) distant(ctx context.Context, trip time.Duration) (config string, err error) {
	l, err := r.open(ctx)
	if err != nil {
		return "", err
	}
	port, err := r.paths.Before("127.0.0.1", strconv.Itoa(l.Port), relay.Path{Delay: trip / 2})
	if err != nil {
		return "", err
	}
	known, err := os.ReadFile(l.Known)
	if err != nil {
		return "", err
	}
	_, key, _ := strings.Cut(strings.TrimSpace(string(known)), " ")
	key, _, _ = strings.Cut(key, "\n")
	base, err := os.ReadFile(l.Config)
	if err != nil {
		return "", err
	}
	file := filepath.Join(r.dir, "known-"+port)
	if err := os.WriteFile(file, []byte("distant "+key+"\n"), 0o600); err != nil {
		return "", err
	}
	config = filepath.Join(r.dir, "config-"+port)
	text := fmt.Sprintf("Host distant\n HostName 127.0.0.1\n HostKeyAlias distant\n Port %s\n UserKnownHostsFile %s\n", port, file)
	return config, os.WriteFile(config, append([]byte(text), base...), 0o600)
}

// knownHosts is a known_hosts of 5,000 plain names and as many addresses.
func (r *rig) knownHosts(ctx context.Context) (string, error) {
	l, err := r.open(ctx)
	if err != nil || r.known != "" {
		return r.known, err
	}
	public, err := os.ReadFile(l.Path("host.pub"))
	if err != nil {
		return "", err
	}
	key := strings.Join(strings.Fields(string(public))[:2], " ")
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "host%d.example,%s %s\n", i, net.IPv4(10, byte(i>>16), byte(i>>8), byte(i)), key)
	}
	r.known = filepath.Join(r.dir, "known_hosts")
	return r.known, os.WriteFile(r.known, []byte(text.String()), 0o600)
}
