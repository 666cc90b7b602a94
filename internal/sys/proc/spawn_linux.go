package proc

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Spawner starts processes that the kernel kills when sshpace dies, even by kill -9. The
// parent-death signal belongs to the thread that forked (prctl(2) PR_SET_PDEATHSIG), so one thread,
// locked, starts them all.
type Spawner struct {
	requests chan func()
	abandon  func() // for processes that its children leave behind
}

// NewSpawner starts the thread. Close ends it, and with it all processes that are still running. A
// spawner that is opened while another one is open is closed before that.
func NewSpawner() *Spawner {
	s := &Spawner{requests: make(chan func()), abandon: adopt()}
	go s.serve()
	return s
}

// serve starts the requested commands, on one thread that ends with it. Go never ends the main
// thread, so that one is left: while this goroutine holds it, no other one can get it.
func (s *Spawner) serve() {
	runtime.LockOSThread() // never unlocked, unless it is the main thread
	if syscall.Gettid() == os.Getpid() {
		done := make(chan struct{})
		go func() { defer close(done); s.serve() }()
		<-done
		runtime.UnlockOSThread()
		return
	}
	for request := range s.requests {
		request()
	}
}

// Start starts cmd in its own process group, so that Ctrl-C reaches sshpace alone; if cmd asks for
// its own session, it gets one. The caller must Wait for it.
func (s *Spawner) Start(cmd *exec.Cmd) error { return s.start(cmd, cmd.Start) }

// StartOn is Start on one core, which cmd does not leave.
func (s *Spawner) StartOn(core int, cmd *exec.Cmd) error {
	return s.start(cmd, func() error { return OnCore(core, cmd.Start) })
}

func (s *Spawner) start(cmd *exec.Cmd, start func() error) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid // the leader of a session leads its group
	result := make(chan error)
	s.requests <- func() { result <- start() }
	return <-result
}

// Close ends the thread.
func (s *Spawner) Close() {
	close(s.requests)
	s.abandon()
}
