package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/sched"
)

// Limits of files that people write, in bytes.
const (
	Config = 16 << 20 // ssh_config, groups, scripts
	List   = 64 << 20 // hosts files: a million lines
)

// TooLargeError says that a text is too long for its purpose.
type TooLargeError struct {
	Name  string // file name, or "standard input" and the like
	Limit int64  // bytes
}

func (e *TooLargeError) Error() string {
	if e.Limit < 1<<20 {
		return fmt.Sprintf("%s: more than %d bytes", e.Name, e.Limit)
	}
	return fmt.Sprintf("%s: more than %d MiB", e.Name, e.Limit>>20)
}

// IsTooLarge reports whether a text was refused for its length.
func IsTooLarge(err error) bool {
	_, ok := errors.AsType[*TooLargeError](err)
	return ok
}

// Reader reads r and fails with a *TooLargeError after limit bytes. name is for the message.
func Reader(r io.Reader, name string, limit int64) io.Reader {
	return &reader{r, name, limit, limit}
}

type reader struct {
	r           io.Reader
	name        string
	left, limit int64
}

func (r *reader) Read(p []byte) (int, error) {
	// One byte more distinguishes a text of exactly limit bytes from a longer one.
	n, err := r.r.Read(p[:min(int64(len(p)), r.left+1)])
	if int64(n) > r.left {
		n = int(r.left)
		r.left = 0
		return n, &TooLargeError{r.name, r.limit}
	}
	r.left -= int64(n)
	return n, err
}

// ReadAll reads all of r, at most limit bytes. name is for the message.
func ReadAll(r io.Reader, name string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(Reader(r, name, limit))
	if IsTooLarge(err) {
		return nil, err
	}
	return text, err
}

// ReadFile reads a whole file of at most limit bytes.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, name, limit)
}

// Wide returns an error for a text in UTF-16, as PowerShell's > saves it; nil for any other.
func Wide(text []byte, name string) error {
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return fault.WithHint(fmt.Errorf("%s is saved as UTF-16, not as UTF-8", name), "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW")
	}
	return nil
}

// readTimeout limits the reading of a file that ssh reads for each host. As with ssh it may be a
// pipe.
const readTimeout = 10 * time.Second

// SilentError says that reading such a file took too long.
type SilentError struct{ Name string }

func (e *SilentError) Error() string {
	return fmt.Sprintf("%s: nothing came in %v: is it a pipe that nobody writes to?", e.Name, readTimeout)
}

// InTime returns the result of read for such a file, or a *SilentError, or the cause of the end of
// ctx.
func InTime[T any](ctx context.Context, name string, read func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTimeout, &SilentError{name})
	defer cancel()
	return sched.Await(ctx, read)
}
