// Package host is a machine as the user named it, with a user and a port where they were given. It
// parses and checks names; it resolves nothing (see package conf), dials nothing and reads no files
// (see package hostset).
package host

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Host is one machine as the user named it. The zero value of a field means "not given", so that
// ssh_config or a default may decide. Hosts are comparable and may be map keys.
type Host struct {
	Name string // name, alias or address without brackets; never empty after Parse
	User string // login name, "" when not given
	Port uint16 // TCP port 1-65535, 0 when not given
	// Address is the name or address to connect to, if an inventory knows a better one than Name;
	// "" means Name. ssh_config is asked about Address then.
	Address string
	// Known: the user belongs to the address in an inventory, so that the name alone identifies
	// both.
	Known bool
	// Settings of an inventory for this host, such as ProxyJump=gate, one a line as for ssh's -o.
	// The user's flags win over them.
	Settings string
	Label    string // section of the hosts file it stands in (`%label`), "" without one
	Origin   string // where it was named, for messages: "-w", "hosts.txt:12"
}

// Endpoint is the part of a Host that decides where a connection goes: hosts with equal endpoints
// are the same machine, whatever file named them.
type Endpoint struct {
	Name    string // as Host.Name
	User    string // as Host.User
	Port    uint16 // as Host.Port
	Address string // as Host.Address
	// Settings as Host.Settings.
	Settings string
}

// Endpoint returns the host without its label and origin.
func (h Host) Endpoint() Endpoint {
	return Endpoint{Name: h.Name, User: h.User, Port: h.Port, Address: h.Address, Settings: h.Settings}
}

// Destination returns the host name to pass to ssh.
func (h Host) Destination() string { return cmp.Or(h.Address, h.Name) }

// Asked returns the endpoint to look up in ssh_config.
func (h Host) Asked() Endpoint {
	return Endpoint{Name: h.Destination(), User: h.User, Port: h.Port, Settings: h.Settings}
}

// String names the target for people: "name", "user@name", "user@name:22", "[::1]:22". A name with
// its own address stands for that address and its port.
func (t Endpoint) String() string {
	if t.Address != "" {
		t.Port = 0
	}
	return t.text(t.Name)
}

func (t Endpoint) text(name string) string {
	if t.User != "" {
		return t.User + "@" + Endpoint{Port: t.Port}.text(name)
	}
	if t.Port == 0 {
		return name
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	return name + ":" + strconv.Itoa(int(t.Port))
}

// String returns the text of the host's target, without the user if the name implies it.
func (h Host) String() string {
	if h.Known {
		h.User = ""
	}
	return h.Endpoint().String()
}

// Names returns the hosts as they are typed.
func Names(hosts []Host) []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.String()
	}
	return names
}

// Exact returns the shortest text that Parse reads back to the same target: String, with the
// address if there is one: "user@name=192.0.2.1:22", "name=user@192.0.2.1".
func (h Host) Exact() string {
	if h.Address == "" {
		return h.String()
	}
	before, at := "", Endpoint{User: h.User, Port: h.Port}
	if !h.Known && h.User != "" {
		before, at.User = h.User+"@", ""
	}
	return before + h.Name + "=" + at.text(h.Address)
}

// Exacts returns the hosts as Exact names them.
func Exacts(hosts []Host) []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Exact()
	}
	return names
}

// Loopback reports whether a name or an address is that of this machine for itself.
func Loopback(name string) bool {
	ip, _ := netip.ParseAddr(name)
	return name == "localhost" || ip.IsLoopback()
}

// ParseError reports which text is not a host, and why.
type ParseError struct {
	Text   string // what was given
	Reason string // lower case, without the text
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("host %q: %s", e.Text, e.Reason)
}

// Parse reads one host: `name`, `user@name`, `user@name:port`, `ssh://user@name:port` (no IPv6
// address), `[::1]:22`, or a bare IPv6 address without port. In name=address the address is where
// the host called name is reached, as in name=user@address. As in ssh(1), the last @ ends the user.
// Errors are *ParseError.
func Parse(text string) (Host, error) {
	h, err := parse(text)
	if err == nil && strings.Contains(h.User, "=") {
		err = errors.New("a user must not contain '=', which stands between a name and its address; -l takes one")
	}
	if err != nil {
		return Host{}, &ParseError{Text: text, Reason: err.Error()}
	}
	return h, nil
}

