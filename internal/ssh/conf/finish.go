package conf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/knownhosts"
)

var errJumpLoop = errors.New("the host is its own jump host")

// finish expands tokens, assembles lists and fills in defaults.
func (s *state) finish() (*Resolved, error) {
	r := &Resolved{Name: s.query.Name, Gaps: s.gaps, config: s.config, set: s.set, several: s.several}
	if s.word(ClearAllForwardings) == "yes" {
		r.set[Tunnel] = s.config.fallbacks[Tunnel]
	}
	s.finishTarget(r)
	for _, step := range []func(*Resolved) error{s.finishUser, s.finishJump, s.finishLists, s.finishPaths} {
		if err := step(r); err != nil {
			return nil, fmt.Errorf("host %s: %w", s.query.Name, err)
		}
	}
	s.finishDefaults(r)
	if v := r.set[ConnectionAttempts]; v.word() == "0" {
		return nil, &ConfigError{v.Origin, errors.New("invalid number of ConnectionAttempts")}
	}
	return r, nil
}

func (s *state) finishTarget(r *Resolved) {
	origin := Origin{Source: FromQuery}
	if name := s.set[HostName]; name != nil {
		origin = name.Origin
	}
	r.set[HostName] = &Value{[]string{s.host}, origin}
	if s.set[User] == nil {
		r.set[User] = &Value{[]string{s.config.system.User}, Origin{Source: FromDefault}}
	}
	if alias := s.set[HostKeyAlias]; alias != nil {
		r.set[HostKeyAlias] = &Value{[]string{wildcard.Lower(alias.Args[0])}, alias.Origin}
	}
	r.conn = s.connection(s.host, cmp.Or(r.Word(HostKeyAlias), s.query.Name))
}

// finishUser expands tokens in User, since release 10.0, unless the name is an argument, and
// refuses an unsafe result.
func (s *state) finishUser(r *Resolved) error {
	v := s.set[User]
	argument := s.config.params.User != "" || v != nil && v.Origin.Source == FromQuery
	if v == nil || argument || !s.config.version().AtLeast(userTokens) {
		return nil
	}
	name, err := expand(v.Args[0], r.conn.userToken, s.config.system.Getenv)
	if err != nil {
		return wrapError(v.Origin, err)
	}
	if name != v.Args[0] {
		if err := CheckUser(name); err != nil {
			return wrapError(v.Origin, err)
		}
		r.set[User] = &Value{[]string{name}, v.Origin}
		r.conn.user = name
	}
	return nil
}

// finishJump drops "none" and refuses a jump through the host itself.
func (s *state) finishJump(r *Resolved) error {
	if r.Word(ProxyJump) == "" {
		r.set[ProxyJump] = nil
		return nil
	}
	r.set[ProxyUseFdpass] = s.config.fallbacks[ProxyUseFdpass] // never through a jump
	hops, err := ParseJumps(r.Word(ProxyJump))
	if err != nil {
		return err
	}
	r.conn.jump = hops[len(hops)-1].Name // in tokens with its quotes
	at := r.set[ProxyJump].Origin
	for i, hop := range hops {
		if hops[i], err = jumpCommand(hop, r.conn.proxyToken, at.Source); err != nil {
			return wrapError(at, fmt.Errorf("ProxyJump: %w", err))
		}
	}
	r.jumps = hops
	last := hops[len(hops)-1]
	if last.Port == 0 {
		last.Port = knownhosts.DefaultPort
	}
	if last.User == "" {
		last.User = r.conn.user
	}
	if (last == host.Endpoint{Name: s.host, User: r.conn.user, Port: uint16(r.conn.port)}) {
		return &ConfigError{at, errJumpLoop}
	}
	return nil
}

func (s *state) finishLists(r *Resolved) error {
	for _, k := range AlgorithmLists {
		v := s.set[k]
		if v == nil {
			continue
		}
		if k == HostKeyAlgorithms {
			r.ordered = strings.IndexByte("+-", v.Args[0][0]) < 0
		}
		list := s.config.assembled(algorithmKey{k, v.Args[0]})
		if list.err != nil && k != HostKeyAlgorithms && !s.config.version().AtLeast(refusesLists) { // ssh reports that and continues
			r.Gaps = append(r.Gaps, Gap{Reason: k.String() + ": " + list.err.Error(), Origin: v.Origin})
			continue
		}
		if list.err != nil {
			return wrapError(v.Origin, fmt.Errorf("%s: %w", k, list.err))
		}
		r.set[k] = &Value{list.names, v.Origin}
		if s.config.defaults == nil && strings.ContainsAny(v.Args[0], "+-^*?") && strings.IndexByte("+-^", v.Args[0][0]) >= 0 {
			r.Gaps = append(r.Gaps, Gap{Reason: k.String() + " changes the defaults of ssh, which is not installed", Origin: v.Origin})
		}
	}
	return nil
}

