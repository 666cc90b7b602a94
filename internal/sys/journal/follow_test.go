package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeIn makes this binary a writer of a journal, which it ends in the middle of a line.
const writeIn = "SSHPACE_TEST_WRITE_JOURNAL_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writeIn); dir != "" {
		f, err := Directory(dir).Create(time.Now(), "")
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(f, "{\"n\":1}\n{\"n\":2}\n{\"n\":")
		fmt.Println(f.Name())
		select {}
	}
	os.Exit(m.Run())
}

// following starts to follow a journal. next returns a line, or the error at its end.
func following(t *testing.T, ctx context.Context, path string) (next func() (string, error)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	type item struct {
		line string
		err  error
	}
	items := make(chan item, 100)
	go func() {
		defer f.Close()
		for line, err := range Lines(Follow(ctx, f)) {
			items <- item{string(line), err}
		}
		close(items)
	}()
	return func() (string, error) {
		t.Helper()
		select {
		case i, more := <-items:
			if !more {
				return "", io.EOF
			}
			return i.line, i.err
		case <-time.After(time.Minute):
			t.Fatal("nothing comes")
			return "", nil
		}
	}
}

// want makes sure that a line comes, or an error.
func want(t *testing.T, next func() (string, error), line string, err error) {
	t.Helper()
	if got, gotErr := next(); !errors.Is(gotErr, err) || err == nil && got != line {
		t.Errorf("%q, %v; want %q, %v", got, gotErr, line, err)
	}
}

// A writer that is killed ends those who follow, at the line that it has cut.
func TestFollowKilledWriter(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writeIn+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	path, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	next := following(t, t.Context(), strings.TrimSuffix(path, "\n"))
	want(t, next, `{"n":1}`, nil)
	want(t, next, `{"n":2}`, nil)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	want(t, next, "", ErrTruncated)
	want(t, next, "", io.EOF)
}

// Lines come whole, however they were written, until the writer or the context ends. A journal is
// followed under any name, and another one in its place is not it.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+Ending)
	f, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	say := func(text string) {
		t.Helper()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	say("{}\n")
	stopped, stop := context.WithCancelCause(t.Context())
	next, other := following(t, t.Context(), path), following(t, stopped, path)
	want(t, next, "{}", nil)
	want(t, other, "{}", nil)
	say(`{"a":`)
	time.Sleep(150 * time.Millisecond)
	say("1}\n{\"b\":2}\n")
	want(t, next, `{"a":1}`, nil)
	want(t, next, `{"b":2}`, nil)
	want(t, other, `{"a":1}`, nil)
	want(t, other, `{"b":2}`, nil)
	enough := errors.New("enough")
	stop(enough)
	want(t, other, "", enough)
	if err := errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, []byte("{\"other\":0}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	say("{\"last\":3}\n")
	f.Close()
	want(t, next, `{"last":3}`, nil)
	want(t, next, "", io.EOF)
}

// A journal that loses lines is not followed on, and one without a line has not begun.
func TestFollowShorter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+Ending)
	f, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want(t, following(t, t.Context(), path), "", io.EOF)
	if _, err := f.WriteString("{}\n"); err != nil {
		t.Fatal(err)
	}
	next := following(t, t.Context(), path)
	want(t, next, "{}", nil)
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	want(t, next, "", errShorter)
}
