package conf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Config is a set of files and flags, read once. It does not change any more and may be used by any
// number of goroutines.
type Config struct {
	params   Params
	system   System
	defaults *Defaults

	scopes    []scope
	segments  []segment
	options   []stmt // -o
	unknown   []stmt
	gaps      []Gap    // that concern all hosts
	wantFinal bool     // some Match line asks for a second pass
	unchecked []stmt   // see CheckText
	checked   bool     // CheckText was called, and these are the keywords that ssh does not know
	refused   []string // in lower case

	always []int            // segments that may concern any host
	named  map[string][]int // segments below a Host line of plain names
	lists  map[algorithmKey]assembled

	fallbacks [keywordCount]*Value // values of unset keywords
	usual     lists                // of the keywords that may have several values
	warnings  []string
}

// Load reads the files that ssh would read: params.Config, or the user's and the system's. Missing
// files are empty, but params.Config must exist. A mistake in any of them is a *ConfigError, as ssh
// would refuse it.
func Load(ctx context.Context, params Params) (*Config, error) {
	c := &Config{params: params, system: params.System, defaults: params.Defaults,
		scopes: []scope{{parent: -1}}}
	r := &reader{ctx: ctx, config: c}
	if err := r.flags(); err != nil {
		return nil, err
	}
	if err := r.files(ctx); err != nil {
		return nil, err
	}
	c.index()
	c.fallbacks = c.defaults.fallbacks(c.system.Home)
	c.usual = c.defaults.lists()
	c.assembleAll()
	return c, nil
}

// Warnings are notes about the command line, such as an -i file that does not exist and is left
// out.
func (c *Config) Warnings() []string { return c.warnings }

// Release returns the release of the installed ssh, as given to Load.
func (c *Config) Release() Version { return c.version() }

func (c *Config) version() Version {
	if c.defaults == nil {
		return Version{}
	}
	return c.defaults.Version
}

func (s *System) configDir() string {
	if s.ConfigDir == "" {
		return "/etc/ssh"
	}
	return s.ConfigDir
}

func (s *System) getenv(name string) (string, bool) {
	if s.Getenv == nil {
		return "", false
	}
	return s.Getenv(name)
}

// files reads the files in order; earlier ones win.
func (r *reader) files(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch file := r.config.params.Config; file {
	case "none":
		return nil
	case "":
		return r.usualFiles()
	default:
		err := r.file(place{path: file, user: true}, false)
		if errors.Is(err, fs.ErrNotExist) {
			return &ConfigError{Origin{FromFlag, "", 0}, fmt.Errorf("config file %s does not exist", file)}
		}
		return err
	}
}

func (r *reader) usualFiles() error {
	system := &r.config.system
	user := place{path: filepath.Join(system.Home, ".ssh", "config"), user: true}
	if err := r.file(user, true); err != nil && !unreadable(err) {
		return err
	}
	err := r.file(place{path: filepath.Join(system.configDir(), "ssh_config")}, false)
	if err != nil && !unreadable(err) {
		return err
	}
	return nil
}

// unreadable reports whether ssh would continue without the file. A mistake in it, or an Include
// that cannot be read, is different.
func unreadable(err error) bool {
	_, isPath := errors.AsType[*fs.PathError](err)
	_, isConfig := errors.AsType[*ConfigError](err)
	return isPath && !isConfig
}

// flags checks the command line and turns -o options into statements.
func (r *reader) flags() error {
	p := &r.config.params
	flag := Origin{Source: FromFlag}
	if err := r.flagOptions(); err != nil {
		return wrapError(flag, err)
	}
	if err := r.flagUser(); err != nil {
		return err
	}
	for _, path := range p.Identities {
		path, err := r.config.system.tilde(path)
		if err != nil {
			return &ConfigError{flag, err}
		}
		if _, err := os.Stat(path); err != nil {
			r.config.warnings = append(r.config.warnings, fmt.Sprintf("identity file %s is not accessible: %s", path, err.(*os.PathError).Err))
			continue
		}
		r.config.options = append(r.config.options, stmt{key: IdentityFile, class: fromIdentityFlag,
			value: Value{[]string{path}, flag}})
	}
	return nil
}

// CheckUser refuses an unsafe user of -l or -o.
func (p Params) CheckUser() error {
	r := &reader{config: &Config{params: p, system: p.System, scopes: []scope{{parent: -1}}}}
	if err := r.flagOptions(); err != nil {
		return nil // Load says so
	}
	return r.flagUser()
}

// flagUser is CheckUser once the options have been read. It comes before any file is read: "Match
// exec" may hand %r to a shell.
func (r *reader) flagUser() error {
	user := r.config.params.User
	for _, s := range r.config.options {
		if s.key == User && user == "" {
			user = s.value.Args[0]
		}
	}
	if err := CheckUser(user); err != nil {
		return &ConfigError{Origin{Source: FromFlag}, err}
	}
	return nil
}

// flagOptions reads the flags -p, -J, -4 and -6, and then -o, so that the former win; -l wins by
// commandLine.
func (r *reader) flagOptions() error {
	p := &r.config.params
	var lines []string
	if p.Port != 0 {
		lines = append(lines, "Port "+strconv.Itoa(int(p.Port)))
	}
	if p.Jump != "" {
		lines = append(lines, "ProxyJump "+p.Jump)
	}
	switch {
	case p.IPv6:
		lines = append(lines, "AddressFamily inet6")
	case p.IPv4:
		lines = append(lines, "AddressFamily inet")
	}
	for _, line := range slices.Concat(lines, p.Settings) {
		if err := r.option(line); err != nil {
			return err
		}
	}
	for _, s := range r.config.segments {
		r.config.options = append(r.config.options, s.stmts...)
	}
	r.config.segments = nil
	return nil
}

func (r *reader) option(line string) error {
	name, rest := splitLine(line)
	if name == "" {
		return nil
	}
	in, err := r.input(name, rest)
	if err != nil {
		return err
	}
	if k := byName[name]; kwHost <= k && k <= kwInclude {
		return fmt.Errorf("%s cannot be given with -o", k)
	}
	return r.statement(0, name, in, stmt{value: Value{Origin: Origin{Source: FromFlag}}, class: fromUserFile, line: line})
}

// index sorts the segments into those that a plain host name leads to and those that must be
// examined for every host.
func (c *Config) index() {
	c.named = map[string][]int{}
	for i, seg := range c.segments {
		names := c.plainNames(seg.scope)
		if names == nil {
			c.always = append(c.always, i)
		}
		for _, name := range names {
			c.named[name] = append(c.named[name], i)
		}
	}
}

// plainNames returns the only hosts for which a scope can be active, or nil if it has to be
// evaluated.
func (c *Config) plainNames(i int) []string {
	for ; i > 0; i = c.scopes[i].parent {
		hosts := c.scopes[i].hosts
		if len(hosts) == 0 || slices.ContainsFunc(hosts, func(p hostPattern) bool { return !p.plain() }) {
			continue
		}
		var names []string
		for _, p := range hosts {
			if !slices.Contains(names, p.text) {
				names = append(names, p.text)
			}
		}
		return names
	}
	return nil
}

// HostNames returns the names on Host lines that are neither patterns nor negated, each once, in
// the order of the files.
func (c *Config) HostNames() []string {
	var names []string
	seen := map[string]bool{}
	for _, s := range c.scopes {
		for _, p := range s.hosts {
			if p.plain() && !seen[p.text] {
				seen[p.text] = true
				names = append(names, p.text)
			}
		}
	}
	return names
}