// expandedPaths are the keywords whose tokens ssh expands before ssh -G prints them. Identity and
// certificate files it expands when it opens them.
var expandedPaths = []struct {
	keyword Keyword
	since   Version
}{{keyword: ControlPath}, {keyword: IdentityAgent}, {keyword: forwardAgentPath}, {keyword: UserKnownHostsFile}, {RevokedHostKeys, revokedTokens}}

// clearedByNone are the keywords that "none" unsets.
var clearedByNone = []Keyword{
	LocalCommand, RemoteCommand, ProxyCommand, ControlPath, RevokedHostKeys, PKCS11Provider, SecurityKeyProvider,
	KnownHostsCommand,
}

func (s *state) finishPaths(r *Resolved) error {
	for _, k := range clearedByNone {
		if strings.EqualFold(r.Word(k), "none") {
			r.set[k] = nil
			r.unshared = r.unshared || k == ControlPath
		}
	}
	s.doubtJump(r)
	for _, e := range expandedPaths {
		if err := s.expand(r, e.keyword, e.since, r.conn.path); err != nil {
			return err
		}
	}
	if err := s.expand(r, RemoteCommand, Version{}, func(text string) (string, error) { return expand(text, r.conn.token, nil) }); err != nil {
		return err
	}
	return s.expand(r, SetEnv, setEnvTokens, func(setting string) (string, error) {
		name, value, _ := strings.Cut(setting, "=")
		value, err := r.conn.text(value)
		return name + "=" + value, err
	})
}

// doubtJump leaves a Gap where no ssh was asked and some path has a token that includes the jump
// host since a release.
func (s *state) doubtJump(r *Resolved) {
	if s.config.defaults != nil || r.conn.jump == "" {
		return
	}
	for _, v := range r.Settings() {
		if slices.ContainsFunc(v.Args, mentionsJump) {
			r.Gaps = append(r.Gaps, Gap{Reason: "a jump host in %C or %j depends on the release of ssh", Origin: v.Origin})
			return
		}
	}
}

// expand replaces the tokens in the words of a keyword by their values, as ssh does since a
// release.
func (s *state) expand(r *Resolved, k Keyword, since Version, by func(string) (string, error)) error {
	v := r.set[k]
	if v == nil || !s.config.version().AtLeast(since) {
		return nil
	}
	words, err := expandAll(v.Args, by)
	if err != nil {
		return wrapError(v.Origin, fmt.Errorf("%s: %w", k, err))
	}
	r.set[k] = &Value{words, v.Origin}
	if s.config.defaults == nil && since != (Version{}) && !slices.Equal(words, v.Args) {
		r.Gaps = append(r.Gaps, Gap{Reason: k.String() + " depends on the release of ssh", Origin: v.Origin})
	}
	return nil
}

func expandAll(words []string, by func(string) (string, error)) ([]string, error) {
	out := words
	for i, word := range words {
		text, err := by(word)
		if err != nil {
			return nil, err
		}
		if text == word { // hosts share words
			continue
		}
		if &out[0] == &words[0] {
			out = slices.Clone(words)
		}
		out[i] = text
	}
	return out, nil
}

// finishDefaults fills in everything that nothing has set, and its consequences.
func (s *state) finishDefaults(r *Resolved) {
	switch {
	case r.set[UpdateHostKeys] == nil:
		r.set[UpdateHostKeys] = s.updateHostKeys()
	case r.Word(UpdateHostKeys) == "ask" && r.cannotAsk():
		r.set[UpdateHostKeys] = &Value{[]string{"false"}, Origin{Source: FromDerivation}}
	}
	if r.set[ServerAliveInterval] == nil && r.Word(BatchMode) == "yes" {
		r.set[ServerAliveInterval] = s.config.defaults.batchAlive()
	}
	for k, v := range s.config.fallbacks {
		if r.set[k] == nil && !(Keyword(k) == SecurityKeyProvider && s.set[k] != nil) {
			r.set[k] = v
		}
	}
}

// updateHostKeys is yes unless the known_hosts files or the source of host keys were changed
// (readconf.c:fill_default_options). A file per host turns key rotation off for this reason.
func (s *state) updateHostKeys() *Value {
	files := s.set[UserKnownHostsFile]
	usual := files == nil || slices.Equal(files.Args, []string{"~/.ssh/known_hosts"})
	if dns := s.word(VerifyHostKeyDNS); usual && (dns == "" || dns == "false") {
		return nil
	}
	return &Value{[]string{"false"}, Origin{Source: FromDerivation}}
}

// cannotAsk reports whether UpdateHostKeys=ask is moot because nobody would see the question
// (ssh.c:main).
func (r *Resolved) cannotAsk() bool {
	no := func(k Keyword) bool { return slices.Contains([]string{"", "no", "false"}, wildcard.Lower(r.Word(k))) }
	return !no(ControlPersist) && r.Word(ControlPath) != "" ||
		r.config.params.Command != "" || r.Word(RemoteCommand) != "" || r.Word(RequestTTY) != "" && no(RequestTTY) ||
		slices.Contains([]string{"quiet", "silent", "fatal", "error"}, wildcard.Lower(r.Word(LogLevel)))
}
