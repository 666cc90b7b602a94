//go:build linux

package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/wire"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
	"sshpace/internal/sys/tcp"
)

// Site is where the servers of a run start: its private directory, with their keys, its processes,
// which end with sshpace, and programs of ours.
type Site struct {
	Dir     *safedir.Workdir
	Spawner *proc.Spawner
	Helper  func(program string) []string // command line of a helper program of ours
	Keys    Keys
}

// Server listens on loopback and starts a server process per connection.
type Server struct {
	listener *tcp.OwnListener
	site     Site
	argv     []string
	start    func(*exec.Cmd) error
	log      *os.File

	mu    sync.Mutex
	live  map[*Conn]bool
	seen  int64         // bytes of the log that are about earlier connections
	swift bool          // the next connections do without the kernel's delays
	used  time.Duration // CPU time of connections that are over

	starting sync.Mutex // held from before a server process starts until next has it
	next     chan *Conn // the connection that was accepted last
	done     sync.WaitGroup
}

// Conn is one connection to the server.
type Conn struct {
	*proc.Child
	settled chan struct{}
}

// Start listens on a random loopback port, for connections of our own user. argv is the command
// line that serves the connection on its standard input; its standard error goes to a file of the
// run.
func (site Site) Start(argv []string) (*Server, error) {
	return listen(&Server{site: site, argv: argv, start: site.Spawner.Start})
}

