package openssh

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestAwaitMark(t *testing.T) {
	const mark = "sshpace-X-ready"
	for name, tt := range map[string]struct {
		text, rest, left string
		err              error
	}{
		"alone":              {mark + "\n", "", "", nil},
		"with a rest":        {mark + " 1 2 3\nzeros", "1 2 3", "zeros", nil},
		"after noise":        {"Welcome\n\n\x1b[1mto nas\n" + mark + " 1\n", "1", "", nil},
		"after an open line": {"no newline" + mark + " 1\n", "1", "", nil},
		"CRLF":               {"hi\r\n" + mark + " 1 2 3\r\n", "1 2 3", "", nil},
		"binary noise":       {"\x00\xff\n" + mark + "\n", "", "", nil},
		"without line end":   {"hi\n" + mark, "", "", ErrEnded},
		"another mark":       {"sshpace-Y-ready\n", "", "", ErrEnded},
		"nothing":            {"", "", "", ErrEnded},
		"the most noise":     {strings.Repeat("x", maxNoise-len(mark)-2) + "\n" + mark + "\n", "", "", nil},
	} {
		for kind, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "error with data": iotest.DataErrReader} {
			source := strings.NewReader(tt.text)
			rest, err := AwaitMark(wrap(source), mark)
			if !errors.Is(err, tt.err) || rest != tt.rest {
				t.Errorf("%s, %s: %q, %v; want %q, %v", name, kind, rest, err, tt.rest, tt.err)
			}
			if kind == "whole" {
				if left, _ := io.ReadAll(source); string(left) != tt.left {
					t.Errorf("%s: %q is left in the pipe, want %q", name, left, tt.left)
				}
			}
		}
	}
}

func TestAwaitMarkGivesUp(t *testing.T) {
	for name, text := range map[string]string{"one endless line": strings.Repeat("x", 2*maxNoise), "endless lines": strings.Repeat("x\n", maxNoise)} {
		if _, err := AwaitMark(strings.NewReader(text), "mark"); !errors.Is(err, ErrEndless) {
			t.Errorf("%s: %v", name, err)
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	_ = read.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := AwaitMark(read, "mark"); !errors.Is(err, ErrStalled) {
		t.Errorf("silence: %v", err)
	}
}
