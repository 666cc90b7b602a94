package conf

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"sshpace/internal/base/sched"
)

// Runner runs the installed ssh with arguments and returns what it printed.
type Runner func(ctx context.Context, args ...string) (stdout, stderr []byte, err error)

// Defaults are the installed ssh's values of keywords that nothing sets, and the algorithms it was
// built with. They differ from release to release and from vendor to vendor, so ssh is asked for
// them.
type Defaults struct {
	Release string // "OpenSSH_9.2p1"
	Version Version

	values     [keywordCount]*Value
	several    lists
	algorithms map[string][]string // by the name that ssh -Q takes
	alive      *Value              // ServerAliveInterval under BatchMode
}

// queries lists the arguments of ssh -Q.
var queries = []string{"cipher", "mac", "kex", "key-sig", "sig"}

// AskDefaults asks the installed ssh: eight calls of a few milliseconds, at once, that read no file
// and open no connection.
func AskDefaults(ctx context.Context, run Runner) (*Defaults, error) {
	d := &Defaults{algorithms: map[string][]string{}}
	found := make([][]string, len(queries))
	asks := []func() error{func() error { return d.askVersion(ctx, run) }, func() error { return d.askValues(ctx, run) }}
	for i, query := range queries {
		asks = append(asks, func() error {
			out, _, err := run(ctx, "-Q", query)
			if err != nil {
				return fmt.Errorf("ask ssh for its %s list: %w", query, err)
			}
			found[i] = strings.Fields(string(out))
			return nil
		})
	}
	errs := make([]error, len(asks))
	sched.Do(len(asks), len(asks), func(i int) { errs[i] = asks[i]() })
	for i, query := range queries {
		d.algorithms[query] = found[i]
	}
	return d, cmp.Or(errs...)
}

func (d *Defaults) askVersion(ctx context.Context, run Runner) error {
	_, banner, err := run(ctx, "-V")
	if err != nil {
		return fmt.Errorf("ask ssh for its version: %w", err)
	}
	d.Version, _ = ParseVersion(string(banner))
	d.Release, _, _ = strings.Cut(strings.TrimSpace(string(banner)), " ")
	return nil
}

// AskLists asks the installed ssh for its default lists of algorithms, in one call.
func AskLists(ctx context.Context, run Runner) (map[Keyword][]string, error) {
	values, err := unset(ctx, run)
	if err != nil {
		return nil, err
	}
	found := map[Keyword][]string{}
	for k, words := range values {
		if slices.Contains(AlgorithmLists, k) {
			found[k] = words
		}
	}
	return found, nil
}

// unset returns the output of ssh -G without a file and with few options.
func unset(ctx context.Context, run Runner, options ...string) (iter.Seq2[Keyword, []string], error) {
	// A literal name that is not an address, so that nothing is looked up.
	const host = "sshpace-defaults"
	out, _, err := run(ctx, slices.Concat([]string{"-G", "-F", "none"}, options, []string{"--", host})...)
	if err != nil {
		return nil, fmt.Errorf("ask ssh for its defaults: %w", err)
	}
	return Dump(string(out)), nil
}

// askValues reads the defaults, and the keep-alive that some vendors add to BatchMode.
func (d *Defaults) askValues(ctx context.Context, run Runner) error {
	plain, err := unset(ctx, run)
	if err != nil {
		return err
	}
	batch, err := unset(ctx, run, "-o", "BatchMode=yes")
	if err != nil {
		return err
	}
	for k, words := range plain {
		d.add(k, words)
	}
	for k, words := range batch {
		if k == ServerAliveInterval && (d.values[k] == nil || !slices.Equal(d.values[k].Args, words)) {
			d.alive = &Value{words, Origin{Source: FromDefault}}
		}
	}
	return nil
}

func (d *Defaults) add(k Keyword, words []string) {
	v := Value{words, Origin{Source: FromDefault}}
	switch {
	case k.several():
		d.several.add(k, v)
	case k == HostName || k == User:
	default:
		d.values[k] = &v
	}
}

// supported returns all algorithms that a list may name; none when unknown.
func (d *Defaults) supported(k Keyword) []string {
	if d == nil {
		return nil
	}
	switch k {
	case Ciphers:
		return d.algorithms["cipher"]
	case MACs:
		return d.algorithms["mac"]
	case KexAlgorithms:
		return d.algorithms["kex"]
	case CASignatureAlgorithms:
		return d.algorithms["sig"]
	}
	return d.algorithms["key-sig"]
}

func (d *Defaults) list(k Keyword) []string {
	if d == nil || d.values[k] == nil {
		return nil
	}
	return d.values[k].Args
}

// knows reports whether ssh has a keyword, by its release or because it prints a value of it, as it
// does for additions of vendors. Where no ssh was asked it may have all.
func (d *Defaults) knows(k Keyword) bool {
	return d == nil || d.values[k] != nil || !specs[k].vendor && d.Version.AtLeast(specs[k].since)
}

// lacks reports whether ssh was built without the feature of a keyword: it accepts any arguments
// then, without effect.
func (d *Defaults) lacks(k Keyword) bool {
	return d != nil && d.values[GSSAPIAuthentication] == nil && k == GSSAPIAuthentication
}

func (d *Defaults) batchAlive() *Value {
	if d == nil {
		return nil
	}
	return d.alive
}

// UsualIdentities are the default identity files, in ssh's order (ssh_config(5) IdentityFile).
var UsualIdentities = []string{
	"~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ecdsa_sk", "~/.ssh/id_ed25519", "~/.ssh/id_ed25519_sk",
}

// fallbacks returns the value of every keyword that nothing sets.
func (d *Defaults) fallbacks(home string) (values [keywordCount]*Value) {
	origin := Origin{Source: FromDefault}
	userFiles := &Value{[]string{home + "/.ssh/known_hosts", home + "/.ssh/known_hosts2"}, origin}
	if d != nil {
		values = d.values
		values[UserKnownHostsFile] = userFiles
		return values
	}
	values[UserKnownHostsFile] = userFiles
	for k, row := range specs {
		if row.initial != "" {
			values[k] = &Value{[]string{row.initial}, origin}
		}
	}
	values[GlobalKnownHostsFile] = &Value{[]string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}, origin}
	return values
}

// lists returns the default identity files, and ssh's values of keywords kept as text.
func (d *Defaults) lists() (l lists) {
	if d != nil {
		return d.several
	}
	for _, path := range UsualIdentities {
		l.add(IdentityFile, Value{[]string{path}, Origin{Source: FromDefault}})
	}
	return l
}
