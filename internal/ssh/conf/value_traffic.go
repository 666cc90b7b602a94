package conf

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// service is a name of IPQoS and the byte that it stands for.
type service struct {
	name string
	tos  int
}

// services are the names of RFC 2474 code points; "none" is the system's choice.
var services = []service{
	{"none", math.MaxInt32}, {"af11", 0x28}, {"af12", 0x30}, {"af13", 0x38}, {"af21", 0x48}, {"af22", 0x50}, {"af23", 0x58},
	{"af31", 0x68}, {"af32", 0x70}, {"af33", 0x78}, {"af41", 0x88}, {"af42", 0x90}, {"af43", 0x98},
	{"cs0", 0x00}, {"cs1", 0x20}, {"cs2", 0x40}, {"cs3", 0x60}, {"cs4", 0x80}, {"cs5", 0xa0}, {"cs6", 0xc0}, {"cs7", 0xe0},
	{"ef", 0xb8}, {"le", 0x04},
}

// Names that older and newer releases have.
var (
	serviceTypes = []service{{"lowdelay", 0x10}, {"throughput", 0x08}, {"reliability", 0x04}}
	voiceAdmit   = service{"va", 0xb0}
)

// parseIPQoS reads one class for all traffic, or one for interactive and one for
// other sessions (misc.c:parse_ipqos).
func parseIPQoS(in input) ([]string, error) {
	if len(in.args) == 0 {
		return nil, errMissing
	}
	if len(in.args) > 2 {
		return nil, errExtra
	}
	var words []string
	for _, arg := range in.args {
		word, ok := serviceName(arg, in.version)
		if !ok {
			return nil, fmt.Errorf("bad IPQoS value %q", arg)
		}
		words = append(words, word)
	}
	return []string{words[0], words[len(words)-1]}, nil
}

func serviceName(arg string, v Version) (name string, ok bool) {
	known := services
	if v.AtLeast(voiceAdmission) {
		known = append(slices.Clip(known), voiceAdmit)
	}
	if !v.AtLeast(noServiceTypes) {
		known = append(slices.Clip(known), serviceTypes...)
	} else if slices.ContainsFunc(serviceTypes, func(s service) bool { return strings.EqualFold(s.name, arg) }) {
		return "none", true
	}
	i := slices.IndexFunc(known, func(s service) bool { return strings.EqualFold(s.name, arg) })
	tos := 0
	switch {
	case i >= 0:
		tos = known[i].tos
	case v.AtLeast(noServiceTypes):
		tos, ok = number(arg, math.MaxUint8)
	default:
		tos, ok = anyBase(arg, math.MaxUint8)
	}
	if i < 0 && !ok {
		return "", false
	}
	if i := slices.IndexFunc(known, func(s service) bool { return s.tos == tos }); i >= 0 {
		return known[i].name, true
	}
	return fmt.Sprintf("0x%02x", tos), true
}

// anyBase is number for what strtol(3) reads with base 0: 0x is hexadecimal, 0 octal.
func anyBase(s string, most int64) (n int, ok bool) {
	s = strings.TrimLeft(s, spaces)
	digits := strings.TrimLeft(s, "+-")
	sign, base := s[:len(s)-len(digits)], 10
	if hex, found := strings.CutPrefix(strings.ToLower(digits), "0x"); found {
		digits, base = hex, 16
	} else if strings.HasPrefix(digits, "0") {
		base = 8
	}
	wide, err := strconv.ParseInt(sign+digits, base, 64)
	return int(wide), err == nil && wide >= 0 && wide <= most
}

// parseTunnelDevice reads the number of a device here and, behind a colon, one
// there (misc.c:a2tun).
func parseTunnelDevice(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	const most = math.MaxInt32 - 2
	here, there, found := strings.Cut(arg, ":")
	if !found {
		there = "any"
	}
	ends := []string{here, there}
	for i, end := range ends {
		n, ok := number(end, most)
		switch {
		case strings.EqualFold(end, "any"):
			ends[i] = "any"
		case !ok:
			return nil, errors.New("bad tun device")
		default:
			ends[i] = strconv.Itoa(n)
		}
	}
	return []string{strings.Join(ends, ":")}, nil
}

