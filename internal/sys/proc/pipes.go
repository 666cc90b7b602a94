package proc

import "os"

// Pipes are the two of a program: what is fed into In it reads from Stdin, and what it writes to
// Stdout comes out of Out.
type Pipes struct{ Stdin, In, Out, Stdout *os.File }

// OpenPipes makes them, by os.Pipe or what makes other ones.
func OpenPipes(pipe func() (read, write *os.File, err error)) (p Pipes, err error) {
	if p.Stdin, p.In, err = pipe(); err != nil {
		return p, err
	}
	if p.Out, p.Stdout, err = pipe(); err != nil {
		p.Stdin.Close()
		p.In.Close()
	}
	return p, err
}

// HandOver closes our copies of what the program has now.
func (p Pipes) HandOver() {
	p.Stdin.Close()
	p.Stdout.Close()
}
