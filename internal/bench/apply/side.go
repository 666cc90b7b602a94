package apply

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/shell"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// side is the program at one end of a connection, ssh or sshd, and its configuration.
type side struct {
	name    string // client or server, as --write has it
	program openssh.Program
	now     advise.Side

	named, flag string                                           // its file, where the user has named one, and with which flag
	file        func() (config, base string, err error)          // its file, and the directory of relative names in Include
	mode        os.FileMode                                      // of a file that is made
	look        string                                           // the command that shows which line decides
	after       string                                           // title of each change
	present     func(context.Context) (alg.Offer, error)         // its present offer
	offers      func(context.Context, string) (alg.Offer, error) // and by another file
	reads       func(context.Context, string) error              // refuses a file as the program does
}

// learn asks the program for its present offer, and for the offer that it has without a
// configuration.
func (s *side) learn(ctx context.Context) (err error) {
	s.now.Old = !advise.Prepends(s.program.Version)
	if s.now.Default, err = s.offers(ctx, os.DevNull); err == nil {
		s.now.Offer, err = s.present(ctx)
	}
	return err
}

// undo returns the command that removes the lines that were written for hosts of a pattern.
func (s *side) undo(pattern string) string {
	words := []string{"sshpace", "advise", "--undo", s.name}
	if s.name == "client" {
		words = append(words, "--host", pattern)
	}
	if s.named != "" {
		words = append(words, s.flag, s.named)
	}
	return shell.Line(words...)
}

// block returns the name of the written block: for ssh it contains the hosts, "" for any.
func (s *side) block(pattern string) string {
	if s.name == "server" {
		pattern = ""
	}
	return strings.TrimSpace("advise " + pattern)
}

// client returns ssh, with the user's file. ssh gets that from the user database, not from HOME,
// and takes relative names from there whatever -F says (ssh_config(5)). now holds the present
// flags.
func (p Params) client(ctx context.Context, now conf.Flags) (*side, error) {
	ssh, err := openssh.FindClient(ctx, p.SSH)
	if err != nil {
		return nil, err
	}
	words := []string{"sshpace", "config"}
	if p.Flags.Config != "" {
		words = append(words, "-F", p.Flags.Config)
	}
	s := &side{name: "client", program: ssh, named: p.Flags.Config, flag: "-F", mode: 0o600, look: shell.Line(append(words, probe(p.Pattern))...)}
	s.file = func() (config, base string, err error) {
		me, err := user.Current()
		if err != nil {
			return "", "", err
		}
		base = filepath.Join(me.HomeDir, ".ssh")
		return cmp.Or(s.named, filepath.Join(base, "config")), base, nil
	}
	by := func(ctx context.Context, flags conf.Flags) (alg.Offer, error) {
		return ssh.Effective(ctx, openssh.Destination{Host: probe(p.Pattern), Flags: flags})
	}
	s.present = func(ctx context.Context) (alg.Offer, error) { return by(ctx, now) }
	s.offers = func(ctx context.Context, file string) (alg.Offer, error) { return by(ctx, conf.Flags{Config: file}) }
	s.reads = func(ctx context.Context, file string) error { _, err := s.offers(ctx, file); return err }
	return s, nil
}

// server returns sshd. Nothing is restarted.
func (p Params) server(ctx context.Context) (*side, error) {
	sshd, err := openssh.FindServer(ctx, p.SSHD)
	if err != nil {
		return nil, err
	}
	keys, err := loopback.MakeKeys(p.Dir) // sshd -t and -T insist on a host key
	if err != nil {
		return nil, err
	}
	if err := openssh.PreparePrivilegeSeparation(); err != nil {
		fmt.Fprintf(p.Notes, "note: %v\n", err)
	}
	s := &side{
		name: "server", program: sshd, named: p.SSHDConfig, flag: "--sshd-config", mode: 0o644, look: "sshd -T",
		after: "# sshd reads it after systemctl reload ssh; keep a session open until a new login works",
	}
	s.file = func() (config, base string, err error) {
		return cmp.Or(s.named, defaultServerConfig), filepath.Dir(defaultServerConfig), nil
	}
	s.present = func(ctx context.Context) (alg.Offer, error) { return sshd.EffectiveServer(ctx, s.named, keys.HostKey) }
	s.reads = func(ctx context.Context, file string) error { return sshd.CheckServer(ctx, file, keys.HostKey) }
	s.offers = func(ctx context.Context, file string) (alg.Offer, error) {
		if err := s.reads(ctx, file); err != nil {
			return alg.Offer{}, err
		}
		return sshd.EffectiveServer(ctx, file, keys.HostKey)
	}
	return s, nil
}
