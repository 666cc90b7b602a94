package legacylog

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/record"
)

// opensslSpeed reads the text that `openssl speed` prints at its end, of 1.0.1
// to 3.x: a head that says which OpenSSL it is, tables of thousands of bytes per
// second by block size, and tables of seconds and operations per second.
type opensslSpeed struct {
	*document
	m       *machine
	build   string            // head of the section that is being read
	tables  bool              // rows have been read since the head
	sizes   []string          // columns of the symmetric table; nil outside of it
	columns []string          // of the asymmetric table: what is counted per second
	printed map[string]string // how openssl speed spells the name of each figure
}

var (
	opensslHead = wildcard.Regexp(`^OpenSSL ([0-9]+\.[0-9]+\.[0-9]+\S* +[0-9]{1,2} [A-Z][a-z]{2} [0-9]{4})(?: .*)?$|^version: ([0-9]+\.[0-9]+\.[0-9]+\S*)$`)
	buildLine   = wildcard.Regexp(`^(?:built on|options|compiler|CPUINFO): ?\S?`)
	doingLine   = wildcard.Regexp(`^Doing .* for [0-9.]+s.*: `)
	sizesLine   = wildcard.Regexp(`^type((?:\s+[0-9]+ bytes)+)$`)
	wordsLine   = wildcard.Regexp(`^(?:[a-z]+\.?(?:/s)?\s*)+$`)
	rateField   = wildcard.Regexp(`^[0-9]+\.[0-9]+k?$`)
	timeField   = wildcard.Regexp(`^[0-9]+\.[0-9]+s$`)
	bitsRow     = wildcard.Regexp(`^(?:([0-9]+) bits? (\S+)(?: \((\S+)\))?|(\S+) +([0-9]+) bits?)$`)
)

const thousands = "The 'numbers' are in 1000s of bytes per second processed."

func (o *opensslSpeed) take(line string) bool {
	line = strings.TrimSpace(line)
	if match := opensslHead().FindStringSubmatch(line); match != nil {
		o.head("OpenSSL " + match[1] + match[2])
		return true
	}
	switch {
	case doingLine().MatchString(line), line == thousands && o.build != "":
		return true
	case o.build != "" && !o.tables && buildLine().MatchString(line):
		o.build += "\n" + line
		return true
	case o.build != "" && !o.tables && strings.HasPrefix(line, "-"): // compiler flags on a line of their own
		return true
	}
	if match := sizesLine().FindStringSubmatch(line); match != nil {
		o.open()
		o.sizes, o.columns = strings.Fields(strings.ReplaceAll(match[1], " bytes", "")), nil
		return true
	}
	if columns := operations(line); columns != nil {
		o.open()
		o.sizes, o.columns = nil, columns
		return true
	}
	return o.row(line)
}

// head begins a section. Several runs of one build follow each other without
// being another machine's.
func (o *opensslSpeed) head(version string) {
	o.build, o.tables, o.sizes, o.columns = version, false, nil, nil
}

// open finds the machine of the section, once its head is complete.
func (o *opensslSpeed) open() {
	if o.tables {
		return
	}
	o.tables = true
	if o.m != nil && o.m == o.machine() && o.m.build == o.build {
		return
	}
	o.m, o.printed = o.begin("openssl-speed"), map[string]string{}
	o.m.build = o.build
	o.m.environment.Crypto, _, _ = strings.Cut(o.build, "\n")
}

// operations reads the head of a table of operations: words for seconds each,
// then the same count of words for operations per second.
func operations(line string) []string {
	if !strings.Contains(line, "/s") || !wordsLine().MatchString(line) {
		return nil
	}
	words := strings.Fields(line)
	half := len(words) / 2
	if len(words) != 2*half {
		return nil
	}
	var columns []string
	for i, word := range words {
		_, isRate := strings.CutSuffix(word, "/s")
		if isRate != (i >= half) {
			return nil
		}
		if isRate {
			columns = append(columns, operation(words[i-half]))
		}
	}
	return columns
}

// operation names what a column of seconds counts. Rates are shortened and in
// the plural, so their names are not used.
func operation(word string) string {
	switch word {
	case "op": // the only one of a key agreement
		return ""
	case "signs":
		return "sign"
	}
	return word
}

// split divides a row into its name and its last n fields.
func split(line string, n int) (name string, fields []string, ok bool) {
	fields = strings.Fields(line)
	if n == 0 || len(fields) <= n {
		return "", nil, false
	}
	name = strings.Join(fields[:len(fields)-n], " ")
	return name, fields[len(fields)-n:], true
}

// row reads a row of thousands of bytes per second, of which 0.00 stands for an algorithm that was not built in, or
// one of seconds and then operations per second.
func (o *opensslSpeed) row(line string) bool {
	columns, seconds := append(slices.Clone(o.sizes), o.columns...), len(o.columns)
	name, fields, ok := split(line, seconds+len(columns))
	no := func(kind *regexp.Regexp) func(string) bool {
		return func(field string) bool { return !kind.MatchString(field) }
	}
	if !ok || len(name) > 64 || slices.ContainsFunc(fields[:seconds], no(timeField())) || slices.ContainsFunc(fields[seconds:], no(rateField())) {
		return false
	}
	for i, field := range fields[seconds:] {
		value, err := strconv.ParseFloat(strings.TrimSuffix(field, "k"), 64)
		if err != nil {
			return false
		}
		if seconds > 0 {
			figure := strings.TrimSpace(asymmetricName(name) + " " + columns[i])
			o.measure(figure, figure, record.PerSecond, value)
		} else {
			o.measure(symmetricName(name)+" "+columns[i], name+" "+columns[i], record.KBPerSecond, value)
		}
	}
	return true
}

// measure takes a figure under the one name that it has in all versions. What is
// printed under two names is not one computation: before OpenSSL 3 aes-128 cbc is
// plain code, and aes-128-cbc, of -evp, uses the instructions for AES.
func (o *opensslSpeed) measure(name, printed string, u record.Unit, value float64) {
	if value == 0 { // not built in
		return
	}
	if first, taken := o.printed[name]; taken && first != printed {
		name = printed
	}
	if _, taken := o.printed[name]; taken {
		o.m.remark("a figure that openssl speed printed twice was taken twice")
	}
	o.printed[name] = printed
	o.m.measure("openssl speed", name, u, value)
}
