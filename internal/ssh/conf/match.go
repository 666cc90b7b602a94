package conf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/knownhosts"
)

// criterionKind is the subject of a criterion of a Match line.
type criterionKind uint8

const (
	byAll criterionKind = iota + 1
	byCanonical
	byFinal
	byHost
	byOriginalHost
	byUser
	byLocalUser
	byExec
	byTag
	byLocalNetwork
	byVersion
	bySessionType
	byCommand
)

// criterion is one condition of a Match line.
type criterion struct {
	kind   criterionKind
	negate bool
	arg    string
}

// criteria are the words of Match lines and the release that introduced them.
var criteria = map[string]struct {
	kind  criterionKind
	since Version
}{
	"all":          {kind: byAll},
	"canonical":    {kind: byCanonical},
	"final":        {kind: byFinal},
	"host":         {kind: byHost},
	"originalhost": {kind: byOriginalHost},
	"user":         {kind: byUser},
	"localuser":    {kind: byLocalUser},
	"exec":         {kind: byExec},
	"tagged":       {byTag, Version{9, 4}},
	"localnetwork": {byLocalNetwork, Version{9, 4}},
	"version":      {byVersion, Version{10, 0}},
	"sessiontype":  {bySessionType, Version{10, 0}},
	"command":      {byCommand, Version{10, 0}},
}

// words splits a Match line: by cursor up to release 9.8, into shell-like arguments since.
type words interface{ next() (string, bool) }

type argWords struct{ args []string }

func (w *argWords) next() (word string, ok bool) {
	if len(w.args) == 0 {
		return "", false
	}
	word, w.args = w.args[0], w.args[1:]
	return word, true
}

// parseMatch reads the conditions of a Match line (readconf.c:match_cfg_line).
func parseMatch(in input) (list []criterion, err error) {
	var line words = &cursor{text: in.rest}
	if in.version.AtLeast(shellLikeMatch) {
		line = &argWords{in.args}
	}
	for {
		word, ok := line.next()
		if !ok || word == "" || word[0] == '#' {
			break
		}
		c, err := parseCriterion(word, line, in.version)
		if err != nil {
			return nil, err
		}
		if list = append(list, c); c.kind != byAll {
			continue
		}
		if rest, ok := line.next(); len(list) > 2 || ok && rest != "" && rest[0] != '#' {
			return nil, errors.New("'all' cannot be combined with other criteria")
		}
		return list, nil
	}
	if len(list) == 0 {
		return nil, errors.New("one or more criteria are required")
	}
	return list, nil
}

func parseCriterion(word string, line words, v Version) (c criterion, err error) {
	word, c.negate = strings.CutPrefix(word, "!")
	name, arg, hasArg := strings.Cut(word, "=")
	row, ok := criteria[wildcard.Lower(name)]
	noEquals := hasArg && (row.kind <= byFinal || row.kind == bySessionType) // as ssh has it
	if !ok || !v.AtLeast(row.since) || noEquals {
		return c, fmt.Errorf("unsupported criterion %q", name)
	}
	if c.kind = row.kind; c.kind <= byFinal {
		return c, nil
	}
	if !hasArg {
		arg, hasArg = line.next()
	}
	if !hasArg || arg == "" && c.kind != byTag && c.kind != byCommand || strings.HasPrefix(arg, "#") {
		return c, fmt.Errorf("missing argument of %s", name)
	}
	c.arg = arg
	return c, checkCriterion(c, v)
}

// checkCriterion finds the mistakes that ssh finds whether or not the criterion is reached.
func checkCriterion(c criterion, v Version) (err error) {
	switch c.kind {
	case byExec:
		anything := connection{system: &System{}, version: v}
		_, err = expand(c.arg, anything.token, nil)
	case byLocalNetwork:
		_, err = inNetworks(nil, c.arg)
	}
	return err
}

// holds evaluates the conditions in order. unsure is set when the answer depends on one that this
// package may not evaluate; it then counts as false.
func (s *state) holds(ctx context.Context, list []criterion, at Origin) (bool, error) {
	result := true
	var unsure []Gap
	for _, c := range list {
		if !result {
			return false, nil
		}
		ok, gap, err := s.criterion(ctx, c)
		if err != nil {
			return false, wrapError(at, err)
		}
		if gap != nil {
			gap.Origin = at
			unsure = append(unsure, *gap)
			continue
		}
		result = ok != c.negate
	}
	if result && len(unsure) > 0 {
		s.gaps = append(s.gaps, unsure...)
		return false, nil
	}
	return result, nil
}

