//go:build linux

package drive

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"sshpace/internal/base/text"
	"sshpace/internal/record"
)

// maxNoise is how much a host's start-up files may print before our mark.
const maxNoise = 1 << 20

// awaitMark reads lines until one holds the mark, skipping what start-up files
// print, and returns the rest of that line. It reads byte by byte, so that what
// follows stays in the pipe for a sink.
func awaitMark(r io.Reader, mark string) (rest string, err error) {
	var line []byte
	var one [1]byte
	printed := "" // the last line that says something
	for total := 0; total < maxNoise; total++ {
		n, err := r.Read(one[:])
		if n == 0 && err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return "", errStalled
			}
			return "", &endError{cmp.Or(strings.TrimSpace(string(line)), printed)}
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
	return "", &failure{record.Broken, "the host printed more than 1 MiB before our command"}
}

// endError is errEnded, with the last line that the host printed instead of our mark.
type endError struct{ printed string }

func (e *endError) Error() string { return errEnded.Error() }

// Is makes it errEnded.
func (e *endError) Is(target error) bool { return target == errEnded }

// maxPrinted is how much of that line is told.
const maxPrinted = 200

// says is what that line tells of an account that does not run our command; "" if it is
// not known to.
func (e *endError) says() string {
	if e.printed == "" {
		return ""
	}
	return fmt.Sprintf("the account does not run our command; it prints %q", text.Clip(e.printed, maxPrinted))
}
