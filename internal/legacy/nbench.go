package legacy

import (
	"strconv"
	"strings"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/record"
)

// nbench reads the text of nbench (BYTEmark 2 for Unix): ten tests in iterations per second, and
// its description of the machine.
type nbench struct {
	*document
	m     *machine
	linux bool // below the line that begins the newer indexes
}

var (
	nbenchHead  = wildcard.Regexp(`^BYTEmark\* Native Mode Benchmark ver\. 2\b`)
	nbenchFrame = wildcard.Regexp(`^(?:Index-split by|Linux/Unix\* port by|TEST +: Iterations/sec|: +: Pentium 90|=+ORIGINAL BYTEMARK RESULTS=+$|Baseline \(|\* Trademarks)`)
	nbenchTest  = wildcard.Regexp(`^([A-Z][A-Z ]+[A-Z])\s*:\s*([0-9.e+]+)\s*:\s*[0-9.]+\s*:\s*[0-9.]+$`)
	nbenchIndex = wildcard.Regexp(`^((?:MEMORY|INTEGER|FLOATING-POINT) INDEX)\s*:\s*([0-9.]+)$`)
	nbenchFact  = wildcard.Regexp(`^(CPU|L2 Cache|OS|C compiler|libc)\s*:\s*(.*)$`)
)

func (n *nbench) Take(line string) bool {
	line = strings.TrimSpace(line)
	if nbenchHead().MatchString(line) {
		n.m, n.linux = n.begin("nbench"), false
		return true
	}
	if n.m == nil {
		return false
	}
	if strings.Trim(line, "=") == "LINUX DATA BELOW" {
		n.linux = true
		return true
	}
	if match := nbenchTest().FindStringSubmatch(line); match != nil {
		return n.figure(match[1], match[2], record.PerSecond)
	}
	if match := nbenchIndex().FindStringSubmatch(line); match != nil {
		name := match[1] + " (original)"
		if n.linux {
			name = match[1] + " (Linux)"
		}
		return n.figure(name, match[2], record.Index)
	}
	if match := nbenchFact().FindStringSubmatch(line); match != nil {
		n.fact(match[1], strings.TrimSpace(match[2]))
		return true
	}
	return nbenchFrame().MatchString(line)
}

func (n *nbench) figure(name, text string, u record.Unit) bool {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false
	}
	n.m.Measure("nbench", name, u, value)
	return true
}

// coresOf matches nbench's count of processors: "4 CPU ARMv7 Processor".
var coresOf = wildcard.Regexp(`^([0-9]{1,4}) CPU (.*)$`)

func (n *nbench) fact(name, value string) {
	e := &n.m.environment
	switch name {
	case "CPU":
		e.CPU, e.Cores = value, 1
		if match := coresOf().FindStringSubmatch(value); match != nil {
			e.CPU = match[2]
			e.Cores, _ = strconv.Atoi(match[1])
		}
	case "OS":
		system, kernel, _ := strings.Cut(value, " ")
		e.OS, e.Kernel = strings.ToLower(system), kernel
	}
}
