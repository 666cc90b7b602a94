package copy

import (
	"fmt"
	"io"

	"sshpace/internal/base/shell"
)

// widePipe makes the host's kernel buffer more between sshd and a command than the default 64 KiB:
// sshd answers whenever its command has read some, so that larger pieces cost it less. 1031 is
// F_SETPIPE_SZ (linux/fcntl.h), which no program of POSIX can set. On a host without perl, or that
// refuses, nothing is lost.
const widePipe = `perl -e '$^O eq "linux" and fcntl STDIN,1031,1<<19' 2>/dev/null; `

// pour writes a file under the name part by the host's cat(1), and compares it: an SFTP server
// reads by 16 KiB and costs twice as much. The shell makes the file as SFTP does, only if the name
// is free. If it is incomplete, or nothing is known about it, SFTP continues it.
func (p *put) pour(to *placed, part string) bool {
	if p.noCat || !p.asks() || p.over() {
		return false
	}
	r, done, err := to.open()
	if err != nil {
		return false
	}
	defer done()
	program := fmt.Sprintf("umask %03o; set -C; "+widePipe+"cat >%s", 0o777&^to.partPerm(), shell.Quote(part))
	if !p.NoVerify {
		program += " && exec cksum -- " + shell.Quote(part)
	}
	in := io.NewSectionReader(limited{r, &p.side}, 0, to.size)
	said, err := p.shell(query{program: program, input: trickle{in, p.Limit}, size: to.size})
	want := ""
	if !p.NoVerify {
		want = to.checked(part).line()
	}
	if sent, _ := in.Seek(0, io.SeekCurrent); err != nil || said != want || sent != to.size || p.over() {
		p.noCat = true
		p.goOn(to, part, 0)
		return false
	}
	modes := p.attrsOf(to.item)
	if to.perm&0o400 == 0 { // place sets it
		modes.Mode |= 0o400
	}
	to.poured = p.dressed(0, p.client.Setstat(part, modes).Wait()) == nil
	if !to.poured {
		p.goOn(to, part, 0)
	}
	return to.poured
}
