package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cell is one cipher with a MAC, which is empty for ciphers that need none.
type cell struct {
	Cipher string `json:"cipher"`
	MAC    string `json:"mac,omitempty"`
}

func (c cell) String() string {
	name := c.Cipher
	if c.MAC != "" {
		name += " + " + c.MAC
	}
	return strings.ReplaceAll(name, "@openssh.com", "")
}

// reference is the cell that all ratios refer to.
var reference = cell{"aes128-ctr", "hmac-sha2-256-etm@openssh.com"}

// report is the part of a report of sshpace that is used here.
type report struct {
	Bulk  []row `json:"bulk"`
	Noise struct {
		Cost       float64 `json:"cost_pct"`
		Throughput float64 `json:"throughput_pct"`
	} `json:"noise_floor"`
}

type row struct {
	cell
	Client     value `json:"client_ns_per_byte"`
	Server     value `json:"server_ns_per_byte"`
	Throughput value `json:"throughput_bytes_per_s"`
}

type value struct {
	Value float64 `json:"value"`
}

// row is the row of a cell in the report, empty if the report does not list it.
func (r *report) row(c cell) row {
	i := slices.IndexFunc(r.Bulk, func(x row) bool { return x.cell == c })
	if i < 0 {
		return row{}
	}
	return r.Bulk[i]
}

// sshpace asks the program that is checked.
type sshpace struct {
	options
	dir string
}

// part continues the run until n parts of its budget have passed.
func (s sshpace) part(n int) (*report, error) {
	file := filepath.Join(s.dir, "result.jsonl")
	args := []string{"--budget", (s.budget * time.Duration(n) / parts).String()}
	if n == 1 {
		args = append(args, "--out", file, "--kex", "curve25519-sha256", "--data", strings.Replace(s.data, "pipe", "zero", 1))
	} else {
		args = append(args, "--resume", file)
	}
	r := &report{}
	return r, s.bench(r, args...)
}

// bench decodes what bench says. That some cells failed shows in the table.
func (s sshpace) bench(into any, args ...string) error {
	cmd := exec.Command(s.program, append([]string{"bench", "--json", "--ssh", s.ssh, "--sshd", s.sshd}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+s.dir) // the user's last run stays the last
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if json.Unmarshal(out.Bytes(), into) != nil {
		return fmt.Errorf("%s: %v\n%s", cmd, err, errs.Bytes())
	}
	if err != nil {
		log.Printf("%s: %v\n%s", cmd, err, errs.Bytes())
	}
	return nil
}

// cells are the cells to compare.
func (s sshpace) cells(random *rand.Rand) (*result, error) {
	var allowed, all struct{ Bulk []cell }
	if err := s.bench(&allowed, "--list", "--policy", s.policy); err != nil {
		return nil, err
	}
	if err := s.bench(&all, "--list"); err != nil {
		return nil, err
	}
	r := &result{Allowed: allowed.Bulk}
	now, err := present(s.ssh)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(r.Allowed, now) {
		r.Allowed = append(r.Allowed, now)
	}
	others := slices.DeleteFunc(all.Bulk, func(c cell) bool { return slices.Contains(r.Allowed, c) || !s.match.MatchString(c.String()) })
	r.Allowed = slices.DeleteFunc(r.Allowed, func(c cell) bool { return !s.match.MatchString(c.String()) })
	random.Shuffle(len(others), func(i, k int) { others[i], others[k] = others[k], others[i] })
	r.Others = others[:min(s.others, len(others))]
	if len(r.Allowed)+len(r.Others) == 0 {
		return nil, fmt.Errorf("no cell matches %s", s.match)
	}
	return r, nil
}

// present is what ssh likes best, and gets from a server that has everything.
func present(ssh string) (cell, error) {
	text, err := exec.Command(ssh, "-G", "127.0.0.1").Output()
	if err != nil {
		return cell{}, fmt.Errorf("%s -G: %w", ssh, err)
	}
	var c cell
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		first, _, _ := strings.Cut(value, ",")
		switch name {
		case "ciphers":
			c.Cipher = first
		case "macs":
			c.MAC = first
		}
	}
	if strings.Contains(c.Cipher, "gcm") || strings.Contains(c.Cipher, "poly1305") {
		c.MAC = ""
	}
	return c, nil
}