// parseMask reads an octal number; what follows it is ignored.
func parseMask(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	digits := strings.TrimPrefix(strings.TrimLeft(arg, spaces), "+")
	digits = digits[:len(digits)-len(strings.TrimLeft(digits, "01234567"))]
	mask, err := strconv.ParseUint(digits, 8, 9)
	if err != nil {
		return nil, fmt.Errorf("bad mask %q", arg)
	}
	return []string{fmt.Sprintf("0%o", mask)}, nil
}

// parsePermitOpen reads hosts with a port or "*" each, or "any" or "none" alone.
func parsePermitOpen(in input) ([]string, error) {
	if len(in.args) == 0 {
		return nil, errMissing
	}
	for _, arg := range in.args {
		if strings.EqualFold(arg, "none") || strings.EqualFold(arg, "any") {
			if len(in.args) > 1 {
				return nil, fmt.Errorf("%q must appear alone", arg)
			}
			continue
		}
		if port := behindHost(arg); port != "*" {
			if _, err := portNumber(port); err != nil {
				return nil, fmt.Errorf("%q: %w", arg, err)
			}
		}
	}
	return in.args, nil
}

// behindHost is what follows a host and a colon or slash (misc.c:hpdelim).
func behindHost(s string) string {
	if strings.HasPrefix(s, "[") {
		_, rest, _ := strings.Cut(s, "]")
		if s = rest; strings.IndexAny(s, ":/") != 0 {
			return ""
		}
	}
	if i := strings.IndexAny(s, ":/"); i >= 0 {
		return s[i+1:]
	}
	return ""
}

// parseLogVerbose keeps the first of several words, as ssh does.
func parseLogVerbose(in input) ([]string, error) {
	return in.args[:min(1, len(in.args))], checkList(in.args)
}

// parseLogLevel: no messages at all is QUIET, which some vendors call SILENT.
func parseLogLevel(in input) ([]string, error) {
	words, err := parseChoice(in, logLevels)
	if err != nil || words[0] != "QUIET" {
		return words, err
	}
	if in.quiet == "QUIET" && strings.EqualFold(in.args[0], "silent") {
		return nil, fmt.Errorf("unsupported log level %q", in.args[0])
	}
	return []string{cmp.Or(in.quiet, "QUIET")}, nil
}

// How many milliseconds apart keystrokes are sent where nothing else is said
// (misc.h SSH_KEYSTROKE_DEFAULT_INTERVAL_MS), and at most.
const (
	usualKeystrokes   = 20
	slowestKeystrokes = 1000
)

// parseObscure reads yes, no, or "interval:" and milliseconds.
func parseObscure(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	switch arg {
	case "yes", "true":
		return []string{"yes"}, nil
	case "no", "false":
		return []string{"no"}, nil
	}
	text, found := strings.CutPrefix(arg, "interval:")
	n, ok := number(text, slowestKeystrokes)
	switch {
	case !found || !ok || n == 0:
		return nil, fmt.Errorf("unsupported argument %q", arg)
	case n == usualKeystrokes:
		return []string{"yes"}, nil
	}
	return []string{strconv.Itoa(n)}, nil
}

// parseChannelTimeout reads "type=time" pairs, or "none" alone.
func parseChannelTimeout(in input) ([]string, error) {
	if len(in.args) == 0 {
		return nil, errMissing
	}
	if len(in.args) == 1 && strings.EqualFold(in.args[0], "none") {
		return in.args, nil
	}
	for _, arg := range in.args {
		kind, time, _ := strings.Cut(arg, "=")
		if _, ok := seconds(time, in.version); kind == "" || !ok {
			return nil, fmt.Errorf("invalid channel timeout %q", arg)
		}
	}
	return in.args, nil
}
