package expand

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/sys/file"
)

// Given are variables from the user's flags, which win over those of inventories.
type Given struct {
	Vars  []string // NAME=VALUE, for all hosts; they win over files
	Files []string // CSV; a later one wins
}

// Over reads the variables, and returns them before those of another source.
func (g Given) Over(other Variables) (Variables, error) {
	rows := map[string]map[string]string{} // by host
	for _, name := range g.Files {
		if err := readCSV(name, rows); err != nil {
			return nil, &fault.Error{Err: err, Hint: cmp.Or(fault.HintOf(err), csvHint), Code: fault.Misuse}
		}
	}
	all := map[string]string{}
	for _, text := range g.Vars {
		name, value, ok := strings.Cut(text, "=")
		if !ok || !nameOfVariable().MatchString(name) {
			return nil, fault.Usage("such as --var role=web", "--var %q: want NAME=VALUE, with a name of letters, digits, _, - and .", text)
		}
		all[name] = value
	}
	return func(h host.Host, names []string) (map[string]string, error) {
		known := map[string]string{}
		left := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			for _, from := range []map[string]string{all, rows[h.String()], rows[h.Name]} {
				if value, has := from[name]; has {
					known[name] = value
					return true
				}
			}
			return false
		})
		if len(left) == 0 {
			return known, nil
		}
		more, err := other(h, left)
		maps.Copy(known, more)
		return known, err
	}, nil
}

const csvHint = "the first line names the columns, such as host,role,rack; each other line is one host"

// readCSV adds the rows of a file: a host and its variables, whose names stand in the first line.
// An empty cell is no value.
func readCSV(name string, rows map[string]map[string]string) error {
	text, err := file.ReadFile(name, file.List)
	if err == nil {
		err = file.Wide(text, name)
	}
	if err != nil {
		return err
	}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte(hostset.ByteOrderMark))))
	head, err := r.Read()
	if errors.Is(err, io.EOF) || len(head) == 1 {
		err = errors.New("want a comma and a variable in the first line")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for i, column := range head[1:] {
		if !nameOfVariable().MatchString(column) || slices.Contains(head[1:i+1], column) {
			return fmt.Errorf("%s: column %d: %q: want different names of letters, digits, dots, _ and -", name, i+2, column)
		}
	}
	own := map[string]bool{}
	for {
		row, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		h := strings.TrimSpace(row[0])
		if line, _ := r.FieldPos(0); own[h] || h == "" {
			return fmt.Errorf("%s:%d: host %q: want each host once", name, line, h)
		}
		own[h] = true
		if rows[h] == nil {
			rows[h] = map[string]string{}
		}
		for i, value := range row[1:] {
			if value != "" {
				rows[h][head[i+1]] = value
			}
		}
	}
}
