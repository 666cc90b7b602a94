package conf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var errForward = errors.New("bad forwarding specification")

// endpoint is one end of a forwarding.
type endpoint struct {
	path string // of a socket; or
	host *string
	port int
}

// String returns the end as ssh -G prints it.
func (e endpoint) String() string {
	switch {
	case e.path != "":
		return e.path
	case e.host == nil:
		return strconv.Itoa(e.port)
	}
	return fmt.Sprintf("[%s]:%d", *e.host, e.port)
}

func parseLocalForward(in input) ([]string, error) {
	if len(in.args) < 2 || in.args[0] == "" {
		return nil, errMissing
	}
	if len(in.args) > 2 {
		return nil, errExtra
	}
	return in.forward(in.args[0]+":"+in.args[1], false, false)
}

// parseRemoteForward also takes one argument: the other end is then a proxy.
func parseRemoteForward(in input) ([]string, error) {
	switch {
	case len(in.args) == 0 || in.args[0] == "":
		return nil, errMissing
	case len(in.args) == 1:
		return in.forward(in.args[0], true, true)
	case len(in.args) == 2:
		return in.forward(in.args[0]+":"+in.args[1], false, true)
	}
	return nil, errExtra
}

func parseDynamicForward(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	words, err := in.forward(arg, true, false)
	if err != nil {
		return nil, err
	}
	return words[:1], nil
}

// forward reads both ends of a forwarding (readconf.c:parse_forward).
func (in input) forward(text string, dynamic, remote bool) ([]string, error) {
	text, err := expand(text, nil, in.env)
	if err != nil {
		return nil, err
	}
	fields, ok := forwardFields(strings.TrimLeft(text, spaces))
	if !ok {
		return nil, errForward
	}
	listen, connect := forwardEnds(fields)
	switch {
	case dynamic && len(fields) > 2,
		!dynamic && len(fields) < 3 && listen.path == "" && connect.path == "",
		!dynamic && connect.path == "" && connect.port <= 0,
		listen.path == "" && (listen.port < 0 || listen.port == 0 && !remote):
		return nil, errForward
	}
	return []string{listen.String(), connect.String()}, nil
}

// forwardEnds gives the fields their meaning by their number and by which of
// them are paths.
func forwardEnds(f []forwardField) (listen, connect endpoint) {
	socks := hostPort(forwardField{text: "socks"}, forwardField{text: "0"})
	switch {
	case len(f) == 1:
		return f[0].end(), socks
	case len(f) == 2 && f[1].isPath:
		return f[0].end(), f[1].end()
	case len(f) == 2:
		return hostPort(f[0], f[1]), socks
	case len(f) == 3 && !f[0].isPath && f[2].isPath:
		return hostPort(f[0], f[1]), f[2].end()
	case len(f) == 3:
		return f[0].end(), hostPort(f[1], f[2])
	}
	return hostPort(f[0], f[1]), hostPort(f[2], f[3])
}

func hostPort(host, port forwardField) endpoint {
	e := port.end()
	return endpoint{host: &host.text, port: e.port}
}

// forwardField is what stands between two colons.
type forwardField struct {
	text   string
	isPath bool
}

// end is a path or a port; -1 is a bad port.
func (f forwardField) end() endpoint {
	if f.isPath {
		return endpoint{path: f.text}
	}
	port, ok := portOrZero(f.text)
	if !ok {
		port = -1
	}
	return endpoint{port: port}
}

// Most fields of a forwarding.
const maxForwardFields = 4

// forwardFields cuts a specification at its colons: brackets keep those within
// them, and so does a backslash before one (readconf.c:parse_fwd_field).
func forwardFields(s string) (fields []forwardField, ok bool) {
	for s != "" && len(fields) < maxForwardFields {
		var text string
		if inside, isBracketed := strings.CutPrefix(s, "["); isBracketed {
			text, s, ok = strings.Cut(inside, "]")
			if !ok || s != "" && s[0] != ':' {
				return nil, false
			}
			s = strings.TrimPrefix(s, ":")
		} else if text, s, ok = cutField(s); !ok {
			return nil, false
		}
		fields = append(fields, forwardField{text, strings.Contains(text, "/")})
	}
	return fields, s == "" && len(fields) > 0
}

func cutField(s string) (field, rest string, ok bool) {
	var text []byte
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ':':
			return string(text), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		text = append(text, s[i])
	}
	return string(text), "", true
}
