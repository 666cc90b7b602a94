package flow

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// start runs Main in a goroutine on one end of a pipe or socket pair.
func start(t *testing.T, socket bool, args ...string) (counter *Counter, other *os.File, done chan error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "counter")
	counter, err := CreateCounter(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { counter.Close() })
	read, write := ends(t, socket)
	done = make(chan error, 1)
	full := append([]string{args[0], path}, args[1:]...)
	if args[0] == "sink" {
		go func() { done <- Main(full, read, nil); read.Close() }()
		return counter, write, done
	}
	go func() { done <- Main(full, nil, write); write.Close() }()
	return counter, read, done
}

func ends(t *testing.T, socket bool) (read, write *os.File) {
	t.Helper()
	if !socket {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return read, write
	}
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "read"), os.NewFile(uintptr(fds[1]), "write")
}

func TestSinkCounts(t *testing.T) {
	for name, socket := range map[string]bool{"pipe": false, "socket": true} {
		t.Run(name, func(t *testing.T) {
			counter, in, done := start(t, socket, "sink")
			payload := make([]byte, 3<<20+17)
			if _, err := in.Write(payload); err != nil {
				t.Fatal(err)
			}
			in.Close()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got := counter.Bytes(); got != int64(len(payload)) {
				t.Errorf("counted %d, want %d", got, len(payload))
			}
		})
	}
}

func TestSourceWritesTheLimit(t *testing.T) {
	for _, data := range []string{"zero", "random"} {
		counter, out, done := start(t, false, "source", data, "2500000")
		got, err := io.ReadAll(out)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if len(got) != 2500000 || counter.Bytes() != 2500000 {
			t.Errorf("%s: read %d, counted %d", data, len(got), counter.Bytes())
		}
		zeros := bytes.Count(got, []byte{0})
		if (data == "zero") != (zeros == len(got)) {
			t.Errorf("%s: %d of %d bytes are zero", data, zeros, len(got))
		}
	}
}

// A source without a limit ends with its reader.
func TestSourceEnds(t *testing.T) {
	counter, out, done := start(t, false, "source", "zero", "0")
	if _, err := io.CopyN(io.Discard, out, 3<<20); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := <-done; err != nil || counter.Bytes() < 3<<20 {
		t.Errorf("%d bytes, %v", counter.Bytes(), err)
	}
}

func TestMainRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter")
	if _, err := CreateCounter(path); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateCounter(path); err == nil {
		t.Error("an existing counter was overwritten")
	}
	if err := os.WriteFile(path+".short", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"sink"}, {"sink", path + ".missing"}, {"sink", path + ".short"}, {"pump", path}, {"source", path, "zero", "-1"}} {
		if err := Main(args, nil, nil); err == nil {
			t.Errorf("Main(%q): want an error", args)
		}
	}
}

// The command line means the same words to every shell.
func TestCommand(t *testing.T) {
	got := Command([]string{"/it's here/sshpace", "flow"}, "sink", "/tmp/counter 1")
	if want := `exec '/it'\''s here/sshpace' flow sink '/tmp/counter 1'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
