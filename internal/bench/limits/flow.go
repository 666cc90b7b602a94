//go:build linux

package limits

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// window is how long each of the following is measured.
const window = 300 * time.Millisecond

// block is the size of reads and writes: the packet size of an SSH channel.
const block = 32 << 10

// ownProbes are the probes that need no other program.
func ownProbes(o Options) []probe {
	single := func(name string, run func(context.Context) (float64, error)) probe {
		return probe{name, func(ctx context.Context) ([]record.Measurement, error) {
			rate, err := run(ctx)
			return []record.Measurement{own(name, rate)}, err
		}, false}
	}
	return []probe{
		single(record.MemoryCopy, memoryCopy),
		single(pipeName, pipeFlow),
		single(loopbackName, loopbackFlow),
		{"disk read", func(ctx context.Context) ([]record.Measurement, error) { return disk(ctx, o) }, true},
	}
}

func own(name string, rate float64) record.Measurement {
	return record.Measurement{Source: ownProgram, Name: name, Unit: record.BytesPerSecond, Value: rate, N: 1}
}

// memoryCopy copies between buffers that no cache holds.
func memoryCopy(ctx context.Context) (float64, error) {
	const size = 64 << 20
	from, to := make([]byte, size), make([]byte, size)
	for i := 0; i < size; i += 4096 { // have the kernel give us the pages first
		from[i], to[i] = 1, 1
	}
	start, copied := time.Now(), 0
	for time.Since(start) < window && ctx.Err() == nil {
		copied += copy(to, from)
	}
	return float64(copied) / time.Since(start).Seconds(), nil
}

// pipeFlow moves bytes through a pipe between two threads, with plain system calls, as ssh and its
// command do.
func pipeFlow(context.Context) (float64, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return 0, fmt.Errorf("make a pipe: %w", err)
	}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer unix.Close(ends[1])
		buffer := make([]byte, block)
		for start := time.Now(); time.Since(start) < window; {
			if _, err := unix.Write(ends[1], buffer); err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer unix.Close(ends[0])
	buffer, total := make([]byte, block), 0
	for start := (time.Time{}); ; {
		n, err := unix.Read(ends[0], buffer)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0:
			return float64(total) / time.Since(start).Seconds(), nil
		case start.IsZero():
			start = time.Now() // the first bytes have come
		default:
			total += n
		}
	}
}

// loopbackFlow moves bytes through a TCP connection on loopback.
func loopbackFlow(ctx context.Context) (float64, error) {
	return TCP(ctx, nil, false, block, 0, window)
}

// TCP returns the rate of a connection on loopback, in bytes per second, after a start-up time, in
// pieces of size bytes: from the connecting side to the listening one, or back. by, if set, returns
// the port that leads there.
func TCP(ctx context.Context, by func(host, port string) (string, error), back bool, piece int, beginning, measured time.Duration) (float64, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("listen on loopback: %w", err)
	}
	defer listener.Close()
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	if by != nil {
		if port, err = by(host, port); err != nil {
			return 0, err
		}
	}
	from, err := (&net.Dialer{}).DialContext(ctx, "tcp4", net.JoinHostPort(host, port))
	if err != nil {
		return 0, err
	}
	defer from.Close()
	to, err := listener.Accept()
	if err != nil {
		return 0, fmt.Errorf("connect on loopback: %w", err)
	}
	defer to.Close()
	if back {
		from, to = to, from
	}
	end := time.Now().Add(beginning + measured)
	defer context.AfterFunc(ctx, func() { _, _ = from.SetDeadline(time.Unix(1, 0)), to.SetDeadline(time.Unix(1, 0)) })()
	_, _ = from.SetWriteDeadline(end), to.SetReadDeadline(end)
	go func() {
		some := make([]byte, piece)
		for err := error(nil); err == nil; {
			_, err = from.Write(some)
		}
	}()
	some, total := make([]byte, piece), 0
	for start := time.Now(); time.Since(start) < beginning; {
		if _, err := to.Read(some); err != nil {
			return 0, nil
		}
	}
	for start := time.Now(); ; {
		n, err := to.Read(some)
		if total += n; err != nil {
			return float64(total) / time.Since(start).Seconds(), context.Cause(ctx)
		}
	}
}

// disk writes a file of random bytes, drops it from the kernel's cache, and reads it with the block
// sizes of dd's default and of a large buffer. The file loses its name after a moment: it goes when
// this process does, however that ends.
func disk(ctx context.Context, o Options) ([]record.Measurement, error) {
	if o.DiskDir == "" {
		return nil, errors.New("there is no directory to put a file into: name one")
	}
	var fs unix.Statfs_t
	if unix.Statfs(o.DiskDir, &fs) == nil && inMemory(fs) {
		return nil, errors.New(o.DiskDir + " is in memory: name a directory on a disk")
	}
	f, err := os.CreateTemp(o.DiskDir, "sshpace-disk-")
	if err != nil {
		return nil, fmt.Errorf("make a file to read: %w", err)
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return nil, fmt.Errorf("take its name from a file to read: %w", err)
	}
	if err := fill(ctx, f, o.DiskBytes); err != nil {
		return nil, fmt.Errorf("write %s to read it again: %w", o.DiskBytes, err)
	}
	var out []record.Measurement
	for _, way := range []struct {
		name string
		size int
	}{{record.DiskSmall, 512}, {record.DiskLarge, 8 << 20}} {
		rate, err := readFile(ctx, f, way.size)
		if err != nil {
			return out, err
		}
		out = append(out, own(way.name, rate))
	}
	return out, nil
}

func fill(ctx context.Context, f *os.File, size unit.Bytes) error {
	chunk := make([]byte, 1<<20)
	_, _ = rand.Read(chunk)
	for written := unit.Bytes(0); written < size; written += unit.Bytes(len(chunk)) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := f.Write(chunk[:min(unit.Bytes(len(chunk)), size-written)]); err != nil {
			return err
		}
	}
	return f.Sync()
}

// readFile reads the whole file from the disk.
func readFile(ctx context.Context, f *os.File, size int) (float64, error) {
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return 0, fmt.Errorf("drop the file from the cache: %w", err)
	}
	return readOnce(ctx, f, size)
}

// readAll reads the whole file from wherever it is.
func readAll(ctx context.Context, f *os.File) (float64, error) { return readOnce(ctx, f, 256<<10) }

func readOnce(ctx context.Context, f *os.File, size int) (float64, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	buffer := make([]byte, size)
	total := 0
	for start := time.Now(); ; {
		n, err := f.Read(buffer)
		total += n
		if errors.Is(err, io.EOF) {
			return float64(total) / time.Since(start).Seconds(), nil
		}
		if err != nil {
			return 0, err
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
}
