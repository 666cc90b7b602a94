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

// Value is what one keyword was set to, in the words of `ssh -G`, and where.
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

// input is one line after its keyword: the arguments, and the text that they
// were split from for the keywords that take the rest of the line.
type input struct {
	args    []string
	rest    string
	env     func(string) (string, bool)
	version Version
	quiet   string // how the installed ssh calls the LogLevel that says nothing, "" = not known
}

// parser turns arguments into the words that ssh -G prints. No words and no
// error mean that the line leaves the keyword unset.
type parser func(in input) ([]string, error)

// spaces are what strtol(3) skips before a number.
const spaces = " \t\n\v\f\r"

var (
	errMissing = errors.New("missing argument")
	errExtra   = errors.New("extra arguments at end of line")
)

// single returns the only argument.
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

// parseCommand takes the rest of the line as it stands, comments included.
func parseCommand(in input) ([]string, error) {
	return []string{strings.TrimLeft(in.rest, blanks+"=")}, nil
}

// parseAddendum takes the rest of the line as it stands; "none" is nothing.
func parseAddendum(in input) ([]string, error) {
	if in.rest == "" {
		return nil, errMissing
	}
	words, err := parseCommand(in)
	if strings.EqualFold(words[0], "none") {
		words = []string{""}
	}
	return words, err
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

// checkList refuses empty arguments, and "none" in company.
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

func parseDomains(in input) ([]string, error) {
	if err := checkList(in.args); err != nil {
		return nil, err
	}
	domains := make([]string, len(in.args))
	for i, arg := range in.args {
		domain, err := cleanDomain(arg)
		if err != nil {
			return nil, err
		}
		domains[i] = domain
	}
	return domains, nil
}

// cleanDomain checks a domain suffix and writes it in lower case without a
// final dot (misc.c:valid_domain).
func cleanDomain(s string) (string, error) {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789_"
	s = wildcard.Lower(s)
	if s == "" || strings.IndexByte(letters, s[0]) < 0 {
		return "", fmt.Errorf("domain name %q starts with an invalid character", s)
	}
	stranger := func(r rune) bool { return !strings.ContainsRune(letters+"-.", r) }
	if strings.ContainsFunc(s, stranger) || strings.Contains(s, "..") {
		return "", fmt.Errorf("domain name %q contains invalid characters", s)
	}
	return strings.TrimSuffix(s, "."), nil
}

// parseCNAMEs reads rules "sources:targets", "*" for every name, or "none".
func parseCNAMEs(in input) ([]string, error) {
	if err := checkList(in.args); err != nil {
		return nil, err
	}
	rules := make([]string, len(in.args))
	for i, arg := range in.args {
		source, target, found := strings.Cut(arg, ":")
		switch {
		case strings.EqualFold(arg, "none"):
			rules[i] = "none"
		case arg == "*":
			rules[i] = "*:*"
		case !found || target == "":
			return nil, fmt.Errorf("invalid permitted CNAME %q", arg)
		default:
			rules[i] = wildcard.Lower(source + ":" + target)
		}
	}
	return rules, nil
}

// parseRekey reads a size and, optionally, a time; see rekeyInterval.
func parseRekey(in input) ([]string, error) {
	if len(in.args) == 0 || in.args[0] == "" {
		return nil, errMissing
	}
	size, err := rekeySize(in.args[0])
	if err != nil {
		return nil, err
	}
	words := []string{size}
	if len(in.args) == 1 || in.args[1] == "none" && len(in.args) == 2 {
		return words, nil
	}
	in.args = in.args[1:]
	interval, err := parseTime(in)
	return append(words, interval...), err
}

// Smallest RekeyLimit that ssh takes.
const minRekeyBytes = 16

// rekeySize reads a number of bytes such as 500M or 1.5g. What follows the
// suffix is ignored unless it is a letter or digit (fmt_scaled.c:scan_scaled).
func rekeySize(s string) (string, error) {
	if s == "default" {
		return "0", nil
	}
	const suffixes = "bkmgtpe"
	s = strings.TrimPrefix(strings.TrimLeft(s, spaces), "+")
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	shift := 0
	if end >= 0 {
		unit := strings.IndexByte(suffixes, wildcard.Lower(s[end : end+1])[0])
		if unit < 0 || end+1 < len(s) && validEnvName(strings.ReplaceAll(s[end+1:end+2], "_", "-")) {
			return "", fmt.Errorf("bad number %q", s)
		}
		s, shift = s[:end], 10*unit
	}
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt("0"+whole, 10, 64)
	if err != nil || n > math.MaxInt64>>shift || s == "" || strings.Contains(fraction, ".") {
		return "", fmt.Errorf("bad number %q", s)
	}
	if n = n<<shift + fractionOf(fraction, shift); n != 0 && n < minRekeyBytes {
		return "", errors.New("RekeyLimit too small")
	}
	return strconv.FormatInt(n, 10), nil
}

// fractionOf scales the digits behind a decimal point, rounded down.
func fractionOf(digits string, shift int) int64 {
	if digits == "" {
		return 0
	}
	f, err := strconv.ParseFloat("0."+digits, 64)
	if err != nil {
		return 0
	}
	return int64(math.Ldexp(f, shift))
}

func parseEscape(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	control := len(arg) == 2 && arg[0] == '^' && arg[1] >= 64 && arg[1] < 128
	if arg != "none" && len(arg) != 1 && !control {
		return nil, errors.New("bad escape character")
	}
	if control { // as ssh -G writes it
		return []string{`\^` + string(rune(arg[1]&31|64))}, nil
	}
	return []string{arg}, nil
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
