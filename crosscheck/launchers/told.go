//go:build linux

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// told is all that a client reports of a job.
type told struct {
	hosts  map[string]*record
	counts map[string]int // of the summary, by status
}

// record is all that it reports of a host.
type record struct {
	results []result
	output  strings.Builder
	arrived time.Time // the last result
}

// result is the end of a host, as far as it is judged.
type result struct {
	Status, Ran, Class, Signal, Launcher, Error, Incomplete string
	Exit                                                    json.Number
}

// read reads the lines of --json until they end. id gets the name of the run.
func read(r io.Reader, id func(string)) (told, error) {
	t := told{hosts: map[string]*record{}}
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return t, nil
		}
		var rec struct {
			ID, Type, Host, Text    string
			OK, Failed, Unreachable int
			NotStarted              int `json:"not_started"`
			result
		}
		if err = cmp.Or(err, json.Unmarshal(line, &rec)); err != nil {
			return t, fmt.Errorf("%w: %.200q", err, line)
		}
		if rec.Host != "" && t.hosts[rec.Host] == nil {
			t.hosts[rec.Host] = &record{}
		}
		switch h := t.hosts[rec.Host]; rec.Type {
		case "run":
			id(rec.ID)
		case "output":
			h.output.WriteString(rec.Text + "\n")
		case "result":
			h.results, h.arrived = append(h.results, rec.result), time.Now()
		case "summary":
			t.counts = map[string]int{"ok": rec.OK, "failed": rec.Failed, "unreachable": rec.Unreachable, "not_started": rec.NotStarted}
		}
	}
}