// criterion evaluates one condition, without its negation.
func (s *state) criterion(ctx context.Context, c criterion) (ok bool, gap *Gap, err error) {
	switch c.kind {
	case byAll:
		return true, nil, nil
	case byCanonical, byFinal:
		return s.final, nil, nil
	case byHost:
		host, err := s.targetHost()
		return matchHostname(host, c.arg), nil, err
	case byOriginalHost:
		return matchHostname(s.query.Name, c.arg), nil, nil
	case byUser:
		return wildcard.MatchList(s.user(), c.arg), nil, nil
	case byLocalUser:
		return wildcard.MatchList(s.config.system.User, c.arg), nil, nil
	case byExec:
		return s.exec(ctx, c.arg)
	case byTag:
		return matchOrEmpty(s.word(Tag), c.arg), nil, nil
	case byLocalNetwork:
		return s.localNetwork(c.arg)
	case byVersion:
		return s.sshVersion(c.arg)
	case bySessionType:
		return wildcard.MatchList(s.sessionType(), c.arg), nil, nil
	case byCommand:
		return matchOrEmpty(s.config.params.Command, c.arg), nil, nil
	}
	return false, &Gap{Reason: "Match has a criterion of a newer ssh"}, nil
}

// matchOrEmpty is wildcard.MatchList, except that an empty list matches only an empty name.
func matchOrEmpty(s, list string) bool {
	if s == "" {
		return list == ""
	}
	return wildcard.MatchList(s, list)
}

// exec runs the command of a Match exec, and reports whether it succeeded; a Gap, where no command
// may be run.
func (s *state) exec(ctx context.Context, command string) (bool, *Gap, error) {
	run := s.config.system.Exec
	if run == nil {
		return false, &Gap{Reason: "Match exec runs a program"}, nil
	}
	host, err := s.targetHost()
	if err != nil {
		return false, nil, err
	}
	c := s.connection(host, cmp.Or(s.word(HostKeyAlias), host))
	c.jump = s.word(ProxyJump)
	command, err = expand(command, c.token, nil)
	if err != nil {
		return false, nil, err
	}
	ok, err := run(ctx, command)
	return ok, nil, err
}

func (s *state) localNetwork(networks string) (bool, *Gap, error) {
	list := s.config.system.Addresses
	if list == nil {
		return false, &Gap{Reason: "Match localnetwork looks at the interfaces"}, nil
	}
	ok, err := inNetworks(list(), networks)
	return ok, nil, err
}

// inNetworks reports whether an address lies in a list of networks such as "10.0.0.0/8,192.0.2.1"
// (addrmatch.c:addr_match_cidr_list).
func inNetworks(addresses []netip.Addr, list string) (found bool, err error) {
	for text := range strings.SplitSeq(list, ",") {
		network, err := parseNetwork(text)
		if err != nil {
			return false, err
		}
		found = found || slices.ContainsFunc(addresses, func(a netip.Addr) bool { return network.Contains(a.Unmap().WithZone("")) })
	}
	return found, nil
}

// parseNetwork reads a network without bits beyond its mask, or an address.
func parseNetwork(text string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(text)
	if a, ok := netip.ParseAddr(text); ok == nil && a.Zone() == "" {
		network, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil || network != network.Masked() {
		return network, fmt.Errorf("invalid network %q", text)
	}
	return network, nil
}

func (s *state) sshVersion(patterns string) (bool, *Gap, error) {
	d := s.config.defaults
	if d == nil || d.Release == "" {
		return false, &Gap{Reason: "Match version asks for the installed ssh"}, nil
	}
	return wildcard.MatchList(d.Release, patterns), nil, nil
}

// sessionType is the value that Match sessiontype compares: a command runs by "exec".
func (s *state) sessionType() string {
	switch kind := s.word(SessionType); {
	case kind == "none" || kind == "subsystem":
		return kind
	case s.config.params.Command != "" || s.word(RemoteCommand) != "":
		return "exec"
	}
	return "shell"
}

// targetHost is the host name as far as it is known in this pass.
func (s *state) targetHost() (string, error) {
	name := s.set[HostName]
	if s.final || name == nil {
		return s.host, nil
	}
	return expandHostName(name.Args[0], s.host)
}

// expandHostName replaces %h, the only token of HostName.
func expandHostName(name, host string) (string, error) {
	return expand(name, func(t byte) (string, bool) { return host, t == 'h' }, nil)
}

// connection returns the values of tokens, with defaults for those that are not set so far.
func (s *state) connection(host, alias string) connection {
	c := connection{
		system: &s.config.system, version: s.config.version(), host: host, argument: s.query.Name,
		alias: alias, port: knownhosts.DefaultPort, user: s.user(),
	}
	if port := s.word(Port); port != "" {
		c.port, _ = strconv.Atoi(port)
	}
	return c
}

// matchHostname is wildcard.MatchList without regard to case (match.c:match_hostname).
func matchHostname(host, list string) bool {
	return wildcard.MatchListFold(wildcard.Lower(host), list)
}

// hostPattern is one argument of a Host line.
type hostPattern struct {
	text    string
	negated bool
}

func parseHostPattern(arg string) hostPattern {
	text, negated := strings.CutPrefix(arg, "!")
	return hostPattern{text, negated}
}

// plain reports whether the pattern is a name without wildcards.
func (p hostPattern) plain() bool {
	return !p.negated && !strings.ContainsAny(p.text, "*?")
}

// matchHost applies a Host line: a negated match rules the block out.
func matchHost(host string, patterns []hostPattern) bool {
	active := false
	for _, p := range patterns {
		if !wildcard.Match(host, p.text) {
			continue
		}
		if p.negated {
			return false
		}
		active = true
	}
	return active
}