// Serve starts an SSH server, and returns it with its first bytes, for which it has limit.
func (site Site) Serve(ctx context.Context, argv []string, limit time.Duration) (*Server, wire.Greeting, error) {
	s, err := site.Start(argv)
	if err != nil {
		return nil, wire.Greeting{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	greeting, err := wire.Probe(ctx, net.JoinHostPort(s.Address()))
	if err != nil {
		return nil, greeting, errors.Join(fmt.Errorf("%w%s", err, s.Explained("")), s.Close())
	}
	s.Fresh(false)
	return s, greeting, nil
}

// Sshd returns the command line by which an sshd serves one connection of a run, by c, with a
// configuration of that name.
func (site Site) Sshd(ctx context.Context, sshd openssh.Program, c openssh.ServerConfig, name string) ([]string, error) {
	c.HostKey, c.AuthorizedKeys, c.Home, c.StrictModes, c.PAM = site.Keys.HostKey, site.Keys.AuthorizedKeys, site.Dir.Path, site.Dir.Strict, openssh.Locked(c.User)
	if _, err := sshd.Validate(ctx, c, site.Dir.File(name)); err != nil {
		return nil, err
	}
	return sshd.ServeOne(site.Dir.File(name)), nil
}

// On starts the same server once more, on its own port, with all its processes on one core.
func (s *Server) On(core int) (*Server, error) {
	return listen(&Server{site: s.site, argv: s.argv, start: func(cmd *exec.Cmd) error { return s.site.Spawner.StartOn(core, cmd) }})
}

func listen(s *Server) (_ *Server, err error) {
	s.log, err = s.site.Dir.OpenFile("server.log", os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if s.listener, err = tcp.ListenOwn(); err != nil {
		s.log.Close()
		return nil, err
	}
	s.live, s.next = map[*Conn]bool{}, make(chan *Conn, 1)
	s.done.Go(s.accept)
	return s, nil
}

// Address returns host and port.
func (s *Server) Address() (host, port string) {
	address := s.listener.Addr().(*net.TCPAddr)
	return address.IP.String(), strconv.Itoa(address.Port)
}

func (s *Server) accept() {
	for {
		tcp, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.mu.Lock()
		swift, live := s.swift, len(s.live)
		s.mu.Unlock()
		if live >= maxLive {
			tcp.Close()
			continue
		}
		conn, err := s.begin(tcp.(*net.TCPConn), swift)
		if err != nil {
			fmt.Fprintf(s.log, "sshpace: start server process: %v\n", err)
			tcp.Close() // after the reason is there to be read
			continue
		}
		s.done.Go(func() { conn.hurry(tcp.(*net.TCPConn), swift) })
	}
}

// begin serves a connection and offers it. A client may have its answer before the process is known
// to have started: whoever asks for connections then waits for this one.
func (s *Server) begin(tcp *net.TCPConn, swift bool) (*Conn, error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	conn, err := s.serve(tcp, swift)
	if err == nil {
		s.offer(conn)
	}
	return conn, err
}

// begun waits for a server process that is being started.
func (s *Server) begun() {
	s.starting.Lock()
	defer s.starting.Unlock()
}

// offer makes conn the newest connection, for Next.
func (s *Server) offer(conn *Conn) {
	for {
		select {
		case s.next <- conn:
			return
		default:
			select {
			case <-s.next:
			default:
			}
		}
	}
}

// maxLive is how many connections may be served at a time.
const maxLive = 512

// acknowledge is the interval at which we tell the kernel not to delay acknowledgements.
const acknowledge = time.Millisecond

// hurry keeps the kernel from delaying small packets until the connection is settled, and then
// releases the socket. During a login ssh and sshd write several small packets in a row: each waits
// (RFC 896) until the one before has been acknowledged, which takes 40 ms (RFC 1122 §4.2.3.2).
func (c *Conn) hurry(conn *net.TCPConn, swift bool) {
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil || !swift {
		return
	}
	ticker := time.NewTicker(acknowledge)
	defer ticker.Stop()
	for {
		_ = raw.Control(func(fd uintptr) { _ = tcp.QuickAck(fd) })
		select {
		case <-ticker.C:
		case <-c.settled:
			return
		case <-c.Ended:
			return
		}
	}
}

// Settled reports that the login is over: from now on the connection is left to itself. It may be
// called once.
func (c *Conn) Settled() { close(c.settled) }

// Serving returns the connection of a server process: the one that was started for it, or a child
// of that.
func (s *Server) Serving(pid int) *Conn {
	parent := parentOf(pid)
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.live {
		if conn.Process.Pid == pid || conn.Process.Pid == parent {
			return conn
		}
	}
	return nil
}

// parentOf returns the parent of a process (proc_pid_stat(5)); 0 if it is unknown.
func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	parent := 0
	_, rest, _ := strings.Cut(string(text), ") ")
	var state string
	_, _ = fmt.Sscan(rest, &state, &parent)
	return parent
}

// serve hands the socket to a new server process, which reads its configuration and its keys from
// the private directory; it first makes sure that this is still ours. A listening sshd leaves
// Nagle's algorithm on until the session starts; Go turns it off at once.
func (s *Server) serve(tcp *net.TCPConn, swift bool) (*Conn, error) {
	if err := s.site.Dir.Verify(); err != nil {
		return nil, err
	}
	if err := tcp.SetNoDelay(swift); err != nil {
		return nil, err
	}
	socket, err := tcp.File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = socket, socket, s.log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	child, err := proc.Begin(cmd, s.start)
	if err != nil {
		return nil, err
	}
	conn := &Conn{child, make(chan struct{})}
	s.mu.Lock()
	s.live[conn] = true
	s.mu.Unlock()
	s.done.Go(func() {
		<-conn.Ended
		s.mu.Lock()
		s.used += conn.CPU()
		delete(s.live, conn)
		s.mu.Unlock()
	})
	return conn, nil
}

// Fresh forgets earlier connections, such as a probe's, and their log. With swift the next
// connection logs in without the delays that the kernel would add, until it is Settled: for
// measurements that do not include the login.
func (s *Server) Fresh(swift bool) {
	s.begun()
	s.mu.Lock()
	if info, err := s.log.Stat(); err == nil {
		s.seen = info.Size()
	}
	s.swift = swift
	s.mu.Unlock()
	select {
	case <-s.next:
	default:
	}
}

// Next returns the newest connection since the last call; false when none comes before ctx ends.
func (s *Server) Next(ctx context.Context) (*Conn, bool) {
	s.begun()
	select {
	case conn := <-s.next:
		return conn, true
	case <-ctx.Done():
		return nil, false
	}
}

// Grace is the time for a server process to notice that its client is gone. It does so at once,
// unless the machine is so busy that it gets no turn; an earlier kill would miss CPU time that it
// would have used.
const Grace = 5 * time.Second

// Leave waits until the server process of the connection is gone, killing it after grace, and
// returns the CPU time of it and all its children.
func (c *Conn) Leave(grace time.Duration) time.Duration {
	if !c.Await(grace) {
		c.Kill()
	}
	return c.CPU()
}

// settlePoll is the interval at which Settle looks.
const settlePoll = time.Millisecond

// Settle waits until all connections are over, killing the remaining ones after grace, and returns
// the CPU time of all connections that the server has had.
func (s *Server) Settle(grace time.Duration) time.Duration {
	for end := time.Now().Add(grace); ; time.Sleep(settlePoll) {
		s.mu.Lock()
		used, live := s.used, len(s.live)
		if late := time.Now().After(end); late {
			for conn := range s.live {
				proc.KillGroup(conn.Cmd)
			}
		}
		s.mu.Unlock()
		if live == 0 {
			return used
		}
	}
}

// routine lists the beginnings of log lines that explain nothing.
var routine = []string{"Accepted ", "Connection closed by", "Connection from", "Close session", "Disconnected from", "Received disconnect", "Starting session", "User child", "Server listening"}

// Explained adds the server's message to an error.
func (s *Server) Explained(why string) string {
	if tail := s.LogTail(); tail != "" {
		why += " (server: " + tail + ")"
	}
	return why
}

// LogTail returns the last line of server processes since Fresh that may explain a failure; "" if
// there is none.
func (s *Server) LogTail() string {
	const limit = 4 << 10
	info, err := s.log.Stat()
	if err != nil {
		return ""
	}
	s.mu.Lock()
	from := max(s.seen, info.Size()-limit)
	s.mu.Unlock()
	text := make([]byte, max(0, info.Size()-from))
	n, _ := s.log.ReadAt(text, from)
	for _, line := range slices.Backward(strings.Split(string(text[:n]), "\n")) {
		line = strings.TrimSpace(line)
		if line != "" && !slices.ContainsFunc(routine, func(r string) bool { return strings.HasPrefix(line, r) }) {
			return line
		}
	}
	return ""
}

// Close stops listening and ends all server processes.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.mu.Lock()
	for conn := range s.live {
		proc.KillGroup(conn.Cmd)
	}
	s.mu.Unlock()
	s.done.Wait()
	s.log.Close()
	return err
}
