// Package apply checks advice with the programs that it is for, and writes it into
// their configuration.
package apply

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/workdir"
	"sshpace/internal/verdict/advise"
)

// Advised is advice, and the ssh and sshd that are to follow it.
type Advised struct {
	Advice         *advise.Advice
	Client, Server advise.Side // as they are now
	Strict         bool
	Pattern        string          // of the Host line
	SSH, SSHD      openssh.Program // SSHD.Path "": there is none, or the server is another machine
	HostKey        string          // which sshd -t and -T insist on
	SSHDConfig     string          // "": sshd's own
	Connection     route.Connection
	Connect        time.Duration
	Hosts          []string     // that must stay reachable by ssh
	Dir            *workdir.Dir // for files that are checked
	Out            io.Writer

	reached []reachedHost
}

// Probe is a host name that a Host line with this pattern matches.
func Probe(pattern string) string {
	return strings.NewReplacer("*", "x", "?", "x", "!", "").Replace(strings.Split(pattern, ",")[0])
}

// printedFile holds the lines for ssh alone.
const printedFile = "advice_ssh_config"

// Check has ssh and sshd read the lines before anyone sees them.
func (a *Advised) Check(ctx context.Context) error {
	client := a.Dir.File(printedFile)
	if err := os.WriteFile(client, []byte(a.Advice.ClientConfig(a.Pattern)), 0o600); err != nil {
		return err
	}
	if err := a.checkClient(ctx, client); err != nil {
		return fmt.Errorf("ssh does not take the advice: %w", err)
	}
	if a.SSHD.Path == "" {
		return nil
	}
	server := a.Dir.File("advice_sshd_config")
	if err := os.WriteFile(server, []byte(a.Advice.ServerConfig()), 0o600); err != nil {
		return err
	}
	if err := a.checkServer(ctx, server); err != nil {
		return fmt.Errorf("sshd does not take the advice: %w", err)
	}
	return nil
}

// checkClient makes sure that ssh, with this configuration file, offers the
// host what is advised.
func (a *Advised) checkClient(ctx context.Context, file string) error {
	d := openssh.Destination{Host: Probe(a.Pattern), Options: []string{"-F", file}}
	got, err := a.SSH.Effective(ctx, d)
	if err != nil {
		return err
	}
	return a.follows(got, a.Client)
}

// checkServer does the same with sshd.
func (a *Advised) checkServer(ctx context.Context, file string) error {
	if err := a.SSHD.CheckServer(ctx, file, a.HostKey); err != nil {
		return err
	}
	got, err := a.SSHD.EffectiveServer(ctx, file, a.HostKey)
	if err != nil {
		return err
	}
	return a.follows(got, a.Server)
}

// follows finds a list that is not as advised: another line of the file wins, or
// the program leaves names out. Unless the advice is strict, nothing that was
// enabled may be missing.
func (a *Advised) follows(got alg.Offer, was advise.Side) error {
	for _, list := range a.Advice.Lists {
		want, names := list.Names(), got.List(list.Kind)
		if was.Old && !a.Strict && len(was.Offer.List(list.Kind)) == 0 {
			continue // there is no line
		}
		head := names[:min(len(want), len(names))]
		if a.Strict {
			head = names
		}
		if len(want) > 0 && !slices.Equal(head, want) {
			return fmt.Errorf("%s are %s, not %s", list.Keyword, strings.Join(head, ","), strings.Join(want, ","))
		}
		if lost := was.Offer.Without(got, list.Kind); len(lost) > 0 && !a.Strict {
			return fmt.Errorf("%s would lose %s", list.Keyword, strings.Join(lost, ","))
		}
	}
	return nil
}
