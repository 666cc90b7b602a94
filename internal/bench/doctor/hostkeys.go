//go:build linux

package doctor

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"

	"sshpace/internal/base/sched"
	measured "sshpace/internal/bench/hostkeys"
)

// The cost of smaller files is below the noise; larger ones than maxBytes are not read.
const (
	manyLines = 1000
	mostBytes = 256 << 20
)

// keyRounds is how often each layout of a file is measured.
const keyRounds = 4

// hostKeys measures the cost of the user's large files of host keys for each login, with our own
// server.
func (p *Patient) hostKeys(ctx context.Context) error {
	for _, file := range p.facts.KeyFiles {
		if lines(file) < manyLines {
			continue
		}
		p.Progress("what " + file + " costs")
		dir, err := os.MkdirTemp(p.Dir, "keys")
		if err != nil {
			return err
		}
		c, err := measured.Measure(ctx, file, measured.Options{SSH: p.SSH.Path, Dir: dir, Rounds: sched.Rounds{Count: keyRounds}, Brief: true})
		if err != nil {
			continue // such as a file that cannot be read: ssh does without it, too
		}
		others := slices.DeleteFunc(slices.Clone(p.facts.KeyFiles), func(other string) bool { return other == file })
		k := KnownHosts{File: file, Others: others, Lines: c.Lines, Hashed: c.HashedLines}
		for _, cost := range c.OpenSSH {
			if cost.AsItIs && cost.UpdateHostKeys == p.facts.updates {
				k.Extra = cost.Extra
			}
		}
		p.facts.KnownHosts = append(p.facts.KnownHosts, k)
	}
	return nil
}

// lines counts the lines of a file; 0 where it cannot be read.
func lines(file string) (n int) {
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	r := io.LimitReader(f, mostBytes)
	for block := make([]byte, 64<<10); ; {
		k, err := r.Read(block)
		n += bytes.Count(block[:k], []byte("\n"))
		if err != nil {
			return n
		}
	}
}
