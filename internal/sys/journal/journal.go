// Package journal keeps append-only files of one JSON object a line: results of measurements and
// records of runs. Their one writer appends whole lines, so a crash damages the last one at most.
package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxLine is the longest line that Lines accepts, in bytes. The first line of a run holds the
// names of all hosts; a foreign file without line ends must not fill the memory.
const MaxLine = 16 << 20

// Ending is the ending of the name of every journal.
const Ending = ".jsonl"

// ErrTruncated marks a last line that was cut: the writer was killed in the middle of it, or
// the file is being copied.
var ErrTruncated = errors.New("the last record is cut off")

// Lines yields the lines of a journal without their ends. It ends after the first error:
// ErrTruncated in the place of a cut last line, an error of r, or that of a line longer than
// MaxLine. Errors carry the number of the line. A line is valid until the next one.
func Lines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewReaderSize(r, 64<<10)
		var line []byte
		for n := 1; ; n++ {
			var err error
			line, err = next(lines, line[:0])
			switch {
			case err == io.EOF && len(line) == 0:
				return
			case err == io.EOF && !json.Valid(line):
				yield(line, fmt.Errorf("line %d: %w", n, ErrTruncated))
				return
			case err != nil && err != io.EOF:
				yield(nil, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !yield(line, nil) || err == io.EOF {
				return
			}
		}
	}
}

// next appends the next line to line, without its end; the error is io.EOF where it has none.
func next(r *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > MaxLine {
			return nil, fmt.Errorf("longer than %d bytes: not a record file", MaxLine)
		}
		if err != bufio.ErrBufferFull {
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}
