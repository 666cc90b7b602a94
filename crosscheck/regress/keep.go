//go:build linux

package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// forKeep notes an option for kept.
func (c *call) forKeep(letter, value string) {
	switch letter {
	case "-M":
		c.master = true
	case "-S":
		c.control = value
	case "-f":
		c.background = true
		c.others = append(c.others, "-n")
	default:
		c.none = c.none || letter == "-N"
		c.asks = c.asks || strings.Contains("-G-Q-V", letter)
		c.others = append(c.others, letter+value)
	}
}

// client is the ssh that uses kept connections.
func client() string { return cmp.Or(os.Getenv("REGRESS_CLIENT"), os.Getenv("REGRESS_SSH")) }

// kept is the call by ssh, over a connection that sshpace keeps.
func (c *call) kept() (code int, err error) {
	if c.background && os.Getenv("REGRESS_BEHIND") == "" {
		return behind()
	}
	dir, err := os.MkdirTemp("", "regress")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := c.throughPort(dir); err != nil {
		return 0, err
	}
	path := cmp.Or(c.control, filepath.Join(dir, "m"))
	keep := exec.Command(os.Getenv("REGRESS_SSHPACE"), slices.Concat([]string{"keep", "--foreground", "--retry-for", "0", "-oControlPath=" + path, "-F", cmp.Or(c.config, "none")}, c.options, []string{"-w", c.host})...)
	keep.Stderr = c.messages()
	keep.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := keep.Start(); err != nil {
		return 0, err
	}
	over := make(chan error, 1)
	go func() { over <- keep.Wait() }()
	const pause = 5 * time.Millisecond
	for {
		if _, err := os.Lstat(path); err == nil {
			break
		}
		select {
		case <-over:
			return 255, nil
		case <-time.After(pause):
		}
	}
	ssh := func(args ...string) *exec.Cmd {
		call := exec.Command(client(), slices.Concat([]string{"-oControlMaster=no", "-S" + path}, c.others, args)...)
		call.Stdin, call.Stdout, call.Stderr = os.Stdin, os.Stdout, os.Stderr
		return call
	}
	if c.none { // nothing runs, but forwards
		if ssh("-Oforward", c.host).Run() != nil && c.strict {
			code = 255
			_ = keep.Process.Signal(syscall.SIGTERM)
		}
		ready()
		<-over
		return code, nil
	}
	ready()
	call := ssh(append([]string{c.host}, c.command...)...)
	if err = carryOut(call); err == nil {
		code = call.ProcessState.ExitCode()
	}
	_ = keep.Process.Signal(syscall.SIGTERM)
	<-over
	return code, err
}

// behind does the call in another process, and ends when that is ready.
func behind() (code int, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Env = append(os.Environ(), "REGRESS_BEHIND=1")
	again.Stderr, again.ExtraFiles = os.Stderr, []*os.File{w}
	again.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := again.Start(); err != nil {
		return 0, err
	}
	w.Close()
	if n, _ := r.Read(make([]byte, 1)); n == 0 {
		return 255, nil
	}
	return 0, nil
}

// ready reports to behind.
func ready() {
	if os.Getenv("REGRESS_BEHIND") != "" {
		f := os.NewFile(3, "ready")
		_, _ = f.Write([]byte{0})
		f.Close()
	}
}
