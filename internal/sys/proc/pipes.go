package proc

import "os"

// Pipes are the two pipes of a program: it reads from Stdin whatever is written into In, and its
// output to Stdout comes out of Out.
type Pipes struct{ Stdin, In, Out, Stdout *os.File }

// OpenPipes makes both pipes, by os.Pipe or another maker of pipes.
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

// HandOver closes our copies of the program's ends.
func (p Pipes) HandOver() {
	p.Stdin.Close()
	p.Stdout.Close()
}
