package keep

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sshpace/internal/ssh/mux"
	"sshpace/internal/sys/tcp"
)

// A keep answers at a socket of its own, beside those of hosts: a request is a line of JSON, and so
// is the answer; see refresh for the lines of that.
const (
	controlName = "control-"
	// maxRequest bounds a request, in bytes.
	maxRequest = 16 << 20
	// requestTime is the time for a request to come.
	requestTime = 10 * time.Second
)

// The requests.
const (
	askList = "list"
	askStop = "stop"
	askLog  = "log"

	askRefresh = "refresh"
)

// request is a request about hosts; about all of them if there is none.
type request struct {
	Ask   string   `json:"ask"`
	Hosts []string `json:"hosts,omitempty"`
}

func (r *request) about(name string) bool { return len(r.Hosts) == 0 || slices.Contains(r.Hosts, name) }

// Report describes a keep and its hosts.
type Report struct {
	PID   int        `json:"pid"`
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until,omitempty"` // the hard end
	Hosts []Host     `json:"hosts"`
}

// Host is a host of a Report.
type Host struct {
	Host     string     `json:"host"`
	State    State      `json:"state"`
	Address  string     `json:"address,omitempty"`
	Socket   string     `json:"socket,omitempty"`
	Since    *time.Time `json:"since,omitempty"` // of the login
	Sessions int        `json:"sessions"`
	IdleNS   int64      `json:"idle_ns"`
	Received int64      `json:"bytes_received"` // of all connections to it
	Sent     int64      `json:"bytes_sent"`
	Lost     *time.Time `json:"lost,omitempty"` // when a connection was lost last
	Why      string     `json:"why,omitempty"`  // it is not there
	Next     *time.Time `json:"next,omitempty"` // when it is tried again
}

// Control answers requests until the end of the Keeper.
func (k *Keeper) Control() error {
	l, err := mux.Listen(filepath.Join(k.Directory, controlName+rand.Text()[:8]))
	if err != nil {
		return err
	}
	k.tasks.Go(func() {
		<-k.life.Done()
		l.Close()
	})
	k.tasks.Go(func() {
		for conn := range tcp.Accepted(l) {
			k.tasks.Go(func() { k.serve(l.Path, conn.(*net.UnixConn)) })
		}
	})
	return nil
}

// serve answers a request.
func (k *Keeper) serve(path string, conn *net.UnixConn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(requestTime))
	var r request
	in := bufio.NewReader(io.LimitReader(conn, maxRequest))
	line, err := in.ReadBytes('\n')
	if mux.CheckOwner(path, conn) != nil || err != nil || json.Unmarshal(line, &r) != nil {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(answerTime))
	var answer any
	switch r.Ask {
	case askList:
		answer = []Report{k.report(&r)}
	case askStop:
		answer = k.stop(&r)
	case askLog:
		answer = k.happened(&r)
	case askRefresh:
		k.refresh(&r, conn, in)
		return
	default:
		return
	}
	_ = json.NewEncoder(conn).Encode(answer)
}

// happened returns the events of hosts.
func (k *Keeper) happened(r *request) []Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(k.events), func(e Event) bool { return !r.about(e.Host) })
}

// report lists hosts.
func (k *Keeper) report(r *request) Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := Report{PID: os.Getpid(), Since: k.began, Until: given(k.until()), Hosts: []Host{}}
	for name, p := range k.places {
		if !r.about(name) || p.state == "" {
			continue
		}
		h := Host{Host: name, State: p.state, Lost: given(p.lost), Why: p.why, Received: p.in, Sent: p.out}
		if p.state == Back {
			h.Next = given(p.due)
		}
		for _, c := range p.connections() {
			in, out := c.traffic()
			h.Received, h.Sent = h.Received+in, h.Sent+out
			h.Sessions += c.server.Sessions()
		}
		if c := p.held; c != nil {
			h.Address, h.Socket, h.Since = c.conn.Result.Addr, c.path, &c.since
			h.IdleNS = c.server.Idle().Nanoseconds()
			if c.server.Silent() {
				h.State = Silent
			}
		}
		all.Hosts = append(all.Hosts, h)
	}
	return all
}

// given returns a time that is known.
func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// until returns the hard end; zero if there is none.
func (k *Keeper) until() time.Time {
	if k.For == 0 {
		return time.Time{}
	}
	return time.Now().Add(k.For - k.age())
}

// stop ends the connections to hosts, and returns which ones those are, when they have ended.
func (k *Keeper) stop(r *request) (names []string) {
	var ends []<-chan struct{}
	k.mu.Lock()
	for name, p := range k.places {
		if !r.about(name) {
			continue
		}
		names = append(names, name)
		delete(k.places, name)
		for _, c := range p.connections() {
			c.drop(errStop)
			ends = append(ends, c.gone)
		}
	}
	k.mu.Unlock()
	for _, end := range ends {
		<-end
	}
	k.wake()
	return names
}

// A Keep is a keep that lives.
type Keep struct{ path string }

// Living returns the keeps whose sockets are in a directory.
func Living(directory string) (all Keeps, err error) {
	entries, err := os.ReadDir(directory)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		path := filepath.Join(directory, e.Name())
		if strings.HasPrefix(e.Name(), controlName) && errors.Is(mux.Taken(path), mux.ErrLives) {
			all = append(all, Keep{path})
		}
	}
	return all, err
}

// answerTime is how long a keep, a process of this machine, may take for an answer.
const answerTime = 20 * time.Second

// ask makes a request about hosts, about all of them if names is empty. Its answer is a list.
func ask[T any](p Keep, what string, names []string) (answer []T, err error) {
	conn, err := p.dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTime))
	if err = json.NewEncoder(conn).Encode(request{what, names}); err == nil {
		err = json.NewDecoder(conn).Decode(&answer)
	}
	return answer, err
}

// dial connects to it.
func (p Keep) dial() (*net.UnixConn, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: p.path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := mux.CheckOwner(p.path, conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
