//go:build linux

// Command regress stands in the place of ssh for OpenSSH's own tests (./regress builds and starts
// it): it turns an ssh command line into `sshpace run`, hands on standard output and error byte by
// byte, and ends as ssh would. A ProxyCommand becomes a port on loopback, where every connection
// starts that command, so that the native engine has somewhere to connect to. What run cannot be,
// such as a port forwarding or a question about ssh's lists, is left to ssh itself.
//
// With the engine "keep" it is ssh after all, over a connection that `sshpace keep` holds: a master
// that a test starts is one of sshpace's, and each other call has one for itself.
//
// REGRESS_SSH and REGRESS_SSHPACE name both programs, REGRESS_ENGINE the engine, REGRESS_CLIENT the
// ssh that uses kept connections where that is another one; a line for every call goes to the file
// REGRESS_CALLS: "run" or "ssh".
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sshpace/internal/ssh/openssh"
)

// call is a command line of ssh's.
type call struct {
	options []string // as ssh and run both take them, each with its value
	config  string   // -F
	log     string   // -E
	input   bool     // standard input goes to the command
	host    string
	command []string
	onlySSH bool // run cannot be it

	// For keep:
	others     []string // options for ssh: all but those of masters and -f
	control    string   // -S
	asks       bool     // only for what ssh knows
	master     bool     // -M
	none       bool     // -N
	background bool     // -f
	strict     bool     // ExitOnForwardFailure
}

// settings are switches that are settings for run.
var settings = map[string]string{"-C": "Compression=yes", "-c": "Ciphers=", "-m": "MACs=", "-b": "BindAddress=", "-I": "PKCS11Provider=", "-B": "BindInterface="}

// meaningless are switches of which run needs or knows nothing: its sessions are so anyway.
const meaningless = "TaxkyqveP2"

func parse(args []string) (c call) {
	c.input = true
	for len(args) > 0 {
		switch arg := args[0]; {
		case arg == "--":
			args = args[1:]
		case len(arg) > 1 && arg[0] == '-':
			args = c.option(args)
		case c.host == "":
			c.host, args = arg, args[1:]
		default:
			c.command, args = args, nil
		}
	}
	c.onlySSH = c.onlySSH || c.host == "" || len(c.command) == 0
	return c
}

// option takes the first argument, and its value, which may be the next one.
func (c *call) option(args []string) (rest []string) {
	rest = args[1:]
	for _, option := range openssh.SplitOptions(args[0], openssh.WithValue) {
		letter, value := option[:2], option[2:]
		if strings.Contains(openssh.WithValue, letter[1:]) && value == "" && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		setting, isSetting := settings[letter]
		c.forKeep(letter, value)
		switch {
		case letter == "-F":
			c.config = value
		case letter == "-E":
			c.log = value
		case letter == "-n":
			c.input = false
		case isSetting:
			c.set(setting + value)
		case letter == "-o":
			c.set(value)
		case strings.Contains("-i-p-l-J", letter):
			c.options = append(c.options, letter+value)
		case letter == "-4", letter == "-6":
			c.options = append(c.options, letter)
		case !strings.Contains(meaningless, letter[1:]):
			c.onlySSH = true
		}
	}
	return rest
}

// set is a setting of the command line. "no" as StrictHostKeyChecking has run refuse a new key, so
// that it is told to record the key as ssh does; agents are forwarded by ssh alone.
func (c *call) set(setting string) {
	keyword, value, _ := strings.Cut(strings.ToLower(setting), "=")
	switch {
	case keyword == "forwardagent" && value != "no":
		c.onlySSH = true
	case keyword == "controlmaster":
		c.master = value != "no"
	case keyword == "controlpath":
		_, c.control, _ = strings.Cut(setting, "=")
	case keyword == "exitonforwardfailure":
		c.strict = value == "yes"
	case keyword == "stricthostkeychecking" && value == "no":
		setting = "StrictHostKeyChecking=accept-new"
	}
	c.options = append(c.options, "-o"+setting)
}

func main() {
	c := parse(os.Args[1:])
	code, err := 0, error(nil)
	keep := strings.HasPrefix(os.Getenv("REGRESS_ENGINE"), "keep")
	switch {
	case keep && !c.asks && (c.master || c.control == ""):
		note("run")
		code, err = c.kept()
	case keep && slices.Contains(c.others, "-Qcompression"):
		fmt.Println("none") // a master of sshpace's has no other
	case keep && !c.asks:
		err = become(client())
	case keep || c.onlySSH:
		err = become(os.Getenv("REGRESS_SSH"))
	default:
		note("run")
		code, err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "regress:", err)
		code = 255
	}
	os.Exit(code)
}

// become goes on as ssh.
func become(program string) error {
	note("ssh")
	return syscall.Exec(program, append([]string{"ssh"}, os.Args[1:]...), os.Environ())
}

