package copy

import (
	"io"

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

// Read reads the file.
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
