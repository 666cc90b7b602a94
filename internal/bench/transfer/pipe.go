//go:build linux

package transfer

import (
	"context"
	"os"
	"strings"

	"sshpace/internal/bench/flow"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/file"
)

// side moves size bytes through as many sessions as there are destinations, at the same time; each
// has its share.
func (b *Ground) side(ctx context.Context, o Options, size int64, to ...openssh.Destination) (Reading, error) {
	share := max(1, size/int64(len(to)))
	from, err := b.Here.Of(share)
	if err != nil {
		return Reading{}, err
	}
	if o.Direction == record.Download {
		return b.receive(ctx, o, to, from, share)
	}
	return b.send(ctx, o, to, from, share)
}

func (b *Ground) send(ctx context.Context, o Options, to []openssh.Destination, from string, share int64) (Reading, error) {
	var all []Process
	var sinks []*flow.Process
	var answers []func() string
	for _, destination := range to {
		s, err := b.sink()
		if err != nil {
			return Reading{}, err
		}
		command := "wc -c"
		if s != nil {
			defer s.Close()
			command = s.Command()
		}
		in, err := os.Open(from)
		if err != nil {
			return Reading{}, err
		}
		p := b.command(destination, o.Suite, command)
		p.Stdin = in
		said := func() string { return "" }
		if s == nil {
			if p.Stdout, said, err = answer(); err != nil {
				return Reading{}, err
			}
		}
		all, sinks, answers = append(all, p), append(sinks, s), append(answers, said)
	}
	reading, err := b.Run(ctx, all...)
	closeAll(all)
	for i, s := range sinks {
		said := answers[i]()
		if err == nil {
			err = counted(s, share, said)
		}
		if s != nil {
			reading.Server = max(0, reading.Server-s.Cost())
		}
	}
	return reading, err
}

func (b *Ground) receive(ctx context.Context, o Options, to []openssh.Destination, from string, share int64) (Reading, error) {
	path, err := b.There.Payload(ctx, from, share)
	if err != nil {
		return Reading{}, err
	}
	var all []Process
	var received []func() int64
	for _, destination := range to {
		read, write, err := os.Pipe()
		if err != nil {
			return Reading{}, err
		}
		p := b.command(destination, o.Suite, "exec cat "+path)
		p.Stdout = write
		all, received = append(all, p), append(received, drain(read))
	}
	reading, err := b.Run(ctx, all...)
	closeAll(all)
	for _, got := range received {
		if n := got(); err == nil {
			err = Arrived("verification", n, share)
		}
	}
	return reading, err
}

// closeAll closes our copies of the processes' inputs and outputs.
func closeAll(all []Process) {
	for _, p := range all {
		for _, f := range []*os.File{p.Stdin, p.Stdout} {
			if f != nil {
				f.Close()
			}
		}
	}
}

// answer returns a pipe for the output of a command; said returns the text once the pipe is closed
// here.
func answer() (out *os.File, said func() string, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	answer := make(chan []byte, 1)
	go func() {
		defer read.Close()
		text, _ := file.ReadAll(read, "the host's answer", maxAnswer)
		answer <- text
	}()
	return write, func() string { return strings.TrimSpace(string(<-answer)) }, nil
}

// cat copies a file through a pipe.
func cat(b *Ground, _ string, o Options, from, target string, _ bool) (p Process, err error) {
	to := b.destination(o)
	if o.Direction == record.Upload {
		p = b.command(to, o.Suite, "cat >"+target)
		p.Stdin, err = os.Open(from)
		return p, err
	}
	p = b.command(to, o.Suite, "exec cat "+from)
	p.Stdout, err = os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return p, err
}
