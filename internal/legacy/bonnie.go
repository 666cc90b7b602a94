package legacy

import (
	"strconv"
	"strings"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/record"
)

// bonnie reads the text of Bonnie++ 1.96 and 1.97: two tables of rates with the CPU load of each,
// and a line of latencies under each table. Rates of "+++++" were too fast to measure.
type bonnie struct {
	*document
	m       *machine
	columns []string // of the rows that come next; nil where none are expected
	unit    record.Unit
	named   bool // the next row begins with machine and size
}

var (
	bonnieData   = []string{"character output", "block output", "rewrite", "character input", "block input", "random seeks"}
	bonnieFiles  = []string{"sequential create", "sequential stat", "sequential delete", "random create", "random stat", "random delete"}
	bonnieHead   = wildcard.Regexp(`^Version +1\.9[0-9]\S* +-+(Sequential Output|Sequential Create)-+ `)
	bonnieFrame  = wildcard.Regexp(`^(?:Concurrency +[0-9]+ +-Per Chr-|Machine +Size +K/sec|\S+ +-Create--|files +/sec|1\.9[0-9]\S*,1\.9[0-9])`)
	bonnieSize   = wildcard.Regexp(`^[0-9]+[kMGT]?(?::[0-9]+)*$`)
	bonnieDelay  = wildcard.Regexp(`^([0-9]+)(us|ms|s)?$`)
	delayInMilli = map[string]float64{"us": 1e-3, "ms": 1, "s": 1e3}
)

func (b *bonnie) Take(line string) bool {
	line = strings.TrimSpace(line)
	if match := bonnieHead().FindStringSubmatch(line); match != nil {
		b.head(match[1])
		return true
	}
	if b.m == nil {
		return false
	}
	if bonnieFrame().MatchString(line) {
		return true
	}
	fields := strings.Fields(line)
	if len(fields) == 7 && fields[0] == "Latency" {
		return b.latency(fields[1:])
	}
	return b.row(fields)
}

func (b *bonnie) head(table string) {
	if table == "Sequential Output" {
		b.m = b.begin("bonnie")
		b.columns, b.unit, b.named = bonnieData, record.KiBPerSecond, true
		return
	}
	if b.m == nil { // the second table alone
		b.m = b.begin("bonnie")
	}
	b.columns, b.unit, b.named = bonnieFiles, record.PerSecond, false
}

// row reads the rates of a table: pairs of a rate and a share of CPU.
func (b *bonnie) row(fields []string) bool {
	lead := 1 // number of files
	if b.named {
		lead = 2 // machine and size
	}
	if b.columns == nil || len(fields) != lead+2*len(b.columns) || !bonnieSize().MatchString(fields[lead-1]) {
		return false
	}
	if b.named {
		b.m.label = fields[0]
	}
	for i, name := range b.columns {
		rate, load := fields[lead+2*i], fields[lead+2*i+1]
		if !plus(rate) && !number(rate) || !plus(load) && !number(load) {
			return false
		}
		u := b.unit
		if name == "random seeks" {
			u = record.PerSecond
		}
		if value, err := strconv.ParseFloat(rate, 64); err == nil {
			b.m.Measure("bonnie++", name, u, value)
		}
	}
	return true
}

func plus(field string) bool { return strings.Trim(field, "+") == "" }

func number(field string) bool {
	_, err := strconv.ParseFloat(field, 64)
	return err == nil
}

// latency reads the line under a table and ends the table.
func (b *bonnie) latency(fields []string) bool {
	for i, field := range fields {
		match := bonnieDelay().FindStringSubmatch(field)
		if match == nil && !plus(field) || i >= len(b.columns) {
			return false
		}
		if match != nil {
			value, _ := strconv.ParseFloat(match[1], 64)
			b.m.Measure("bonnie++", b.columns[i]+" latency", record.Milliseconds, value*delayInMilli[match[2]])
		}
	}
	b.columns = nil
	return true
}
