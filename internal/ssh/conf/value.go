package conf

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/wildcard"
)

// Value is the value of one keyword, in the words of `ssh -G`, and its place.
type Value struct {
	Args   []string
	Origin Origin
}

// word returns the first word, "" for none.
func (v *Value) word() string {
	if v == nil || len(v.Args) == 0 {
		return ""
	}
	return v.Args[0]
}

// input is one line after its keyword: the arguments, and the text that they were split from for
// the keywords that take the rest of the line.
type input struct {
	args    []string
	rest    string
	env     func(string) (string, bool)
	version Version
}

// parser turns arguments into the words that ssh -G prints. No words and no error mean that the
// line leaves the keyword unset.
type parser func(in input) ([]string, error)

// spaces lists the characters that strtol(3) skips before a number.
const spaces = " \t\n\v\f\r"

var (
	errMissing = errors.New("missing argument")
	errExtra   = errors.New("extra arguments at end of line")
)

// single returns the only argument of a setting; none, and more than one, are errors.
func (in input) single() (string, error) {
	switch {
	case len(in.args) == 0 || in.args[0] == "":
		return "", errMissing
	case len(in.args) > 1:
		return "", errExtra
	}
	return in.args[0], nil
}

func parseString(in input) ([]string, error) {
	arg, err := in.single()
	return []string{arg}, err
}

// read reads the arguments of the keyword.
func (s *spec) read(in input) ([]string, error) {
	if s.parse != nil {
		return s.parse(in)
	}
	return parseChoice(in, s.choices)
}

func parseChoice(in input, table []choice) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	for _, s := range table {
		if strings.EqualFold(arg, s.word) {
			return []string{s.shown}, nil
		}
	}
	return nil, fmt.Errorf("unsupported option %q", arg)
}

// parseInt takes 0 to 2^31-1 (misc.c:atoi_err).
func parseInt(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	n, ok := number(arg, math.MaxInt32)
	if !ok {
		return nil, fmt.Errorf("integer value %q invalid", arg)
	}
	return []string{strconv.Itoa(n)}, nil
}

// parsePort takes a number from 1 to 65535 or a service name.
func parsePort(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	port, err := portNumber(arg)
	return []string{strconv.Itoa(port)}, err
}

func portNumber(s string) (int, error) {
	port, ok := portOrZero(s)
	if !ok || port == 0 {
		return 0, fmt.Errorf("bad port %q", s)
	}
	return port, nil
}

// portOrZero reads 0 to 65535 or a service name (misc.c:a2port).
func portOrZero(s string) (port int, ok bool) {
	if n, ok := number(s, math.MaxUint16); ok || s == "" {
		return n, ok
	}
	port, err := net.LookupPort("tcp", s)
	return port, err == nil
}

// number reads 0 to most (strtonum(3)).
func number(s string, most int64) (n int, ok bool) {
	wide, err := strconv.ParseInt(strings.TrimLeft(s, spaces), 10, 64)
	return int(wide), err == nil && wide >= 0 && wide <= most
}

// parseCommand takes the rest of the line unchanged, comments included.
func parseCommand(in input) ([]string, error) {
	return []string{strings.TrimLeft(in.rest, blanks+"=")}, nil
}

// parseRevoked reads a file, or since release 10.3 a list of them.
func parseRevoked(in input) ([]string, error) {
	if !in.version.AtLeast(manyRevoked) {
		return parseString(in)
	}
	if len(in.args) == 0 {
		return nil, errMissing
	}
	return in.args, checkList(in.args)
}

// parseHostFiles reads a list of known_hosts files.
func parseHostFiles(in input) ([]string, error) {
	if err := checkList(in.args); err != nil {
		return nil, err
	}
	if len(in.args) > maxHostFiles {
		return nil, fmt.Errorf("more than %d files", maxHostFiles)
	}
	return in.args, nil
}

// checkList refuses empty arguments, and "none" together with others.
func checkList(args []string) error {
	for _, arg := range args {
		if arg == "" {
			return errors.New("empty argument")
		}
		if strings.EqualFold(arg, "none") && len(args) > 1 {
			return errors.New(`"none" must appear alone`)
		}
	}
	return nil
}

