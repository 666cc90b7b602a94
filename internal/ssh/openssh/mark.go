package openssh

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"strings"
)

// NewMark returns a word that no start-up file prints.
func NewMark() string { return "sshpace-" + rand.Text() }

// Shell wraps a script, which holds no single quote, for any login shell: exec makes the script's
// parent the server's process of this connection.
func Shell(script string) string { return "exec sh -c '" + script + "'" }

// The reasons for a missing mark.
var (
	ErrEnded   = errors.New("the client ended")
	ErrStalled = errors.New("no byte arrived in time")
	ErrEndless = errors.New("the host printed more than 1 MiB before our command")
)

// maxNoise is how much a host's start-up files may print before our mark.
const maxNoise = 1 << 20

// AwaitMark reads lines until one holds the mark, skipping the output of start-up files, and
// returns the rest of that line. It reads byte by byte, so that later bytes stay in the pipe for a
// sink. An output without a mark is a *MarkError.
func AwaitMark(r io.Reader, mark string) (rest string, err error) {
	var line []byte
	var one [1]byte
	printed := "" // the last non-empty line
	for total := 0; total < maxNoise; total++ {
		n, err := r.Read(one[:])
		if n == 0 && err != nil {
			why := ErrEnded
			if errors.Is(err, os.ErrDeadlineExceeded) {
				why = ErrStalled
			}
			return "", &MarkError{why, cmp.Or(strings.TrimSpace(string(line)), printed)}
		}
		if one[0] != '\n' {
			line = append(line, one[0])
			continue
		}
		if _, rest, ok := strings.Cut(string(line), mark); ok {
			return strings.TrimSpace(rest), nil
		}
		printed = cmp.Or(strings.TrimSpace(string(line)), printed)
		line = line[:0]
	}
	return "", ErrEndless
}

// MarkError is the reason for a missing mark, with the last line that the host printed instead.
type MarkError struct {
	Why     error // ErrEnded or ErrStalled
	Printed string
}

func (e *MarkError) Error() string { return e.Why.Error() }

// Unwrap returns the reason.
func (e *MarkError) Unwrap() error { return e.Why }