func parse(text string) (Host, error) {
	if rest, ok := cutScheme(text); ok {
		return parseURI(rest)
	}
	plain := func(s string) (string, error) { return s, nil }
	if name, rest, apart := strings.Cut(text, "="); apart && CheckName(name) == nil && strings.Contains(rest, "@") && !strings.Contains(rest, "=") {
		h, err := parseAddress(rest, plain)
		h.Name, h.Address, h.Known = name, cmp.Or(h.Address, h.Name), true
		return h, err
	}
	return parseAddress(text, plain)
}

// cutScheme removes a leading ssh://, in any case (RFC 3986 section 3.1), and reports whether there
// was one.
func cutScheme(text string) (string, bool) {
	const scheme = "ssh://"
	if len(text) < len(scheme) || !strings.EqualFold(text[:len(scheme)], scheme) {
		return text, false
	}
	return text[len(scheme):], true
}

// parseURI reads the text after ssh://. As with ssh(1) the user may be percent-encoded, a final dot
// of the name is dropped, and IPv6 addresses are refused (misc.c, valid_domain). A path is refused,
// since it would be ignored silently.
func parseURI(rest string) (Host, error) {
	rest = strings.TrimSuffix(rest, "/")
	if strings.Contains(rest, "/") {
		return Host{}, errors.New("a path has no meaning here; give ssh://user@host:port")
	}
	if strings.Count(rest, "@") > 1 {
		return Host{}, errors.New("an @ in the user of a URI is written %40")
	}
	h, err := parseAddress(rest, url.PathUnescape)
	if err == nil && strings.Contains(h.Name, ":") {
		return Host{}, errors.New("ssh takes no IPv6 address in a URI; write user@[address]:port")
	}
	if name := strings.TrimSuffix(h.Name, "."); name != "" && h.Address == "" {
		h.Name = name
	}
	return h, err
}

// parseAddress reads [user@]name[:port]; decode turns the written user into the real one.
func parseAddress(text string, decode func(string) (string, error)) (Host, error) {
	var h Host
	addr := text
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		user, err := decode(text[:i])
		if err != nil {
			return h, fmt.Errorf("user: %w", err)
		}
		if h.User, addr = user, text[i+1:]; h.User == "" {
			return h, errors.New("empty user before @")
		}
	}
	name, address, apart := strings.Cut(addr, "=")
	if !apart {
		address = addr
	}
	var err error
	if address, h.Port, err = portOf(address); err != nil {
		return Host{}, err
	}
	if h.Name = address; apart {
		h.Name, h.Address = name, address
		if address == "" {
			return Host{}, errors.New("empty address after =")
		}
	}
	return h, h.Check()
}

// portOf separates the port, if there is one. Two colons without brackets make an IPv6 address,
// which then has no port.
func portOf(addr string) (string, uint16, error) {
	name, port, err := SplitPort(addr)
	if err == nil && strings.Contains(port, ":") {
		return addr, 0, nil
	}
	if err != nil || port == "" && !strings.HasSuffix(addr, ":") {
		return name, 0, err
	}
	n, err := ParsePort(port)
	return name, n, err
}

// SplitPort splits name, name:port, [name] and [name]:port. The port is the text after the first
// colon outside of brackets, "" where there is none.
func SplitPort(addr string) (name, port string, err error) {
	if !strings.HasPrefix(addr, "[") {
		name, port, _ = strings.Cut(addr, ":")
		return name, port, nil
	}
	name, rest, closed := strings.Cut(addr[1:], "]")
	if !closed {
		return "", "", errors.New("[ without ]")
	}
	port, found := strings.CutPrefix(rest, ":")
	if !found && rest != "" {
		return "", "", fmt.Errorf("unexpected %q after ]", rest)
	}
	return name, port, nil
}

// ParsePort reads a TCP port: decimal digits only, 1-65535.
func ParsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '+' {
		return 0, fmt.Errorf("port %q is not a number from 1 to 65535", s)
	}
	return uint16(n), nil
}
