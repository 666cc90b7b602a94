package copy

import (
	"cmp"
	"io"
	"time"

	"sshpace/internal/base/shell"
)

// widePipe has the host's kernel keep more between sshd and a command than the 64 KiB
// that it would: sshd answers each time that its command has taken some, so that larger
// pieces cost it less. 1031 is F_SETPIPE_SZ (linux/fcntl.h), which no program of POSIX
// can ask for. On a host without perl, or that refuses, nothing is lost.
const widePipe = `perl -e '$^O eq "linux" and fcntl STDIN,1031,1<<19' 2>/dev/null; `

// pour writes a file under the name part by the host's cat(1), and compares it: an
// SFTP server reads by 16 KiB and costs twice as much. The shell makes the file as
// SFTP does, only where nothing has that name. Where it is not complete, or nothing can
// be said of it, SFTP goes on with it.
func (p *put) pour(to *placed, part string) bool {
	if p.noCat || !p.asks() || p.over() {
		return false
	}
	r, done, err := to.open()
	if err != nil {
		return false
	}
	defer done()
	expected := to.checked(part)
	program, want := "umask 077; set -C; "+widePipe+"cat >"+shell.Quote(part), ""
	if !p.NoVerify {
		program += " && exec cksum -- " + shell.Quote(part)
		want = expected.line()
	}
	in := &pouring{put: p, item: to.item, r: r}
	said, err := p.shell(program, in, to.size)
	if err != nil || said != want || in.sent != to.size || p.over() {
		p.noCat = true
		p.goOn(to, part)
		return false
	}
	modes := attrsOf(to.item)
	if to.perm&0o400 == 0 { // place sets it
		modes.Mode |= 0o400
	}
	to.poured = true
	return p.client.Setstat(part, modes).Wait() == nil
}

// pouring is a file that is sent as fast as all hosts together may be sent something.
type pouring struct {
	*put
	*item
	r    io.ReaderAt
	sent int64
}

// Read reads the file, for who does not use WriteTo.
func (f *pouring) Read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), f.size-f.sent)]
	n, err := f.r.ReadAt(p, f.sent)
	if f.sent += int64(n); n > 0 {
		err = nil
	} else if f.sent == f.size {
		err = io.EOF
	}
	f.Limit.wait(f.ctx, n)
	return n, err
}

// WriteTo writes the file from where it is kept for all hosts.
func (f *pouring) WriteTo(w io.Writer) (int64, error) {
	f.shelf.enter()
	defer f.shelf.leave()
	before := f.sent
	for s := (stride{size: leastStride}); f.sent < f.size; {
		p := f.shelf.take(f.item, f.r, f.sent/pieceSize)
		err := f.write(w, p.buf[min(f.sent%pieceSize, int64(p.n)):p.n], &s)
		f.shelf.give(p)
		if err = cmp.Or(err, p.err); err != nil {
			return f.sent - before, err
		}
		if p.n < pieceSize {
			break
		}
	}
	return f.sent - before, nil
}

func (f *pouring) write(w io.Writer, p []byte, s *stride) error {
	p = p[:min(int64(len(p)), f.size-f.sent)]
	for len(p) > 0 {
		n := min(len(p), s.size)
		start := time.Now()
		f.Limit.wait(f.ctx, n)
		n, err := w.Write(p[:n])
		if f.sent += int64(n); err != nil {
			return err
		}
		s.took(time.Since(start))
		p = p[n:]
	}
	return nil
}

// stride is how much is written at once: the more, the cheaper, as long as it takes no
// time that a bandwidth limit, or somebody who waits for progress, would notice.
type stride struct{ size int }

const (
	leastStride = 32 << 10
	mostStride  = pieceSize
	// long is a time in which little should be written at once.
	long = 100 * time.Millisecond
)

func (s *stride) took(d time.Duration) {
	if d < long {
		s.size = min(2*s.size, mostStride)
	} else {
		s.size = max(s.size/2, leastStride)
	}
}