// parseDomains reads suffixes; ssh removes a final dot (misc.c:valid_domain).
func parseDomains(in input) ([]string, error) {
	domains := make([]string, len(in.args))
	for i, arg := range in.args {
		domains[i] = strings.TrimSuffix(wildcard.Lower(arg), ".")
	}
	return domains, nil
}

// parseCNAMEs reads rules "sources:targets", "*" for every name, or "none".
func parseCNAMEs(in input) ([]string, error) {
	rules := make([]string, len(in.args))
	for i, arg := range in.args {
		if rules[i] = wildcard.Lower(arg); arg == "*" {
			rules[i] = "*:*"
		}
	}
	return rules, nil
}

func parseSendEnv(in input) ([]string, error) {
	for _, arg := range in.args {
		if arg == "" || strings.Contains(arg, "=") {
			return nil, fmt.Errorf("invalid environment name %q", arg)
		}
	}
	return in.args, nil
}

// parseSetEnv keeps the first of several settings of one variable.
func parseSetEnv(in input) ([]string, error) {
	var settings []string
	for _, arg := range in.args {
		name, _, found := strings.Cut(arg, "=")
		if !found {
			return nil, fmt.Errorf("invalid SetEnv %q", arg)
		}
		same := func(s string) bool { return strings.HasPrefix(s, name+"=") }
		if !slices.ContainsFunc(settings, same) {
			settings = append(settings, arg)
		}
	}
	return settings, nil
}

// parseForwardAgent reads yes, no, or the path of an agent socket, which is returned after the word
// "path".
func parseForwardAgent(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	if flag, err := parseChoice(in, yesNo); err == nil {
		return flag, nil
	}
	return []string{"path", arg}, checkAgentPath(arg, in.env)
}

func parseIdentityAgent(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	return []string{arg}, checkAgentPath(arg, in.env)
}

// checkAgentPath checks the two forms of environment variables in a path.
func checkAgentPath(path string, env func(string) (string, bool)) error {
	if _, err := expand(path, nil, env); err != nil {
		return err
	}
	name, legacy := strings.CutPrefix(path, "$")
	if legacy && !strings.HasPrefix(name, "{") && !validEnvName(name) {
		return fmt.Errorf("invalid environment name %s", path)
	}
	return nil
}

func validEnvName(name string) bool {
	for i := range len(name) {
		if c := wildcard.Lower(name[i : i+1])[0]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// parseTime reads time formats such as 90, 5m or 1h30m (sshd_config(5) TIME FORMATS). "none" leaves
// the keyword unset, as in ssh.
func parseTime(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil || arg == "none" {
		return nil, err
	}
	secs, ok := seconds(arg, in.version)
	if !ok {
		return nil, fmt.Errorf("invalid time value %q", arg)
	}
	return []string{strconv.Itoa(secs)}, nil
}

var timeUnits = map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

// timeTerm matches the blanks that strtol(3) skips, a number, and its unit; without one it is the
// last.
var timeTerm = wildcard.Regexp(`^([ \t\n\v\f\r]*\+?)([0-9]*\.[0-9]+|[0-9]+)([smhdwSMHDW]|$)`)

// seconds adds up numbers with units (misc.c:convtime). Since release 10.3 seconds may have
// decimals, which are dropped, occur once, and nothing is skipped.
func seconds(s string, v Version) (total int, ok bool) {
	sum, once, anew := 0.0, false, v.AtLeast(decimalTimes)
	for ; s != ""; ok = true {
		m := timeTerm().FindStringSubmatch(s)
		if m == nil {
			return 0, false
		}
		unit, decimals := timeUnits[wildcard.Lower(m[3])], strings.Contains(m[2], ".")
		switch {
		case !anew && decimals, anew && (m[1] != "" || unit == 1 && once || unit > 1 && decimals):
			return 0, false
		}
		once = once || unit == 1
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return 0, false
		}
		sum, s = sum+n*unit, s[len(m[0]):]
	}
	return int(sum), ok && sum <= math.MaxInt32
}
