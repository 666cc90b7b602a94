package mux

import (
	"os"

	"golang.org/x/sys/unix"

	"sshpace/internal/ssh/channel"
)

// stdio is a file of a client whose Read and Write end when it is closed, without a byte too much.
type stdio struct {
	*os.File
	tty    int // descriptor for the calls of a terminal
	shared int // keeps the client's description, which must block again; -1: none
}

// openStdio takes a file over. Pipes and terminals are opened anew where that is possible: whether
// calls wait belongs to the description of an open file, which the client's programs share.
func openStdio(fd, mode int) *stdio {
	var info unix.Stat_t
	waits := unix.Fstat(fd, &info) == nil && (info.Mode&unix.S_IFMT == unix.S_IFIFO || info.Mode&unix.S_IFMT == unix.S_IFSOCK || isTerminal(fd))
	shared := -1
	if waits {
		if again, err := reopen(fd, mode); err == nil {
			unix.Close(fd)
			fd = again
		} else if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err == nil && flags&unix.O_NONBLOCK == 0 {
			if shared, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err == nil { // otherwise nothing would undo it
				_ = unix.SetNonblock(fd, true)
			}
		}
	}
	return &stdio{os.NewFile(uintptr(fd), "stdio"), fd, shared}
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, getTermios)
	return err == nil
}

// closeStdio closes files, and then lets the client's wait again.
func closeStdio(files ...*stdio) {
	for _, s := range files {
		if s != nil {
			s.Close()
		}
	}
	for _, s := range files {
		if s != nil && s.shared >= 0 {
			_ = unix.SetNonblock(s.shared, false)
			unix.Close(s.shared)
			s.shared = -1
		}
	}
}

// size returns the size of a terminal as in a window-change (RFC 4254 section 6.7).
func (s *stdio) size() []byte {
	w, err := unix.IoctlGetWinsize(s.tty, unix.TIOCGWINSZ)
	if err != nil {
		w = &unix.Winsize{}
	}
	var p []byte
	for _, n := range []uint16{w.Col, w.Row, w.Xpixel, w.Ypixel} {
		p = channel.AppendNumber(p, uint32(n))
	}
	return p
}

// terminal returns the request for a terminal like the client's (RFC 4254 sections 6.2 and 8).
func (s *stdio) terminal(kind string) []byte {
	return channel.AppendText(append(channel.Text(kind), s.size()...), s.modes())
}

// modes returns the encoded modes of a terminal. What is no terminal has none.
func (s *stdio) modes() []byte {
	const end, inSpeed, outSpeed = 0, 128, 129
	t, err := unix.IoctlGetTermios(s.tty, getTermios)
	if err != nil {
		return []byte{end}
	}
	put := func(p []byte, op byte, value uint32) []byte { return channel.AppendNumber(append(p, op), value) }
	p := put(put(nil, outSpeed, uint32(t.Ospeed)), inSpeed, uint32(t.Ispeed))
	for _, c := range characters {
		value := uint32(t.Cc[c.index])
		if value == disabled {
			value = 255
		}
		p = put(p, c.op, value)
	}
	for i, flags := range [...]uint64{uint64(t.Iflag), uint64(t.Lflag), uint64(t.Oflag), uint64(t.Cflag)} {
		for _, m := range modeFlags[i] {
			value := uint32(0)
			if flags&m.flag != 0 {
				value = 1
			}
			p = put(p, m.op, value)
		}
	}
	return append(p, end)
}

// characters are the special characters that all systems have.
var characters = [...]struct {
	op    byte
	index int
}{
	{1, unix.VINTR}, {2, unix.VQUIT}, {3, unix.VERASE}, {4, unix.VKILL}, {5, unix.VEOF}, {6, unix.VEOL}, {7, unix.VEOL2}, {8, unix.VSTART},
	{9, unix.VSTOP}, {10, unix.VSUSP}, {12, unix.VREPRINT}, {13, unix.VWERASE}, {14, unix.VLNEXT}, {18, unix.VDISCARD},
}

type modeFlag struct {
	op   byte
	flag uint64
}

// modeFlags are the modes that all systems have: of input, of lines, of output, of the line.
var modeFlags = [...][]modeFlag{
	{
		{30, unix.IGNPAR}, {31, unix.PARMRK}, {32, unix.INPCK}, {33, unix.ISTRIP}, {34, unix.INLCR}, {35, unix.IGNCR}, {36, unix.ICRNL},
		{38, unix.IXON}, {39, unix.IXANY}, {40, unix.IXOFF}, {41, unix.IMAXBEL}, {42, utf8},
	},
	{
		{50, unix.ISIG}, {51, unix.ICANON}, {53, unix.ECHO}, {54, unix.ECHOE}, {55, unix.ECHOK}, {56, unix.ECHONL}, {57, unix.NOFLSH},
		{58, unix.TOSTOP}, {59, unix.IEXTEN}, {60, unix.ECHOCTL}, {61, unix.ECHOKE}, {62, unix.PENDIN},
	},
	{{70, unix.OPOST}, {72, unix.ONLCR}, {73, unix.OCRNL}, {74, unix.ONOCR}, {75, unix.ONLRET}},
	{{90, unix.CS7}, {91, unix.CS8}, {92, unix.PARENB}, {93, unix.PARODD}},
}
