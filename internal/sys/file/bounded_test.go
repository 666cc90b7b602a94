package file_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"sshpace/internal/sys/file"
)

func TestReadAll(t *testing.T) {
	for length, refused := range map[int]bool{0: false, 9: false, 10: false, 11: true, 100000: true} {
		text := strings.Repeat("x", length)
		for _, one := range []bool{false, true} {
			r := file.Reader(strings.NewReader(text), "it", 10)
			if one {
				r = file.Reader(iotest.OneByteReader(strings.NewReader(text)), "it", 10)
			}
			got, err := file.ReadAll(r, "outer", 1<<20)
			if file.IsTooLarge(err) != refused || !refused && string(got) != text {
				t.Errorf("%d bytes: %d, %v", length, len(got), err)
			}
		}
	}
	if _, err := file.ReadAll(iotest.ErrReader(os.ErrClosed), "it", 10); !errors.Is(err, os.ErrClosed) {
		t.Errorf("an error of the reader: %v", err)
	}
}

func TestReadFile(t *testing.T) {
	_, err := file.ReadFile("/dev/zero", file.Config)
	if !file.IsTooLarge(err) || err.Error() != "/dev/zero: more than 16 MiB" {
		t.Errorf("%v", err)
	}
	if _, err := file.ReadFile(filepath.Join(t.TempDir(), "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if text, err := file.ReadFile(os.DevNull, 1); err != nil || len(text) != 0 {
		t.Errorf("%q, %v", text, err)
	}
}

// A file that ssh reads may be a pipe that nobody writes to: it is waited for for a while, or until
// nobody waits.
func TestInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, interrupted := range []bool{false, true} {
			ctx, interrupt := context.WithCancel(t.Context())
			if interrupted {
				time.AfterFunc(time.Second, interrupt)
			}
			writer := make(chan int)
			start := time.Now()
			_, err := file.InTime(ctx, "key", func() (int, error) { return <-writer, nil })
			_, silent := errors.AsType[*file.SilentError](err)
			if took := time.Since(start); silent == interrupted || interrupted && (!errors.Is(err, context.Canceled) || took > time.Second) {
				t.Errorf("interrupted %v: %v after %v", interrupted, err, took)
			}
			close(writer)
			interrupt()
		}
	})
	if text, err := file.InTime(t.Context(), "key", func() (string, error) { return "text", nil }); text != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
