package drive

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"sshpace/internal/ssh/openssh"
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
		"without line end":   {"hi\n" + mark, "", "", errEnded},
		"another mark":       {"sshpace-Y-ready\n", "", "", errEnded},
		"nothing":            {"", "", "", errEnded},
		"the most noise":     {strings.Repeat("x", maxNoise-len(mark)-2) + "\n" + mark + "\n", "", "", nil},
	} {
		for kind, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "error with data": iotest.DataErrReader} {
			source := strings.NewReader(tt.text)
			rest, err := awaitMark(wrap(source), mark)
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
		if _, err := awaitMark(strings.NewReader(text), "mark"); !errors.As(err, new(*failure)) || !strings.Contains(err.Error(), "more than 1 MiB") {
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
	if _, err := awaitMark(read, "mark"); !errors.Is(err, errStalled) {
		t.Errorf("silence: %v", err)
	}
}

func TestDescribeIsBounded(t *testing.T) {
	got := describe(describe("", "Linux 6.1.0 x86_64"), "model name\t: Some CPU\t")
	if want := "Linux 6.1.0 x86_64; Some CPU"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for range 1000 {
		got = describe(got, "noise ü")
	}
	if len(got) > maxMachine || !strings.HasPrefix(got, "Linux") || strings.ToValidUTF8(got, "") != got {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestDropped(t *testing.T) {
	for detail, want := range map[string]bool{
		"kex_exchange_identification: Connection closed by remote host":    true,
		"ssh_exchange_identification: read: Connection reset by peer":      true,
		"Connection closed by 10.0.0.1 port 22":                            true,
		"ssh: connect to host x port 22: Connection refused":               false,
		"Unable to negotiate with 10.0.0.1 port 22: no matching MAC found": false,
	} {
		if e := (&HostError{openssh.Failure(openssh.ParseVerbose(detail), "")}); e.dropped() != want {
			t.Errorf("%+v: dropped = %v", e, !want)
		}
	}
}
