package dial

import (
	"context"
	"sync"
	"time"

	"sshpace/internal/fleet"
)

// kept holds connections between two commands on the same targets. Each has one user at a time: a
// second session that ends a command would end the other commands of its connection, too.
type kept struct {
	mu    sync.Mutex
	most  int // 0: none is kept
	links map[*Target]*link
}

// Keep keeps the connections to at most that many targets after their commands, until Close: the
// next command there costs two round trips. It is called before the first command.
func (e *Engine) Keep(most int) { e.kept.most, e.kept.links = most, map[*Target]*link{} }

// take returns the connection to a target that is still alive, nil if there is none.
func (k *kept) take(t *Target) *link {
	k.mu.Lock()
	l := k.links[t]
	delete(k.links, t)
	k.mu.Unlock()
	if l != nil && within(l.Done(), 0) {
		l.Close()
		return nil
	}
	return l
}

// leave keeps a connection, or closes it: after a command that was ended, or is lost, it is not
// known to be good.
func (k *kept) leave(t *Target, l *link, o *fleet.Outcome) {
	k.mu.Lock()
	keeps := o.Class == fleet.NoFailure && len(k.links) < k.most && k.links[t] == nil
	if keeps {
		k.links[t] = l
	}
	k.mu.Unlock()
	if !keeps {
		l.Close()
	}
}

func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.links {
		l.Close()
	}
	k.links, k.most = nil, 0
}

// onKept runs cmd over a kept connection; ok is false if there is none, or if it turned out to be
// dead before the command could run.
func (e *Engine) onKept(ctx context.Context, t *Target, cmd fleet.Command, a fleet.Attempt) (o fleet.Outcome, ok bool) {
	l := e.kept.take(t)
	if l == nil {
		return o, false
	}
	if a.Admit(ctx, "") != nil {
		o = failed(interrupted(ctx), fleet.RanNo)
		e.kept.leave(t, l, &o)
		return o, true
	}
	l.usable = time.Now().Add(t.connectTimeout())
	o = e.runOn(ctx, l, t, cmd, a)
	return o, o.Ran != fleet.RanNo || ctx.Err() != nil
}
