package legacy

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/record"
)

// scp reads sessions with scp(1): command lines, which name the cipher, and the last state of the
// progress line. Loops that print the cipher's name on a line of its own before scp are understood,
// too, and so is `dd` as a control of the disk.
type scp struct {
	*document
	cipher    string // that the next progress line belongs to; "" if none was named
	direction record.Direction
	dd        string // the last dd command
}

var (
	progressLine = wildcard.Regexp(`^\S.*?\s+([0-9]{1,3})%\s+([0-9.]+)\s*([KMGT]?B)\s+([0-9.]+)\s*([KMGT]?B)/s\s+\S`)
	commandLine  = wildcard.Regexp(`^(?:.{0,64}[#$%>]\s+)?(?:time\s+)?scp\s+(.*:.*)$`)
	ddCommand    = wildcard.Regexp(`^(?:.{0,64}[#$%>]\s+)?(?:sudo\s+)?dd\s+(if=\S+.*)$`)
	ddCount      = wildcard.Regexp(`^[0-9]+\+[0-9]+ records (?:in|out)$`)
)

// oldNames are the names of protocol 1 that -c took for ciphers of protocol 2 as well (OpenSSH 7.5
// and earlier, ssh.c).
var oldNames = map[string]string{"3des": "3des-cbc", "blowfish": "blowfish-cbc"}

func (s *scp) Take(line string) bool {
	if i := strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r'); i >= 0 {
		line = line[i+1:] // the last state of a line that was drawn over
	}
	line = strings.TrimSpace(line)
	if match := commandLine().FindStringSubmatch(line); match != nil {
		return s.command(strings.Fields(match[1]))
	}
	if match := progressLine().FindStringSubmatch(line); match != nil {
		return s.progress(match)
	}
	if _, ok := alg.Lookup(alg.Cipher, line); ok {
		s.cipher, s.direction = line, ""
		s.within("scp")
		return true
	}
	return s.disk(line)
}

// command reads the arguments of scp: the cipher, and which end is remote.
func (s *scp) command(args []string) bool {
	cipher := ""
	for i, arg := range args {
		name, glued := strings.CutPrefix(arg, "-c")
		if !glued {
			continue
		}
		if name == "" && i+1 < len(args) {
			name = args[i+1]
		}
		if !validName(name) {
			return false
		}
		if cipher = name; oldNames[name] != "" {
			cipher = oldNames[name]
		}
	}
	s.cipher, s.direction = cipher, record.Download
	if strings.Contains(args[len(args)-1], ":") {
		s.direction = record.Upload
	}
	s.within("scp")
	return true
}

// scale of the units of scp's progress meter (progressmeter.c): powers of 1024.
var scale = map[string]float64{"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}

// progress turns a progress line into a run. Its rate has one digit after the point, whose half is
// the doubt of the result.
func (s *scp) progress(match []string) bool {
	amount, err := strconv.ParseFloat(match[2], 64)
	rate, err2 := strconv.ParseFloat(match[4], 64)
	if err != nil || err2 != nil || amount <= 0 || rate <= 0 || amount*scale[match[3]] > math.MaxInt64/2 {
		return false
	}
	bytes, perSecond := amount*scale[match[3]], rate*scale[match[5]]
	step := 0.5 * scale[match[5]]
	if strings.Contains(match[4], ".") {
		step /= 10
	}
	lo, hi := bytes/(perSecond+step), bytes/math.Max(perSecond-step, perSecond/2)
	if hi > maxSeconds || bytes < 1 {
		return false
	}
	m := s.within("scp")
	r := m.add(cmp.Or(s.cipher, unstated))
	r.direction, r.bytes, r.elapsed, r.outcome = s.direction, unit.Bytes(bytes), between(lo, hi), record.OK
	if s.cipher == "" {
		m.Remark(`a copy without -c is filed under the cipher "default"`)
	}
	if match[1] != "100" {
		m.Remark("a copy was stopped before its end; its rate is that of the part before")
	}
	return true
}

// disk reads dd as a control: how fast the file can be read at all.
func (s *scp) disk(line string) bool {
	if match := ddCommand().FindStringSubmatch(line); match != nil {
		s.dd = match[1]
		return true
	}
	if s.dd == "" {
		return false
	}
	if ddCount().MatchString(line) {
		return true
	}
	match := ddLine().FindStringSubmatch(line)
	if match == nil {
		return false
	}
	bytes, err := strconv.ParseFloat(match[1], 64)
	seconds, err2 := strconv.ParseFloat(match[2], 64)
	if err != nil || err2 != nil || seconds <= 0 {
		return false
	}
	name := "dd read, blocks of 512"
	for _, word := range strings.Fields(s.dd) {
		if size, ok := strings.CutPrefix(word, "bs="); ok {
			name = "dd read, blocks of " + size
		}
	}
	s.within("scp").Measure("dd", name, record.BytesPerSecond, bytes/seconds)
	s.dd = ""
	return true
}
