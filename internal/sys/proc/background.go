package proc

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// reportTo is the descriptor at which a program in the background reports to the one that started
// it.
const reportTo = 3

// Start starts this program once more, with the terminal, and returns the exit status that it
// reports by Started.Leave, or has when it ends before. The end of ctx ends it.
func Start(ctx context.Context, args []string) (exit int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	hear, say, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer hear.Close()
	cmd := exec.Command(self)
	cmd.Args, cmd.ExtraFiles = args, []*os.File{say}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Start()
	say.Close()
	if err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, func() {
		time.Sleep(moment) // a terminal's signal goes to both
		_ = cmd.Process.Signal(syscall.SIGTERM)
	})()
	status := make([]byte, 1)
	if _, err := io.ReadFull(hear, status); err == nil {
		return int(status[0]), cmd.Process.Release()
	}
	err = cmd.Wait()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		if how := ended.Sys().(syscall.WaitStatus); how.Signaled() {
			return ExitOf(how.Signal()), nil
		}
		return ended.ExitCode(), nil
	}
	return 0, err
}

// Started is a program that was started by Start.
type Started struct{ say *os.File }

// NewStarted is called in such a program, before it starts others.
func NewStarted() Started {
	syscall.CloseOnExec(reportTo)
	return Started{os.NewFile(reportTo, "report")}
}

// Leave takes the process from its terminal, and reports an exit status to the one that started it,
// which ends then. After an error no process waits for it.
func (s Started) Leave(exit int) error {
	defer s.say.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for standard := range 3 {
		if err := redirect(int(null.Fd()), standard); err != nil {
			return err
		}
	}
	if _, err := syscall.Setsid(); err != nil && !errors.Is(err, syscall.EPERM) { // it leads a group already
		return err
	}
	_, err = s.say.Write([]byte{byte(exit)})
	return err
}
