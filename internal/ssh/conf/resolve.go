package conf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/base/wildcard"
)

// Most identity files and certificates of one connection (readconf.h SSH_MAX_IDENTITY_FILES,
// SSH_MAX_CERTIFICATE_FILES).
const maxIdentities = 100

// state is the running resolution of one host.
type state struct {
	config *Config
	query  host.Endpoint
	host   string // the name that Host lines match: the argument, later the canonical name
	final  bool   // in the second pass

	set     [keywordCount]*Value // the first value of each keyword
	several lists
	classes []identityClass // of the identity files so far
	certs   []identityClass
	ignore  int // seq of the IgnoreUnknown in force
	active  map[int]bool
	gaps    []Gap
	err     error
}

// Resolve returns the settings that ssh would use for a host. Errors are those for which ssh would
// refuse to connect: an unsafe name, an unknown token, an unset variable, an empty algorithm list,
// a jump host loop.
func (c *Config) Resolve(ctx context.Context, q host.Endpoint) (*Resolved, error) {
	if err := CheckHost(q.Name); err != nil {
		return nil, fmt.Errorf("host %q: %w", q.Name, err)
	}
	if err := CheckUser(q.User); err != nil {
		return nil, fmt.Errorf("user %q: %w", q.User, err)
	}
	own, err := c.own(q.Settings)
	if err != nil {
		return nil, fmt.Errorf("host %s: a setting of the inventory: %w", q.Name, err)
	}
	s := &state{config: c, query: q, host: q.Name, gaps: slices.Clone(c.gaps)}
	s.commandLine()
	for i := range own {
		s.apply(&own[i])
	}
	if err := s.pass(ctx); err != nil {
		return nil, fmt.Errorf("host %s: %w", q.Name, err)
	}
	if err := s.checkUnknown(); err != nil {
		return nil, err // whatever the host
	}
	if err := s.resolveHost(ctx); err != nil {
		return nil, fmt.Errorf("host %s: %w", q.Name, err)
	}
	return s.finish()
}

// commandLine applies the settings that win over all files.
func (s *state) commandLine() {
	p := &s.config.params
	if p.User != "" {
		s.set[User] = &Value{[]string{p.User}, Origin{Source: FromFlag}}
	}
	for i := range s.config.options {
		s.apply(&s.config.options[i])
	}
	query := Origin{Source: FromQuery}
	if s.query.User != "" && s.set[User] == nil {
		s.set[User] = &Value{[]string{s.query.User}, query}
	}
	if s.query.Port > 0 && s.set[Port] == nil {
		s.set[Port] = &Value{[]string{strconv.Itoa(int(s.query.Port))}, query}
	}
}

// own reads the settings of a single host.
func (c *Config) own(settings string) ([]stmt, error) {
	if settings == "" {
		return nil, nil
	}
	flags := Flags{Settings: strings.Split(settings, "\n")}
	r := &reader{config: &Config{params: Params{Flags: flags}, system: c.system, defaults: c.defaults, scopes: c.scopes[:1]}}
	err := r.flagOptions()
	return r.config.options, err
}

// pass goes through the files once. Segments below Host lines that only name other hosts are never
// looked at.
func (s *state) pass(ctx context.Context) error {
	always, named := s.config.always, s.config.named[s.host]
	s.active = nil
	for len(always) > 0 || len(named) > 0 {
		var i int
		if len(named) == 0 || len(always) > 0 && always[0] < named[0] {
			i, always = always[0], always[1:]
		} else {
			i, named = named[0], named[1:]
		}
		if err := s.segment(ctx, i); err != nil {
			return err
		}
	}
	return s.err
}

func (s *state) segment(ctx context.Context, i int) error {
	seg := &s.config.segments[i]
	active, err := s.scope(ctx, seg.scope)
	if err != nil || !active {
		return err
	}
	for i := range seg.stmts {
		s.apply(&seg.stmts[i])
	}
	return nil
}

