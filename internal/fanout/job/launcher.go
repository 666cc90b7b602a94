package job

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/journal"
	"sshpace/internal/sys/safedir"
)

// Launcher takes batches of a pool from a hub, and runs their commands.
type Launcher struct {
	Bus        Bus
	Pool, Name string
	Version    string
	Lease      time.Duration // without a sign of life for that long it has lost its batches
	Policy     Policy
	State      string // path of its own directory
	Room       *fanout.Room
	// Open returns what runs the commands of a job.
	Open func(ctx context.Context, s *Spec) (ex fleet.Executor, done func(), err error)
	Say  func(text string) // reports an event, in a safe line
}

// launcher is one that runs.
type launcher struct {
	Launcher
	instance    string
	since       time.Time
	directory   *safedir.Directory
	drain, hard context.Context
	stop        context.CancelCauseFunc // ends drain

	opening          sync.Mutex // of a job
	mu               sync.Mutex
	changed          chan struct{} // fewer hosts wait
	waiting, running int           // hosts
	entries          int           // that were written
	said             bool          // that the hub keeps none
	jobs             map[string]*carried
	batches          map[string]*batch // by the subjects of their journals
}

// UsualLease is how long a launcher may be silent.
const UsualLease = 30 * time.Second

// ahead is how many hosts a launcher takes before they may log in: other launchers find the rest.
const ahead = 32

// Run takes batches until drain ends, and returns when all hosts that were started have ended. When
// hard ends, everything is dropped at once.
func (p Launcher) Run(drain, hard context.Context) error {
	l := &launcher{
		Launcher: p, instance: p.Name + "/" + strings.ToLower(rand.Text()[:12]), since: time.Now(), drain: drain, hard: hard,
		changed: make(chan struct{}, 1), jobs: map[string]*carried{}, batches: map[string]*batch{},
	}
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.alone(); err != nil {
		return err
	}
	l.drain, l.stop = context.WithCancelCause(drain)
	defer l.stop(nil)
	life, end := context.WithCancel(hard)
	var all, beside sync.WaitGroup
	l.Say(fmt.Sprintf("launcher %s takes hosts of pool %s", l.Name, l.Pool))
	beside.Go(func() { l.live(life) })
	beside.Go(func() { l.hear(life) })
	err = l.take(&all)
	all.Wait()
	end()
	beside.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.jobs {
		c.close()
	}
	if drain.Err() == nil && err == nil {
		err = context.Cause(l.drain)
	}
	return err
}

// take takes batches as long as more hosts can start.
func (l *launcher) take(all *sync.WaitGroup) error {
	for l.hasRoom() {
		w, err := l.Bus.Take(l.drain, l.Pool, l.Lease)
		switch {
		case err == nil:
		case l.drain.Err() != nil:
			return nil
		case errors.Is(err, ErrRefused):
			return err
		case err != nil:
			l.Say("the hub gives no batch: " + termsafe.Line(err.Error()))
			sched.For(l.drain, again)
			continue
		}
		begun := make(chan struct{})
		all.Go(func() { l.carry(w, sync.OnceFunc(func() { close(begun) })) })
		select {
		case <-begun:
		case <-l.drain.Done():
		}
	}
	return nil
}

// hasRoom waits until more hosts can start; it returns false if drain ends.
func (l *launcher) hasRoom() bool {
	for l.drain.Err() == nil {
		l.mu.Lock()
		room := l.waiting < ahead && l.waiting+l.running < l.Room.Size()
		l.mu.Unlock()
		if room {
			return true
		}
		select {
		case <-l.changed:
		case <-l.drain.Done():
		}
	}
	return false
}

// count adds to the hosts that wait and that run.
func (l *launcher) count(waiting, running int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting, l.running = l.waiting+waiting, l.running+running
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// lock makes this process the only one of its name on this machine.
func (l *launcher) lock() (unlock func(), err error) {
	if l.directory, err = safedir.Make(l.State); err != nil {
		return nil, err
	}
	path := filepath.Join(l.directory.Path(), "launcher.lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		f.Close()
		f, err = journal.Resume(path)
	}
	if _, busy := errors.AsType[*fault.Error](err); busy {
		err = fault.Usage("give this one another --name", "the launcher %s of pool %s runs already", l.Name, l.Pool)
	}
	if err != nil {
		l.directory.Close()
		return nil, err
	}
	return func() { f.Close(); l.directory.Close() }, nil
}

func (l *launcher) alive() Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	host, _ := os.Hostname()
	data, _ := json.Marshal(Alive{Instance: l.instance, Host: host, Version: l.Version, Since: l.since, Running: l.running}) // which cannot fail
	return Entry{Subject: aliveSubject(l.Pool, l.Name), Data: data}
}

// alone refuses a name that a launcher on another machine has.
func (l *launcher) alone() error {
	var other Alive
	last, err := l.Bus.Last(l.drain, aliveSubject(l.Pool, l.Name))
	if errors.Is(err, ErrNoEntry) {
		return nil
	}
	host, _ := os.Hostname()
	if err == nil && json.Unmarshal(last.Data, &other) == nil && other.Host != host {
		return fault.Usage("give another --name, or wait 3 minutes if that one has ended", "pool %s has a launcher %s on %s", l.Pool, l.Name, termsafe.Line(other.Host))
	}
	return err
}

