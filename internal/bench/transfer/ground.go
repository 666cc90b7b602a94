//go:build linux

package transfer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/flow"
	"sshpace/internal/record"
	"sshpace/internal/ssh/admit"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/relay"
)

// Ground is where methods move bytes: a bed, and a directory at either end.
type Ground struct {
	Runner
	Here   *Files                        // the payload, in a private directory in which other files may be made
	There  Place                         // the directory at the server
	Helper func(program string) []string // command line of a helper program of ours; nil: none at the server
	RTT    time.Duration                 // to a host; 0: unknown, or none
	Path   relay.Path                    // that lies between client and server, if it is ours
	Port   func() (string, error)        // a free port at this end
	Swept  []string                      // leftovers of killed runs on the host, which are removed now
	Ticket *admit.Ticket                 // of logins to a host that are watched; nil: they follow each other at once
	// Programs maps names of programs that copy files to their paths; "" is not installed.
	Programs map[string]string
}

// Options are shared by methods.
type Options struct {
	Suite       alg.Suite
	Direction   record.Direction
	Streams     int // of streams and multiplex
	Compression bool
	Files       int // number of files of FileBytes each, instead of one
	FileBytes   int64
}

// Place is a directory at the server.
type Place interface {
	// Path returns the path of a file of ours there.
	Path(name string) string
	// Payload makes a file of size bytes there, with the contents of from.
	Payload(ctx context.Context, from string, size int64) (path string, err error)
	// Same compares a file, or all files of a directory, with the sent ones.
	Same(ctx context.Context, path string, sent content) error
	// Read reads a file there, and Write writes size bytes, both without SSH; they return the time.
	Read(ctx context.Context, path string) (time.Duration, error)
	Write(ctx context.Context, size int64) (time.Duration, error)
	// Remove removes a file or a directory; it may be missing.
	Remove(ctx context.Context, path string) error
	// Lost returns the reason why the directory is gone; nil if it is there.
	Lost() error
}

// destination returns the server with the settings for these options.
func (b *Ground) destination(o Options) openssh.Destination {
	to := b.Destination
	if o.Compression {
		to.Instead = map[string]string{"Compression": "yes"}
	}
	return to
}

// command returns an ssh that runs a command at the server.
func (b *Ground) command(to openssh.Destination, suite alg.Suite, remote string) Process {
	return Process{Argv: append(b.SSH.Leading(to, suite, b.Connect), "--", to.Host, remote), Env: to.Env}
}

// here returns the path of a file of ours at this end.
func (b *Ground) here(name string) string { return filepath.Join(b.Here.Directory, name) }

// sink returns a command at the server that counts the arriving bytes; nil is one of the host's
// own, wc(1), which prints the count.
func (b *Ground) sink() (*flow.Process, error) {
	if b.Helper == nil {
		return nil, nil
	}
	b.serial++
	return flow.New(b.Helper("flow"), b.here(fmt.Sprintf("sink.%d", b.serial)), "sink")
}

// counted compares the received bytes with the sent ones; said is the output of the command.
func counted(s *flow.Process, size int64, said string) error {
	var got int64
	if s != nil {
		got = s.Bytes()
	} else if _, err := fmt.Sscan(said, &got); err != nil {
		return &Failure{"verification", "the host does not say how much arrived"}
	}
	return Arrived("verification", got, size)
}

// drain reads a pipe to its end and counts the bytes.
func drain(pipe *os.File) (wait func() int64) {
	done := make(chan int64, 1)
	flow.Resize(flow.Descriptor(pipe), 1<<20)
	go func() {
		defer pipe.Close()
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			done <- -1
			return
		}
		defer null.Close()
		n, _ := null.ReadFrom(pipe) // splice(2)
		done <- n
	}()
	return func() int64 { return <-done }
}
