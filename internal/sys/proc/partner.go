package proc

import (
	"io"
	"os/exec"
	"time"
)

// Partner is a program that this one talks to, by its standard input and output. It shares our
// terminal, and ends with its input.
type Partner struct {
	io.Reader
	io.Writer
	in  io.Closer
	cmd *exec.Cmd
}

// StartPartner starts a program.
func StartPartner(argv []string) (*Partner, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Partner{out, in, in, cmd}, cmd.Start()
}

// Close ends its input, and waits for its end.
func (p *Partner) Close() error {
	p.in.Close()
	late := time.AfterFunc(Grace, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	return Wait(p.cmd)
}
