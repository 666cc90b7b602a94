package conf

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"sshpace/internal/base/wildcard"
)

var errNotCanonical = errors.New("no canonical name was found and CanonicalizeFallbackLocal is no")

// resolveHost turns the argument into the name to connect to, and goes through the files again if
// necessary (ssh.c:main).
func (s *state) resolveHost(ctx context.Context) error {
	s.settle()
	if name := s.set[HostName]; name != nil {
		host, err := expandHostName(name.Args[0], s.host)
		if err != nil {
			return wrapError(name.Origin, err)
		}
		s.host = host
	}
	canonicalize := s.word(CanonicalizeHostname)
	wanted := canonicalize == "true" || canonicalize == "always"
	address, isAddress := s.address()
	switch {
	case isAddress:
		s.host = address
	default:
		s.host = wildcard.Lower(s.host)
		if err := s.canonicalize(ctx, wanted); err != nil {
			return err
		}
	}
	if !wanted && !s.config.wantFinal {
		return nil
	}
	s.final = true
	return s.pass(ctx)
}

// settle gives the keywords that canonicalization needs their defaults, which the second pass
// cannot change any more.
func (s *state) settle() {
	for _, k := range []Keyword{CanonicalizeHostname, CanonicalizeMaxDots, CanonicalizeFallbackLocal} {
		s.first(k, s.config.fallbacks[k])
	}
}

// address returns the normal form of a host that is an address, by the rules of getaddrinfo(3):
// "127.1" and "0x7f.1" are 127.0.0.1. A host that can only be a malformed address stays as it is.
func (s *state) address() (text string, ok bool) {
	looks := strings.ContainsAny(s.host, "%:") || strings.Trim(s.host, "0123456789.") == ""
	family := s.word(AddressFamily)
	if a, ok := ipv4(s.host); ok && family != "inet6" {
		return a.String(), true
	}
	switch a, err := netip.ParseAddr(s.host); {
	case err != nil || !a.Is6():
	case family != "inet":
		return a.String(), true
	case a.Is4In6():
		return a.Unmap().String(), true
	}
	return s.host, looks
}

// ipv4 reads one to four numbers, decimal, octal or hexadecimal, the last of which fills the
// remaining bytes (inet_aton(3)).
func ipv4(s string) (a netip.Addr, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return a, false
	}
	var value uint64
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if strings.ContainsAny(part, "_oObB+-") && !strings.HasPrefix(wildcard.Lower(part), "0x") {
			return a, false
		}
		n, err := strconv.ParseUint(part, 0, bits)
		if err != nil || strings.Contains(part, "_") {
			return a, false
		}
		value = value<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// canonicalize completes a host name with the help of the DNS where the configuration asks for it
// (ssh.c:resolve_canonicalize). Without a DNS to ask it leaves a Gap.
func (s *state) canonicalize(ctx context.Context, wanted bool) error {
	rules := s.set[CanonicalizePermittedCNAMEs]
	aliases := rules != nil && rules.Args[0] != "none"
	if !wanted && !aliases {
		return nil
	}
	direct := s.noJump() && (s.word(ProxyCommand) == "" || strings.EqualFold(s.word(ProxyCommand), "none"))
	if wanted && (direct || s.word(CanonicalizeHostname) == "always") {
		found, err := s.complete(ctx)
		if found || err != nil {
			return err
		}
	}
	if !aliases || !direct && s.word(CanonicalizeHostname) != "always" {
		return nil
	}
	ask := s.config.system.Canonical
	if ask == nil {
		s.gaps = append(s.gaps, Gap{"the DNS may know the host by another name", rules.Origin})
		return nil
	}
	if canonical, ok := ask(ctx, s.word(AddressFamily), s.host); ok {
		s.host = s.follow(s.host, canonical, wanted)
	}
	return nil
}

// noJump reports whether there is no ProxyJump that keeps ssh from asking the DNS itself; "none"
// does in older releases.
func (s *state) noJump() bool {
	v := s.set[ProxyJump]
	if v == nil || v.word() != "" {
		return v == nil
	}
	if s.config.defaults == nil && s.word(CanonicalizeHostname) != "always" {
		s.gaps = append(s.gaps, Gap{"whether a name with ProxyJump none is completed depends on the release of ssh", v.Origin})
	}
	return s.config.version().AtLeast(jumpNone)
}

// complete tries the canonical domains. found is true when the name is final.
func (s *state) complete(ctx context.Context) (found bool, err error) {
	names := s.candidates()
	if len(names) == 0 && !strings.HasSuffix(s.host, ".") && s.dots() > s.maxDots() {
		return false, nil
	}
	ask := s.config.system.Canonical
	if ask == nil && len(names) > 0 {
		s.gaps = append(s.gaps, Gap{"canonical names come from the DNS", s.set[CanonicalizeHostname].Origin})
		return true, nil
	}
	for _, name := range names {
		if canonical, ok := ask(ctx, s.word(AddressFamily), name); ok {
			name = strings.TrimSuffix(name, ".")
			s.host = s.follow(name, canonical, true)
			return true, nil
		}
	}
	if s.word(CanonicalizeFallbackLocal) == "no" {
		return false, errNotCanonical
	}
	return false, nil
}

// candidates are the full names to try, each with a final dot.
func (s *state) candidates() []string {
	if strings.HasSuffix(s.host, ".") {
		return []string{s.host}
	}
	domains := s.set[CanonicalDomains]
	if domains == nil || s.dots() > s.maxDots() {
		return nil
	}
	var names []string
	for _, domain := range domains.Args {
		if domain == "none" {
			break
		}
		names = append(names, s.host+"."+domain+".")
	}
	return names
}

func (s *state) dots() int { return strings.Count(s.host, ".") }

func (s *state) maxDots() int {
	if v := s.set[CanonicalizeMaxDots]; v != nil {
		n, _ := strconv.Atoi(v.Args[0])
		return n
	}
	return 1
}

// follow returns the canonical name if some rule permits the step. The DNS's answer may end up in a
// ProxyCommand, so unsafe names are not followed.
func (s *state) follow(name, canonical string, wanted bool) string {
	rules := s.set[CanonicalizePermittedCNAMEs]
	canonical = strings.TrimSuffix(canonical, ".")
	if rules == nil || !wanted || canonical == "" {
		return name
	}
	for _, rule := range rules.Args {
		sources, targets, _ := strings.Cut(rule, ":")
		if wildcard.MatchListFold(name, sources) && wildcard.MatchListFold(canonical, targets) && CheckHost(canonical) == nil {
			return canonical
		}
	}
	return name
}