// scope reports whether a scope is active. The answer for a scope that includes other files is
// kept, as ssh keeps it across the Include.
func (s *state) scope(ctx context.Context, i int) (active bool, err error) {
	if i == 0 {
		return true, nil
	}
	sc := &s.config.scopes[i]
	if known, ok := s.active[i]; ok {
		return known, nil
	}
	active, err = s.scope(ctx, sc.parent)
	if err == nil && active {
		if sc.match != nil {
			active, err = s.holds(ctx, sc.match, sc.origin)
		} else {
			active = matchHost(s.host, sc.hosts)
		}
	}
	if sc.shared {
		if s.active == nil {
			s.active = map[int]bool{}
		}
		s.active[i] = active
	}
	return active, err
}

// apply sets the value of the line unless something earlier has set it.
func (s *state) apply(st *stmt) {
	switch st.key {
	case IdentityFile:
		s.identity(st, &s.classes)
	case CertificateFile:
		s.identity(st, &s.certs)
	case SendEnv:
		s.sendEnv(st)
	case ProxyCommand:
		if s.word(ProxyJump) == "" {
			s.first(ProxyCommand, &st.value)
		}
	case ProxyJump:
		if s.set[ProxyCommand] == nil {
			s.first(ProxyJump, &st.value)
		}
	case ForwardAgent:
		s.forwardAgent(st)
	case IgnoreUnknown:
		if s.set[IgnoreUnknown] == nil {
			s.ignore = st.seq
		}
		s.first(IgnoreUnknown, &st.value)
	default:
		if st.key.Text() {
			s.several.add(st.key, st.value)
			return
		}
		s.first(st.key, &st.value)
	}
}

func (s *state) first(k Keyword, v *Value) {
	if s.set[k] == nil {
		s.set[k] = v
	}
}

// identity adds a file unless one of the same path and class is there.
func (s *state) identity(st *stmt, classes *[]identityClass) {
	for i, class := range *classes {
		if class == st.class && s.several.of(st.key)[i].Args[0] == st.value.Args[0] {
			return
		}
	}
	if len(*classes) == maxIdentities {
		s.err = &ConfigError{st.value.Origin, fmt.Errorf("more than %d of %s", maxIdentities, st.key)}
		return
	}
	*classes = append(*classes, st.class)
	s.several.add(st.key, st.value)
}

// sendEnv adds names; one that begins with - removes those it matches.
func (s *state) sendEnv(st *stmt) {
	for _, name := range st.value.Args {
		pattern, remove := strings.CutPrefix(name, "-")
		if !remove {
			s.several.add(SendEnv, Value{[]string{name}, st.value.Origin})
			continue
		}
		s.several.put(SendEnv, slices.DeleteFunc(s.several.of(SendEnv), func(v Value) bool { return wildcard.Match(v.Args[0], pattern) }))
	}
}

// forwardAgent keeps the flag and the path of a socket apart, as ssh does: a path that comes after
// a plain yes or no still names the socket.
func (s *state) forwardAgent(st *stmt) {
	if st.value.Args[0] != "path" {
		s.first(ForwardAgent, &st.value)
		return
	}
	s.first(ForwardAgent, &Value{[]string{"yes"}, st.value.Origin})
	s.first(forwardAgentPath, &Value{st.value.Args[1:], st.value.Origin})
}

// word returns the first word that a keyword was set to so far, or "".
func (s *state) word(k Keyword) string {
	return s.set[k].word()
}

func (s *state) user() string {
	if s.set[User] != nil {
		return s.word(User)
	}
	return s.config.system.User
}

// checkUnknown refuses each keyword that the installed ssh does not know, unless an earlier
// IgnoreUnknown covers it. A keyword that only ssh knows leaves a Gap, and so does one that nobody
// asked ssh about (CheckText). ssh checks keywords in inactive blocks as well.
func (s *state) checkUnknown() error {
	c, patterns := s.config, s.word(IgnoreUnknown)
	for _, u := range c.unknown {
		newer := !c.checked || slices.Contains(c.refused, u.name)
		switch {
		case newer && patterns != "" && s.ignore < u.seq && wildcard.MatchListFold(u.name, patterns):
		case newer && c.checked:
			return &ConfigError{u.value.Origin, errors.New("Bad configuration option: " + u.name)}
		default:
			s.gaps = append(s.gaps, Gap{"unknown keyword " + u.name, u.value.Origin})
		}
	}
	return nil
}
