// Package apply checks advice with the programs that it is for, and writes it into their
// configuration.
package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/safedir"
)

// Params are the input of the advice, and the ssh and sshd that should follow it.
type Params struct {
	route.Params
	Ranking    *rank.Ranking
	Policy     string           // a name, or a file
	Strict     bool             // closed lists
	Pattern    string           // of the Host line; "": the result's host, or none for a result of loopback
	Sides      string           // sides whose lines are to be written: client, server, both; ""
	SSH, SSHD  string           // paths; "" to search
	SSHDConfig string           // "": sshd's own
	Usual      time.Duration    // connect timeout where the configuration has none
	Hosts      []string         // that must stay reachable by ssh
	Before     bool             // the present is the state before our lines were written
	Dir        *safedir.Workdir // for files that are checked
	Out, Notes io.Writer
}

// Check refuses targets for which no lines can be written.
func (p Params) Check() error {
	switch {
	case !slices.Contains([]string{"", "client", "server", "both"}, p.Sides):
		return fault.Usage("use client, server or both", "%q is not a side of a connection", p.Sides)
	case len(p.Hosts) > 0 && p.Sides == "server":
		return fault.Usage("leave --check out", "--check is for the client's lines")
	case strings.ContainsFunc(p.Pattern, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"'#=\\", r) }):
		return fault.Usage("such as --host 'nas*'", "--host %q is not a pattern of ssh_config", p.Pattern)
	}
	return nil
}

// Advised is advice, and the ssh and sshd that should follow it.
type Advised struct {
	Params
	Advice      *advise.Advice
	Destination openssh.Destination // the result's host; localhost for a result of loopback
	Applied     string              // file whose lines of ours are this advice already; "" for none

	ssh, sshd *side // sshd is nil where there is none that the advice is for
	reached   []reachedHost
}

// New reads the present configuration and makes the advice. If that configuration contains our
// lines, and they are the advice for the state before them, the advice is that one.
func New(ctx context.Context, p Params) (*Advised, error) {
	a := &Advised{Params: p}
	if err := a.aim(); err != nil {
		return nil, err
	}
	policy, err := advise.Load(p.Policy)
	if err != nil {
		return nil, err
	}
	if a.ssh, err = a.client(ctx, a.Destination.Flags); err != nil {
		return nil, err
	}
	server := advise.Side{Old: !advise.Prepends(p.Ranking.Environment.Server)}
	if a.Here() {
		if server, err = a.serverHere(ctx); err != nil {
			return nil, err
		}
	}
	now := a.ssh.present
	wrote, err := a.forget()
	if err != nil && p.Before {
		return nil, explain(err)
	}
	if wrote != "" && !p.Before && a.advise(ctx, policy, server) == nil && a.inForce(ctx) {
		a.Applied = wrote
	}
	if a.Applied == "" && !p.Before {
		a.ssh.present = now
	} else if wrote != "" {
		fmt.Fprintf(a.Notes, "note: \"now\" is the choice of ssh before sshpace advise wrote to %s\n", termsafe.OneLine(wrote))
	}
	return a, a.advise(ctx, policy, server)
}

// advise makes the advice for the offers of ssh and sshd.
func (a *Advised) advise(ctx context.Context, policy advise.Policy, server advise.Side) error {
	if err := a.ssh.learn(ctx); err != nil {
		return &fault.Error{Err: err, Hint: "correct that option or line of ssh_config; ssh -G HOST shows the same", Code: fault.Misuse}
	}
	advice, err := advise.New(advise.Params{Ranking: a.Ranking, Policy: policy, Strict: a.Strict, Client: a.ssh.now, Server: server})
	if errors.Is(err, advise.ErrNothing) {
		err = fault.WithHint(err, "choose another --policy, or measure more algorithms")
	}
	a.Advice = advice
	return err
}

// inForce reports whether the advice changes something, and ssh's file already contains it.
func (a *Advised) inForce(ctx context.Context) bool {
	config, _, err := a.ssh.file()
	return err == nil && a.Advice.Changes() && a.follows(ctx, a.ssh, config) == nil
}

// forget sets the present of ssh to the state before our lines were written, if they were: to its
// file, or to one that this includes for all hosts, which it returns.
func (a *Advised) forget() (wrote string, err error) {
	config, base, err := a.ssh.file()
	if err != nil {
		return "", err
	}
	drop := includedBy(config, base)
	without := map[string]string{}
	for i, path := range append(drop.files(), config) {
		old, err := file.ReadFile(path, file.Config)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		text, n, err := file.Without(old, a.ssh.block(a.Pattern))
		if err != nil {
			return "", err
		}
		if n > 0 {
			wrote = path
		}
		if path == config {
			text = drop.instead(text, without)
		}
		without[path] = a.Dir.File(fmt.Sprintf("before_%d", i))
		if err := os.WriteFile(without[path], text, 0o600); err != nil {
			return "", err
		}
	}
	if wrote == "" {
		return "", nil
	}
	together, err := a.together([]string{without[config]})
	flags := a.Destination.Flags
	flags.Config = together.Config
	a.ssh.present = func(ctx context.Context) (alg.Offer, error) {
		return a.ssh.program.Effective(ctx, openssh.Destination{Host: probe(a.Pattern), Flags: flags})
	}
	return wrote, err
}

