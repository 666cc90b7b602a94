package dropin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fanout/copy"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/safedir"
)

// copying is a call of scp(1) that we can carry out ourselves.
type copying struct {
	copy.Options
	ssh []string // options for the connection
}

// scpOptions sorts the arguments of scp. ok is false if one needs scp itself.
func (p *pssh) scpOptions() (c copying, ok bool) {
	c.Options = copy.Options{NoVerify: true, Scp: &copy.Scp{Recursive: p.Recursive}}
	joined, others := joinOptions(p.Extra, openssh.ScpWithValue)
	ok = len(others) == 0
	for _, o := range p.Options {
		c.ssh = append(c.ssh, "-o"+o)
	}
	for _, arg := range joined {
		for _, o := range openssh.SplitOptions(arg, openssh.ScpWithValue) {
			ok = c.take(o) && ok
		}
	}
	return c, ok
}

func (c *copying) take(o string) bool {
	switch o[1] {
	case 'p':
		c.Scp.Preserve = true
	case 'r':
		c.Scp.Recursive = true
	case 'q', 'C', 'B', 's', 'T': // as it is anyway, or of no meaning here
	case 'l':
		kbits, err := strconv.Atoi(o[2:])
		if err != nil || kbits < 1 {
			return false
		}
		c.Limit = copy.NewLimiter(int64(kbits) * 1000 / 8)
	case 'P':
		c.ssh = append(c.ssh, "-p"+o[2:])
	case 'F', 'i', 'J', 'o', 'c', '4', '6':
		c.ssh = append(c.ssh, o)
	default:
		return false
	}
	return true
}