// live says that the launcher is alive, until ctx ends. It takes nothing more if another one says
// so under its name.
func (l *launcher) live(ctx context.Context) {
	for said := false; ctx.Err() == nil; sched.For(ctx, l.Lease/3) {
		within, cancel := context.WithTimeout(ctx, l.Lease/3)
		e := l.alive()
		var other Alive
		if last, err := l.Bus.Last(within, e.Subject); said && err == nil && json.Unmarshal(last.Data, &other) == nil && other.Instance != l.instance {
			l.stop(fault.Usage("give one of them another --name", "pool %s has another launcher %s", l.Pool, l.Name))
		}
		said = l.Bus.Put(within, e) == nil || said // whoever waits for it notices
		cancel()
	}
}

// hear follows who stops jobs, until ctx ends.
func (l *launcher) hear(ctx context.Context) {
	for o := (FollowOptions{}); ctx.Err() == nil; sched.For(ctx, again) {
		for e, err := range l.Bus.Follow(ctx, strings.Join([]string{stopKind, l.Pool, ">"}, "."), o) {
			if err == nil {
				o.From = e.Seq + 1
				l.stopped(e)
			} else if ctx.Err() == nil {
				l.Say("the hub does not say which jobs are stopped: " + termsafe.Line(err.Error()))
			}
		}
	}
}

// stopped notes that a job is stopped.
func (l *launcher) stopped(e Entry) {
	_, id, level, _ := parts(e.Subject)
	var s Stop
	_ = json.Unmarshal(e.Data, &s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.jobs[id]; c != nil {
		c.stop(s, level)
	}
}

// carried is a job of which a launcher has batches.
type carried struct {
	Verified
	key      string // the ID under which it was offered
	refused  error  // why nothing of it runs; then nothing below is set
	room     *fanout.Room
	executor fleet.Executor
	seen     *seen

	enough, polite context.Context // end when nothing more starts, and when running commands are ended
	halt           context.CancelCauseFunc
	interrupt      context.CancelFunc
	close          func()
	users          int // guarded by the launcher's mu
}

// halted is why hosts of a job are not started by anybody any more.
type halted struct{ why string }

func (h *halted) Error() string { return h.why }

func (c *carried) stop(s Stop, level int) {
	if c.refused != nil {
		return
	}
	c.halt(&halted{cmp.Or(s.Why, "stopped by "+cmp.Or(s.By, "somebody"))})
	if level >= stopRunning {
		c.interrupt()
	}
}

// idle is how long a job without batches is kept ready.
const idle = time.Minute

// job returns a job, verified or refused. An error means that it cannot be read.
func (l *launcher) job(id string) (*carried, error) {
	l.opening.Lock()
	defer l.opening.Unlock()
	l.mu.Lock()
	c := l.jobs[id]
	if c != nil {
		c.users++
	}
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	all, err := load(l.drain, l.Bus, l.Pool, id)
	if _, missing := errors.AsType[*fault.Error](err); missing {
		err = fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if err != nil {
		return nil, err
	}
	signed := all[l.Pool]
	c = &carried{key: id, users: 1, close: func() {}}
	if c.Verified, c.refused = l.Policy.Verify(l.drain, signed, l.Pool, time.Now()); c.refused == nil && c.ID != id {
		c.refused = fmt.Errorf("it is job %s, offered as another", c.ID)
	}
	if c.refused == nil {
		if c.seen, err = openSeen(l.directory, &c.Verified, time.Now()); err != nil {
			return nil, err
		}
		c.refused = l.open(c)
	}
	if l.drain.Err() != nil {
		c.close()
		return nil, context.Cause(l.drain)
	}
	l.mu.Lock()
	l.jobs[id] = c
	l.mu.Unlock()
	if c.refused != nil {
		l.Say(fmt.Sprintf("job %s is refused: %s", id, termsafe.Line(c.refused.Error())))
		if json.Unmarshal(signed.Spec, &c.Spec) != nil { // its hosts get results
			return c, errUnreadable
		}
		return c, nil
	}
	l.Say(fmt.Sprintf("job %s of %s: %s", id, termsafe.Line(c.Signer), termsafe.Line(cmp.Or(c.Text, c.Line))))
	return c, l.asked(c)
}

// asked stops a job that was stopped before.
func (l *launcher) asked(c *carried) error {
	for level := range stopRunning + 1 {
		e, err := l.Bus.Last(l.drain, subject(stopKind, l.Pool, c.ID, level))
		if err == nil {
			l.stopped(e)
		} else if !errors.Is(err, ErrNoEntry) {
			return err
		}
	}
	return nil
}

// open makes a job ready.
func (l *launcher) open(c *carried) error {
	ex, done, err := l.Open(l.hard, &c.Spec)
	if err != nil {
		c.seen.file.Close()
		return err
	}
	c.executor, c.room = ex, l.Room.Within(c.Fanout)
	enough, expire := context.WithDeadlineCause(l.drain, c.Expires, &halted{"the job has expired"})
	c.enough, c.halt = context.WithCancelCause(enough)
	c.polite, c.interrupt = context.WithCancel(l.hard)
	c.close = sync.OnceFunc(func() {
		c.interrupt()
		c.halt(nil)
		expire()
		done()
		c.seen.file.Close()
	})
	return nil
}

// leave ends the use of a job by a batch.
func (l *launcher) leave(c *carried) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.users--; c.users > 0 {
		return
	}
	time.AfterFunc(idle, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if c.users == 0 && l.jobs[c.key] == c {
			delete(l.jobs, c.key)
			c.close()
		}
	})
}