// serverHere finds sshd and the offer of its configuration. If the user names neither, nothing is
// known without an sshd or a readable configuration; a note says so.
func (a *Advised) serverHere(ctx context.Context) (now advise.Side, err error) {
	if a.sshd, err = a.server(ctx); a.sshd == nil {
		if a.SSHD == "" && a.SSHDConfig == "" {
			err = nil
		}
		return now, err
	}
	if err = a.sshd.learn(ctx); err != nil && a.SSHDConfig == "" {
		fmt.Fprintf(a.Notes, "note: the present server configuration is unknown: %s\n", termsafe.OneLine(err.Error()))
		a.sshd.now, err = advise.Side{Old: a.sshd.now.Old}, nil
	}
	return a.sshd.now, fault.WithHint(err, "check the file that --sshd-config names")
}

// aim finds the hosts that the advice is for, and the arguments by which ssh goes there.
func (a *Advised) aim() (err error) {
	c := a.Ranking.Campaign
	foreign := c.Server == record.ServerRemote
	const name = "name the hosts with --host, such as --host nas, or --host '*' for all"
	switch {
	case foreign || a.Pattern != "":
	case a.Strict:
		return fault.Usage(name, "a loopback result says nothing about other hosts: --strict may cut them off")
	case a.Sides == "client" || a.Sides == "both":
		return fault.Usage(name, "a loopback result names no host: add --host")
	}
	if !foreign {
		a.Destination = openssh.Destination{Host: "localhost", Label: c.Target, Flags: a.Flags}
		return nil
	}
	a.Destination, err = route.Destination(a.Flags, c.Target)
	a.Pattern = cmp.Or(a.Pattern, a.Destination.Host)
	return err
}

// Here reports whether the server of the result is on this machine.
func (a *Advised) Here() bool {
	return a.Ranking.Campaign.Server != record.ServerRemote && a.Ranking.Campaign.Imported == ""
}

// HasServer reports whether there is an sshd here that the advice is for.
func (a *Advised) HasServer() bool { return a.sshd != nil }

// probe returns a host name that a Host line with this pattern matches.
func probe(pattern string) string {
	return strings.NewReplacer("*", "x", "?", "x", "!", "").Replace(strings.Split(cmp.Or(pattern, "*"), ",")[0])
}

// Check lets ssh and sshd read the lines before anyone sees them.
func (a *Advised) Check(ctx context.Context) error {
	text := map[*side]string{a.ssh: a.Advice.ClientConfig(a.Pattern), a.sshd: a.Advice.ServerConfig()}
	for _, s := range a.sides() {
		file := a.Dir.File("advice_" + s.name)
		if err := os.WriteFile(file, []byte(text[s]), 0o600); err != nil {
			return err
		}
		if err := a.follows(ctx, s, file); err != nil {
			return fmt.Errorf("%s rejects the advice: %w", filepath.Base(s.program.Path), err)
		}
	}
	return nil
}

func (a *Advised) sides() []*side {
	return slices.DeleteFunc([]*side{a.ssh, a.sshd}, func(s *side) bool { return s == nil })
}

// follows returns an error if a program does not follow the lists of a file: another line of it
// wins, or the program drops names. Unless the advice is strict, everything that was enabled must
// still be.
func (a *Advised) follows(ctx context.Context, s *side, file string) error {
	got, err := s.offers(ctx, file)
	if err != nil {
		return err
	}
	was := s.now
	for _, list := range a.Advice.Lists {
		want, names := list.First, got.List(list.Kind)
		if len(want) == 0 || was.Old && !a.Strict && len(was.Offer.List(list.Kind)) == 0 {
			continue // there is no line
		}
		head := names[:min(len(want), len(names))]
		if a.Strict {
			head = names
		}
		if !slices.Equal(head, want) {
			return fmt.Errorf("%s are %s, not %s", list.Kind.Keyword(), strings.Join(head, ","), strings.Join(want, ","))
		}
		if lost := was.Offer.Without(got, list.Kind); len(lost) > 0 && !a.Strict {
			return fmt.Errorf("%s would lose %s", list.Kind.Keyword(), strings.Join(lost, ","))
		}
	}
	return nil
}
