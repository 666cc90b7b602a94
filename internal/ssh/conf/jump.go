package conf

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"sshpace/internal/base/host"
)

// parseJumpLine reads ProxyJump and returns it as ssh -G prints it: all hops but the last as they
// are written, the last one in normal form. "none" is the empty word, because "none # comment" is a
// host of that name to ssh.
func parseJumpLine(in input) ([]string, error) {
	text := strings.TrimLeft(in.rest, blanks+"=")
	if strings.EqualFold(text, "none") {
		return []string{""}, nil
	}
	text, _, _ = strings.Cut(text, "#")
	text = strings.TrimRight(text, blanks+"\f\v")
	hops, err := ParseJumps(text)
	if err != nil {
		return nil, err
	}
	last := hops[len(hops)-1]
	shown := shownJump(last)
	if i := strings.LastIndexByte(text, ','); i > 0 {
		shown = text[:i+1] + shown
	}
	return []string{shown}, nil
}

// shownJump is a hop as ssh -G prints it, with brackets around all addresses and no others.
func shownJump(j host.Endpoint) string {
	s := j.Name
	if strings.Contains(s, ":") || strings.Trim(s, "1234567890.") == "" {
		s = "[" + s + "]"
	}
	if j.User != "" {
		s = j.User + "@" + s
	}
	if j.Port > 0 {
		s += ":" + strconv.Itoa(int(j.Port))
	}
	return s
}

// ParseJumps reads the hops of ProxyJump, the first one to connect to first. As in ssh, unsafe
// names are not a mistake of the file: only the hosts that would go through them are refused, see
// checkJump.
func ParseJumps(s string) ([]host.Endpoint, error) {
	var hops []host.Endpoint
	for hop := range strings.SplitSeq(s, ",") {
		j, err := parseJump(hop)
		if err != nil {
			return nil, fmt.Errorf("invalid ProxyJump %q: %w", s, err)
		}
		hops = append(hops, j)
	}
	return hops, nil
}

func parseJump(s string) (j host.Endpoint, err error) {
	rest, uri := strings.CutPrefix(s, "ssh://")
	at := strings.LastIndexByte(rest, '@')
	if uri {
		at = strings.IndexByte(rest, '@')
		rest = strings.TrimSuffix(rest, "/")
	}
	if at == 0 {
		return j, ErrUnsafeUser
	}
	if at > 0 {
		j.User, rest = rest[:at], rest[at+1:]
	}
	if uri && j.User != "" {
		j.User, _, _ = strings.Cut(j.User, ";")
		if j.User, err = url.QueryUnescape(j.User); err != nil {
			return j, err
		}
	}
	j.Name, j.Port, err = splitPort(rest)
	if err == nil && (j.Name == "" || uri && !isDomain(j.Name)) {
		err = ErrUnsafeHost
	}
	if uri {
		j.Name = strings.TrimSuffix(j.Name, ".")
	}
	return j, err
}

// isDomain reports whether a name can stand in a URI (misc.c:valid_domain).
func isDomain(name string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}
	return !strings.ContainsFunc(name, other) && name[0] != '.' && name[0] != '-' && !strings.Contains(name, "..")
}

// jumpCommand returns the hop as the ssh to it sees it: ssh puts the hop into a ProxyCommand, where
// tokens mean the next host and the shell removes quotes. On a command line ssh removes no quotes.
func jumpCommand(j host.Endpoint, token tokenFunc, at Source) (_ host.Endpoint, err error) {
	for _, name := range []*string{&j.User, &j.Name} {
		if *name, err = expand(*name, token, nil); err != nil {
			return j, err
		}
		if bare := unquoted(*name); bare != "" && at != FromFlag {
			*name = bare
		}
	}
	return j, checkJump(j)
}

// unquoted returns a word as a shell reads it, as far as quotes matter.
func unquoted(s string) string {
	var out strings.Builder
	for rest := s; ; {
		i := strings.IndexAny(rest, `'"`)
		if i < 0 {
			return out.String() + rest
		}
		inside, after, closed := strings.Cut(rest[i+1:], rest[i:i+1])
		if !closed {
			return s
		}
		out.WriteString(rest[:i] + inside)
		rest = after
	}
}

// checkJump refuses a hop that could be taken for an option or reach a shell.
func checkJump(j host.Endpoint) error {
	if err := CheckUser(j.User); err != nil {
		return fmt.Errorf("jump user %q: %w", j.User, err)
	}
	if err := CheckHost(j.Name); err != nil {
		return fmt.Errorf("jump host %q: %w", j.Name, err)
	}
	return nil
}

// splitPort splits "host", "host:port" and "[host]:port" (misc.c:hpdelim).
func splitPort(s string) (name string, port uint16, err error) {
	name, text, err := host.SplitPort(s)
	if err != nil || strings.Contains(name, "/") {
		return "", 0, ErrUnsafeHost
	}
	if text != "" {
		number, bad := portNumber(text)
		port, err = uint16(number), bad
	}
	return name, port, err
}
