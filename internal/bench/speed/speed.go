// Package speed reads the text that `openssl speed` prints, of 1.0.1 to 3.x, as figures with one
// name in all versions.
package speed

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/record"
)

// Machine takes the figures of one machine.
type Machine interface {
	Measure(source, name string, u record.Unit, value float64)
	Remark(text string) // about doubtful figures
}

// Reader reads the lines that it knows: a head with the version of OpenSSL, tables of thousands of
// bytes per second by block size, and tables of seconds and operations per second. With -multi the
// processes of the run name the sizes before the head, and the table has none; with -mr there are
// lines for programs, and nothing else.
type Reader struct {
	// Open returns the machine of a section of this build. Several consecutive runs of one build
	// belong to one machine.
	Open func(build string) Machine

	m       Machine
	build   string            // head of the section that is being read
	tables  bool              // rows have been read since the head
	sizes   []string          // columns of the symmetric table; nil outside of it
	columns []string          // of the asymmetric table: the operations that are counted per second
	multi   []string          // sizes that the processes of -multi named
	forked  bool              // there are such
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
	multiLine   = wildcard.Regexp(`^Forked child [0-9]+$|^Got: \+F[0-9]*:.* from [0-9]+$|^\+(?:DTP?|R[0-9]*):`)
	multiSizes  = wildcard.Regexp(`^Got: \+H((?::[0-9]+)+) from [0-9]+$`)
	plainSizes  = wildcard.Regexp(`^\+H((?::[0-9]+)+)$`)
	plainRates  = wildcard.Regexp(`^\+F:[0-9]+:([^:]{1,64})((?::[0-9]+\.[0-9]+)+)$`)
	plainKeys   = wildcard.Regexp(`^\+F([23456]):[0-9]+:([0-9]+):(?:([^:]{1,64}):)?([0-9]+\.[0-9]+):([0-9]+\.[0-9]+)$`)
	bitsRow     = wildcard.Regexp(`^(?:([0-9]+) bits? (\S+)(?: \((\S+)\))?|(\S+) +([0-9]+) bits?)$`)
)

const thousands = "The 'numbers' are in 1000s of bytes per second processed."

// Take reads a line of output, and reports whether it knows its form.
func (o *Reader) Take(line string) bool {
	line = strings.TrimSpace(line)
	if match := opensslHead().FindStringSubmatch(line); match != nil {
		o.head("OpenSSL " + match[1] + match[2])
		return true
	}
	o.forked = o.forked || strings.HasPrefix(line, "Forked child ")
	switch {
	case doingLine().MatchString(line), line == thousands && o.build != "", multiLine().MatchString(line):
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
	if match := multiSizes().FindStringSubmatch(line); match != nil {
		o.multi = strings.Split(match[1], ":")[1:]
		return true
	}
	if o.plain(line) {
		return true
	}
	if o.build != "" && len(o.columns) == 0 && len(o.sizes) == 0 {
		o.sizes = o.multi
	}
	return o.row(line)
}

// keysOf maps numbers of -mr lines to the operations that they count per second; the other figure
// of a key agreement is its time.
var keysOf = map[string]struct {
	name   string
	counts []string
}{"2": {"rsa", []string{"sign", "verify"}}, "3": {"dsa", []string{"sign", "verify"}}, "4": {"ecdsa", []string{"sign", "verify"}}, "5": {"ecdh", []string{""}}, "6": {"EdDSA", []string{"sign", "verify"}}}

// plain reads a line of -mr: sizes, bytes per second, or operations per second.
func (o *Reader) plain(line string) bool {
	if match := plainSizes().FindStringSubmatch(line); match != nil {
		o.head("")
		o.sizes = strings.Split(match[1], ":")[1:]
		o.open()
		return true
	}
	if match := plainRates().FindStringSubmatch(line); match != nil && len(o.sizes) == strings.Count(match[2], ":") {
		for i, rate := range strings.Split(match[2], ":")[1:] {
			value, _ := strconv.ParseFloat(rate, 64) // as the pattern has it
			o.measure(symmetricName(match[1])+" "+o.sizes[i], match[1]+" "+o.sizes[i], record.KBPerSecond, value/1000)
		}
		return true
	}
	match := plainKeys().FindStringSubmatch(line)
	if match == nil || (match[1] == "6") != (match[3] != "") {
		return false
	}
	o.open()
	of := keysOf[match[1]]
	name := asymmetricName(match[2] + " bits " + of.name)
	if curve := match[3]; curve != "" {
		name = asymmetricName(match[2] + " bits " + of.name + " (" + curve + ")")
	}
	for i, what := range of.counts {
		value, _ := strconv.ParseFloat(match[4+i], 64)
		figure := strings.TrimSpace(name + " " + what)
		o.measure(figure, figure, record.PerSecond, value)
	}
	return true
}

// head begins the section of another build of OpenSSL.
func (o *Reader) head(version string) {
	o.build, o.tables, o.sizes, o.columns = version, false, nil, nil
}

// open asks Open for the machine of the section, once the head of the section is complete.
func (o *Reader) open() {
	if o.tables {
		return
	}
	o.tables = true
	if m := o.Open(o.build); m != o.m {
		o.m, o.printed = m, map[string]string{}
	}
}

// operations reads the head of a table of operations: words for seconds each, then the same count
// of words for operations per second.
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

// operation names the operation of a column of seconds. Rates are shortened and in the plural, so
// their names are not used.
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

// row reads a row of thousands of bytes per second, in which 0.00 means that an algorithm was not
// built in, or one of seconds and then operations per second.
func (o *Reader) row(line string) bool {
	columns, seconds := append(slices.Clone(o.sizes), o.columns...), len(o.columns)
	name, fields, ok := split(line, seconds+len(columns))
	no := func(kind *regexp.Regexp) func(string) bool {
		return func(field string) bool { return !kind.MatchString(field) }
	}
	if !ok || len(name) > 64 || slices.ContainsFunc(fields[:seconds], no(timeField())) || slices.ContainsFunc(fields[seconds:], no(rateField())) {
		return false
	}
	if o.open(); o.forked {
		o.m.Remark("openssl speed ran several processes at once (-multi): its figures are their sums")
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

// measure takes a figure under the one name that it has in all versions. Two printed names are two
// computations: before OpenSSL 3 aes-128 cbc is plain code, and aes-128-cbc, of -evp, uses the
// instructions for AES.
func (o *Reader) measure(name, printed string, u record.Unit, value float64) {
	if value == 0 { // not built in
		return
	}
	if first, taken := o.printed[name]; taken && first != printed {
		name = printed
	}
	if _, taken := o.printed[name]; taken {
		o.m.Remark("a figure that openssl speed printed twice was taken twice")
	}
	o.printed[name] = printed
	o.m.Measure("openssl speed", name, u, value)
}
