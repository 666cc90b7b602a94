package bounded_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"sshpace/internal/sys/bounded"
)

func TestReadAll(t *testing.T) {
	for length, refused := range map[int]bool{0: false, 9: false, 10: false, 11: true, 100000: true} {
		text := strings.Repeat("x", length)
		for _, one := range []bool{false, true} {
			r := bounded.Reader(strings.NewReader(text), "it", 10)
			if one {
				r = bounded.Reader(iotest.OneByteReader(strings.NewReader(text)), "it", 10)
			}
			got, err := bounded.ReadAll(r, "outer", 1<<20)
			if bounded.IsTooLarge(err) != refused || !refused && string(got) != text {
				t.Errorf("%d bytes: %d, %v", length, len(got), err)
			}
		}
	}
	if _, err := bounded.ReadAll(iotest.ErrReader(os.ErrClosed), "it", 10); !errors.Is(err, os.ErrClosed) {
		t.Errorf("an error of the reader: %v", err)
	}
}

func TestReadFile(t *testing.T) {
	_, err := bounded.ReadFile("/dev/zero", bounded.Config)
	if !bounded.IsTooLarge(err) || err.Error() != "/dev/zero: more than 16 MiB" {
		t.Errorf("%v", err)
	}
	if _, err := bounded.ReadFile(filepath.Join(t.TempDir(), "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if text, err := bounded.ReadFile(os.DevNull, 1); err != nil || len(text) != 0 {
		t.Errorf("%q, %v", text, err)
	}
}
