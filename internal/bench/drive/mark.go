//go:build linux

package drive

import (
	"errors"
	"io"
	"os"
	"strings"

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
	for total := 0; total < maxNoise; total++ {
		n, err := r.Read(one[:])
		if n == 0 && err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return "", errStalled
			}
			return "", errEnded
		}
		if one[0] != '\n' {
			line = append(line, one[0])
			continue
		}
		if _, rest, ok := strings.Cut(string(line), mark); ok {
			return strings.TrimSpace(rest), nil
		}
		line = line[:0]
	}
	return "", &failure{record.Broken, "the host printed more than 1 MiB before our command"}
}