// onlyScp reports whether a name on a host has a special meaning to scp: patterns and other users'
// home directories.
func onlyScp(name string) bool {
	return strings.ContainsAny(name, `*?[\`) || strings.HasPrefix(name, "~") && name != "~" && !strings.HasPrefix(name, "~/")
}

// copy is parallel-scp.
func (p *pssh) copy(env Env) (work, error) {
	locals, dest := p.Args[:len(p.Args)-1], p.Args[len(p.Args)-1]
	scp := func(h host.Host) []string { return append(slices.Clone(locals), scpName(h, dest)) }
	c, ok := p.scpOptions()
	if !ok || onlyScp(dest) || slices.ContainsFunc(locals, isRemote) {
		return p.scp(env, c, scp)
	}
	var sources []*copy.Source
	for _, name := range locals {
		source, err := copy.Scan(name, c.Scp)
		if err != nil {
			return p.scp(env, c, scp) // which reports it in its own words
		}
		sources = append(sources, source)
	}
	up := copy.Upload{Options: c.Options, Dest: dest, Sources: func(host.Host) ([]*copy.Source, error) { return sources, nil }}
	return p.dialogue(env, c, up.Dialogue)
}

// isRemote reports whether scp would interpret a name as one on a host.
func isRemote(name string) bool {
	colon := strings.IndexByte(name, ':')
	return colon > 0 && !strings.Contains(name[:colon], "/") || strings.HasPrefix(name, "-")
}

// dialogue copies over our own connections.
func (p *pssh) dialogue(env Env, c copying, talk fleet.Dialogue) (work, error) {
	work, err := p.engine(env, c.ssh)
	work.command = fleet.Command{Line: "sftp", Dialogue: asScp(talk)}
	return work, err
}

// asScp gives a copy the messages of scp.
func asScp(talk fleet.Dialogue) fleet.Dialogue {
	return func(ctx context.Context, h host.Host, c fleet.Channel) error {
		said := scpChannel{c, &atomic.Bool{}}
		err := talk(ctx, h, said)
		if err != nil && ctx.Err() == nil && !said.any.Load() {
			said.Output(fleet.Stderr, []byte(termsafe.Line(err.Error())+"\n"))
		}
		return err
	}
}

type scpChannel struct {
	fleet.Channel
	any *atomic.Bool // something was printed
}

// Output begins with the name of the program; scp prints no summary.
func (c scpChannel) Output(s fleet.Stream, data []byte) error {
	if s == fleet.Stdout {
		return nil
	}
	c.any.Store(true)
	return c.Channel.Output(s, append([]byte("scp: "), data...))
}

// fetch is parallel-slurp.
func (p *pssh) fetch(env Env) (work, error) {
	remote, local := p.Args[0], p.Args[1]
	place := map[host.Host]string{}
	for _, h := range p.hosts {
		port := cmp.Or(h.port, "None") // as the original calls it
		directory, err := safedir.Make(filepath.Join(p.LocalDir, strings.ReplaceAll(h.Name, "/", "%2F")+":"+port))
		if err != nil {
			return work{}, err
		}
		place[h.Host] = directory.Path()
		if err := directory.Close(); err != nil {
			return work{}, err
		}
	}
	return p.fetchTo(env, remote, func(h host.Host) (string, string) { return place[h], local })
}

// fetchTo copies a file or directory of each host to its place: a directory, and a name in it.
func (p *pssh) fetchTo(env Env, remote string, place func(h host.Host) (string, string)) (work, error) {
	c, ok := p.scpOptions()
	if !ok || onlyScp(remote) {
		return p.scp(env, c, func(h host.Host) []string {
			directory, name := place(h)
			return []string{scpName(h, remote), directory + "/" + name}
		})
	}
	down := copy.Download{Options: c.Options, Sources: []string{remote}, Place: place}
	return p.dialogue(env, c, down.Dialogue)
}

// scp is the program itself, for everything that we do not do. We decide only about host keys.
func (p *pssh) scp(env Env, c copying, names func(host.Host) []string) (work, error) {
	argv := func(h host.Host, _ string) []string {
		args := []string{"-qC", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes"}
		for _, o := range p.Options {
			args = append(args, "-o", o)
		}
		if h.Port != 0 {
			args = append(args, "-P", strconv.Itoa(int(h.Port)))
		}
		if p.Recursive {
			args = append(args, "-r")
		}
		return append(append(args, p.Extra...), names(h)...)
	}
	engine, stop, err := env.SSH("scp", c.ssh, argv)
	return work{engine: engine, stop: stop, program: true}, err
}

// rsync is parallel-rsync: rsync itself, over an ssh whose host keys we check.
func (p *pssh) rsync(env Env) (work, error) {
	if p.AskPass {
		return work{}, errors.New("-A: the ssh of rsync takes keys here; pscp -A copies with a password")
	}
	args, err := shell.Split(p.SSHArgs)
	if err != nil {
		return work{}, fmt.Errorf("-S: %w", err)
	}
	options, _ := joinOptions(args, openssh.WithValue)
	ssh := []string{"ssh -oBatchMode=yes -oStrictHostKeyChecking=yes"}
	for _, o := range p.Options {
		options, ssh = append(options, "-o"+o), append(ssh, shell.Word("-o"+o))
	}
	engine, stop, err := env.SSH("rsync", options, func(h host.Host, _ string) []string {
		ssh := slices.Clone(ssh)
		if h.Port != 0 {
			ssh = append(ssh, "-p", strconv.Itoa(int(h.Port)))
		}
		args := []string{"-e", strings.Join(append(ssh, p.SSHArgs), " ")}
		for i, given := range []bool{p.Verbose, p.Recursive, p.Archive, p.Compress} {
			if given {
				args = append(args, "-"+"vraz"[i:i+1])
			}
		}
		last := len(p.Args) - 1
		return slices.Concat(args, p.Extra, p.Args[:last], []string{scpName(h, p.Args[last])})
	})
	return work{engine: engine, stop: stop, program: true}, err
}

// scpName is a name on a host for scp(1).
func scpName(h host.Host, name string) string {
	if h.User != "" {
		return h.User + "@" + h.Name + ":" + name
	}
	return h.Name + ":" + name
}