func note(what string) {
	f, err := os.OpenFile(os.Getenv("REGRESS_CALLS"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		fmt.Fprintln(f, what)
		f.Close()
	}
}

// run is the call by sshpace.
func (c *call) run() (code int, err error) {
	dir, err := os.MkdirTemp("", "regress")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := c.throughPort(dir); err != nil {
		return 0, err
	}
	args := []string{"run", "--engine", os.Getenv("REGRESS_ENGINE"), "--no-record", "-q", "--retry-for", "0", "--maxrc", "--max-output", "0", "--dir", filepath.Join(dir, "output")}
	if c.config != "" {
		args = append(args, "-F", c.config)
	}
	if c.input {
		args = append(args, "--stdin")
	}
	run := exec.Command(os.Getenv("REGRESS_SSHPACE"), slices.Concat(args, c.options, []string{"-w", c.host, "--", strings.Join(c.command, " ")})...)
	run.Stdin = os.Stdin
	log, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		return 0, err
	}
	run.Stderr = log
	if err := carryOut(run); err != nil {
		return 0, err
	}
	hand := func(to io.Writer, pattern string) {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range paths {
			if f, err := os.Open(path); err == nil {
				_, _ = io.Copy(to, f) // a reader that has left is its own affair
				f.Close()
			}
		}
	}
	hand(os.Stdout, "output/*.out")
	hand(os.Stderr, "output/*.err")
	if code = run.ProcessState.ExitCode(); code == 255 || code < 0 {
		hand(c.messages(), "said") // why there is no exit status
		code = 255
	}
	return code, nil
}

// carryOut starts a program that gets our signals, and waits for its end.
func carryOut(program *exec.Cmd) error {
	if err := program.Start(); err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		for s := range signals {
			_ = program.Process.Signal(s)
		}
	}()
	err := program.Wait()
	if _, isExit := errors.AsType[*exec.ExitError](err); isExit {
		return nil
	}
	return err
}

// messages is where ssh writes what it has to say.
func (c *call) messages() io.Writer {
	if c.log == "" {
		return os.Stderr
	}
	f, err := os.OpenFile(c.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return os.Stderr
	}
	return f
}

// throughPort replaces the ProxyCommand of the host, if it has one, by a port behind which it runs.
func (c *call) throughPort(dir string) error {
	if c.config == "" || c.config == "none" {
		return nil
	}
	asked := exec.Command(os.Getenv("REGRESS_SSH"), slices.Concat([]string{"-G", "-F", c.config}, c.options, []string{c.host})...)
	asked.Stderr = io.Discard
	answer, err := asked.Output()
	if err != nil {
		return nil // a mistake, which is for run to find
	}
	said := map[string]string{}
	for line := range strings.Lines(string(answer)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		said[name] = value
	}
	command := strings.NewReplacer("%%", "%", "%h", said["hostname"], "%p", said["port"], "%r", said["user"], "%n", c.host).Replace(said["proxycommand"])
	if command == "" || command == "none" {
		return nil
	}
	text, err := os.ReadFile(c.config)
	if err != nil {
		return err
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if word, _, _ := strings.Cut(strings.TrimSpace(strings.ToLower(line)), " "); word != "proxycommand" {
			kept.WriteString(line)
		}
	}
	at, err := listen(net.JoinHostPort(said["hostname"], said["port"]), command)
	if err != nil {
		return err
	}
	if said["hostkeyalias"] == "" { // the server is known by the name that leads to the command
		c.options = append(c.options, "-oHostKeyAlias="+said["hostname"])
	}
	ours := []string{"-oHostName=" + at.IP.String(), fmt.Sprint("-oPort=", at.Port)}
	c.options = append(ours, slices.DeleteFunc(c.options, func(option string) bool { return strings.HasPrefix(strings.ToLower(option), "-oproxycommand") })...)
	c.config = filepath.Join(dir, "config")
	return os.WriteFile(c.config, []byte(kept.String()), 0o600)
}

// listen starts a command for every connection to a port, as ssh starts a ProxyCommand. It is the
// port that the configuration names, which tests expand as %h and %p, unless that is in use or on
// another machine.
func listen(wanted, command string) (at *net.TCPAddr, err error) {
	l, err := net.Listen("tcp4", wanted)
	if err != nil {
		l, err = net.Listen("tcp4", "127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			go serve(raw, command)
		}
	}()
	return l.Addr().(*net.TCPAddr), nil
}

func serve(raw net.Conn, command string) {
	defer raw.Close()
	server := exec.Command("/bin/sh", "-c", "exec "+command)
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		return
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return
	}
	if err := server.Start(); err != nil {
		return
	}
	go func() { _, _ = io.Copy(in, bufio.NewReader(raw)); in.Close() }()
	_, _ = io.Copy(raw, out)
	_ = server.Wait()
}
