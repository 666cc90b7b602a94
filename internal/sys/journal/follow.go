package journal

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"sshpace/internal/base/sched"
)

// Follow reads a journal, which was opened for reading, and waits for more at its end as long as
// its writer lives. The end of ctx is an error.
func Follow(ctx context.Context, f *os.File) io.Reader { return &followed{ctx, f} }

type followed struct {
	ctx context.Context
	f   *os.File
}

// errShorter is a journal that lost lines that were read already.
var errShorter = errors.New("the file became shorter while it was read")

func (r *followed) Read(p []byte) (int, error) {
	const every = 100 * time.Millisecond
	for live := true; r.ctx.Err() == nil; {
		n, err := r.f.Read(p)
		if n > 0 || err != io.EOF || !live {
			return n, err
		}
		if live, err = r.live(); err != nil {
			return 0, err
		}
		if live {
			sched.For(r.ctx, every)
		}
	}
	return 0, context.Cause(r.ctx)
}

// live reports whether more may come. What came before the writer's end is read once more. A
// journal without a line has no writer yet.
func (r *followed) live() (bool, error) {
	read, err := r.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return false, err
	}
	info, err := r.f.Stat()
	if err == nil && info.Size() < read {
		err = errShorter
	}
	return read > 0 && Written(r.f), err
}
