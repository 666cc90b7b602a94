package reach_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// misbehavior is what a server does from a step on.
type misbehavior struct {
	name string
	from sshtest.Step // before which it makes no sense
	do   func(*sshtest.Peer)
}

// stop says and reads nothing any more.
func stop(p *sshtest.Peer) { <-p.End }

// swallow reads what comes and says nothing.
func swallow(p *sshtest.Peer) { _, _ = io.Copy(io.Discard, p) }

// then does something and then swallows.
func then(do func(*sshtest.Peer) error) func(*sshtest.Peer) {
	return func(p *sshtest.Peer) {
		if do(p) == nil {
			swallow(p)
		}
	}
}

// flood says something without end, and reads nothing: at first so much that it fills every buffer
// on the way, then as much as leaves the other servers of the test room to run.
func flood(say func(*sshtest.Peer) error) func(*sshtest.Peer) {
	return func(p *sshtest.Peer) {
		_ = p.Conn.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		for i := 0; say(p) == nil; i++ {
			if i >= 5000 && i%100 == 0 {
				time.Sleep(50 * time.Millisecond)
			} else if i%100 == 99 {
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// times says something so often.
func times(n int, say func(*sshtest.Peer) error) func(*sshtest.Peer) error {
	return func(p *sshtest.Peer) error {
		for range n {
			if err := say(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// cut ends the connection at once: with a reset, or in order.
func cut(p *sshtest.Peer) { _ = p.Conn.Conn.(*net.TCPConn).SetLinger(0) }

func hangUp(p *sshtest.Peer) {
	if p.Conn.Conn.(*net.TCPConn).CloseWrite() == nil {
		swallow(p)
	}
}

func say(kind byte, numbers ...uint32) func(*sshtest.Peer) error {
	return func(p *sshtest.Peer) error { return p.Send(sshtest.Message(kind, numbers...)) }
}

// onChannel says something of the client's channel.
func onChannel(kind byte) func(*sshtest.Peer) error {
	return func(p *sshtest.Peer) error { return p.Send(sshtest.Message(kind, p.Channel)) }
}

func line(p *sshtest.Peer) error {
	_, err := io.WriteString(p.Conn.Conn, "all work and no play makes jack a dull boy\r\n")
	return err
}

func ignored(p *sshtest.Peer) error {
	return p.Send(append(sshtest.Message(sshtest.MsgIgnore, 1000), make([]byte, 1000)...))
}

func asks(p *sshtest.Peer) error { return p.Ask("what", true) }

func tells(p *sshtest.Peer) error { return p.Ask("what", false) }

func output(p *sshtest.Peer) error { return p.Data("early\n") }

func opens(p *sshtest.Peer) error {
	m := append(sshtest.Message(sshtest.MsgOpen, 9), "forwarded"...)
	return p.Send(append(m, sshtest.Message(0, 7, 1<<20, 1<<15)[1:]...))
}

// misbehaviors are all that a server may do at any step.
var misbehaviors = []misbehavior{
	{"stops", 0, stop},
	{"swallows", 0, swallow},
	{"cuts", 0, cut},
	{"hangs up", 0, hangUp},
	{"talks nonsense", 0, flood(line)},
	{"floods", sshtest.AtKeys, flood(ignored)},
	{"says nothing often", sshtest.AtKeys, then(times(100, ignored))},
	{"begins a key exchange", sshtest.AtKeys, then(func(p *sshtest.Peer) error { return p.Send(p.KexInit()) })},
	{"shows banners", sshtest.AtService, flood(func(p *sshtest.Peer) error {
		return p.Send(append(append(sshtest.Message(sshtest.MsgBanner, 6), "banner"...), 0, 0, 0, 0))
	})},
	{"lets in twice", sshtest.AtService, then(times(2, say(sshtest.MsgLoginSuccess)))},
	{"asks without reading", sshtest.AtLogin, flood(asks)},
	{"opens channels", sshtest.AtLogin, flood(opens)},
	{"asks often", sshtest.AtOpen, then(times(100, asks))},
	{"tells often", sshtest.AtOpen, then(times(100, tells))},
	{"talks early", sshtest.AtOpen, then(times(20, output))},
	{"talks without end", sshtest.AtOpen, flood(output)},
	{"answers often", sshtest.AtOpen, then(times(100, onChannel(sshtest.MsgSuccess)))},
	{"closes the channel", sshtest.AtOpen, then(onChannel(sshtest.MsgClose))},
	{"ends the output", sshtest.AtOpen, then(onChannel(sshtest.MsgEOF))},
	{"exits and stays", sshtest.AtOpen, then(func(p *sshtest.Peer) error { return p.Exit(3) })},
	{"opens the channel again", sshtest.AtOpen, then(func(p *sshtest.Peer) error {
		return p.Send(sshtest.Message(sshtest.MsgOpened, p.Channel, 5, 1<<20, 1<<15))
	})},
	{"takes more than there is", sshtest.AtOpen, flood(func(p *sshtest.Peer) error { return p.Send(sshtest.Message(sshtest.MsgWindow, p.Channel, 1<<31)) })},
}

// foe is a server that does something at a step.
type foe struct {
	name string
	*sshtest.Hostile
}

// foes are all misbehaviors from a step on: at all steps, or each at one that is drawn.
func (e engine) foes(t *testing.T, key ssh.Signer, from sshtest.Step) (all []foe) {
	random := rand.New(rand.NewPCG(seedtest.Drawn(t), 1))
	for _, m := range misbehaviors {
		first, last := max(m.from, from), sshtest.Steps-1
		if e.Drawn {
			first += sshtest.Step(random.IntN(int(last - first + 1)))
			last = first
		}
		for step := first; step <= last; step++ {
			all = append(all, foe{m.name + " at " + step.String(), &sshtest.Hostile{At: step, Do: m.do, HostKey: key}})
		}
	}
	return all
}

// random are servers that do several things at random, at random steps.
func random(t *testing.T, key ssh.Signer, from sshtest.Step) (all []foe) {
	count, seed := seedtest.Cases(t, 12)
	for i := range count {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		var names []string
		var acts []misbehavior
		step := from + sshtest.Step(rng.IntN(int(sshtest.Steps-from)))
		for range 1 + rng.IntN(4) {
			one := sayings[rng.IntN(len(sayings))]
			if one.from > step {
				continue
			}
			names, acts = append(names, one.name), append(acts, one)
		}
		last := lasts[rng.IntN(len(lasts))]
		how := strings.Join(append(names, last.name), ", ")
		version := []string{"", "SSH-2.0-OpenSSH_9.9", "SSH-2.0-dropbear_2024.86", "SSH-2.0-Go"}[rng.IntN(4)]
		all = append(all, foe{fmt.Sprintf("%s at %s as %q (seed %d, case %d)", how, step, version, seed, i), &sshtest.Hostile{At: step, Version: version, HostKey: key, Do: func(p *sshtest.Peer) {
			for _, a := range acts {
				a.do(p)
			}
			last.do(p)
		}}})
	}
	return all
}

// saying is a part of a random misbehavior.
func saying(name string, from sshtest.Step, n int, what func(*sshtest.Peer) error) misbehavior {
	return misbehavior{name, from, func(p *sshtest.Peer) { _ = times(n, what)(p) }}
}

var sayings = []misbehavior{
	saying("a line", 0, 1, line),
	saying("lines", 0, 50, line),
	saying("nothing", sshtest.AtKeys, 30, ignored),
	saying("a key exchange", sshtest.AtKeys, 1, func(p *sshtest.Peer) error { return p.Send(p.KexInit()) }),
	saying("new keys", sshtest.AtKeys, 1, say(sshtest.MsgNewKeys)),
	saying("a login", sshtest.AtService, 1, say(sshtest.MsgLoginSuccess)),
	saying("a question", sshtest.AtLogin, 1, asks),
	saying("questions", sshtest.AtLogin, 500, asks),
	saying("wishes", sshtest.AtLogin, 60, tells),
	saying("channels", sshtest.AtLogin, 40, opens),
	saying("answers", sshtest.AtLogin, 3, say(sshtest.MsgGlobalSuccess)),
	saying("output", sshtest.AtOpen, 1, output),
	saying("more output", sshtest.AtOpen, 500, output),
	saying("yes", sshtest.AtOpen, 1, onChannel(sshtest.MsgSuccess)),
	saying("no", sshtest.AtOpen, 1, onChannel(sshtest.MsgFailure)),
	saying("yes and yes", sshtest.AtOpen, 40, onChannel(sshtest.MsgSuccess)),
	saying("the end of output", sshtest.AtOpen, 1, onChannel(sshtest.MsgEOF)),
	saying("an exit", sshtest.AtOpen, 1, func(p *sshtest.Peer) error { return p.Exit(0) }),
	saying("a close", sshtest.AtOpen, 1, onChannel(sshtest.MsgClose)),
	saying("room", sshtest.AtOpen, 1, func(p *sshtest.Peer) error { return p.Send(sshtest.Message(sshtest.MsgWindow, p.Channel, 1<<20)) }),
}

// lasts are how random misbehaviors end.
var lasts = []misbehavior{
	{"stops", 0, stop}, {"stops", 0, stop}, {"swallows", 0, swallow}, {"swallows", 0, swallow}, {"cuts", 0, cut}, {"hangs up", 0, hangUp},
	{"asks without end", 0, flood(asks)}, {"talks without end", 0, flood(output)},
}

// prompt is how long a run may go on behind its end: the courtesy for commands, many times over,
// for a machine that is busy.
const prompt = time.Minute

// hostile: no run outlives its timeouts or an interrupt, whatever a server does or does not do, and
// at whatever step.
func (e engine) hostile(t *testing.T) {
	key := sshtest.NewKey(t)
	user, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	silent := fleet.Dialogue(func(ctx context.Context, _ host.Host, c fleet.Channel) error {
		_, err := io.Copy(c, io.LimitReader(endless{}, 8<<20))
		if err == nil {
			_, err = io.Copy(io.Discard, c)
		}
		return err
	})
	for _, c := range []struct {
		name    string
		from    sshtest.Step // where it differs from those above
		talk    fleet.Dialogue
		login   time.Duration
		command time.Duration
		once    bool // interrupted
		twice   bool
	}{
		{name: "timeouts", login: 2 * time.Second, command: time.Second},
		{name: "timeouts of a dialogue", from: sshtest.AtRequest, talk: silent, login: 2 * time.Second, command: time.Second},
		{name: "interrupt", from: sshtest.AtLogin, login: enough, once: true},
		{name: "interrupt of a dialogue", from: sshtest.AtRequest, talk: silent, login: enough, once: true},
		{name: "two interrupts", from: sshtest.AtRequest, login: enough, once: true, twice: true},
	} {
		if e.Brief && (c.talk != nil || c.once) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			from := max(c.from, e.From)
			foes := append(e.foes(t, key, from), random(t, key, from)...)
			s := servers{User: "tester", Key: user, HostKey: key.PublicKey(), ConnectTimeout: c.login}
			for _, f := range foes {
				s.Ports = append(s.Ports, f.Start(t))
			}
			ctx, hard := context.WithCancel(t.Context())
			defer hard()
			drain, soft := context.WithCancel(ctx)
			defer soft()
			began := make(chan time.Time, 1)
			gone := make([]chan struct{}, len(foes))
			for i := range gone {
				gone[i] = make(chan struct{})
			}
			if c.once {
				go func() {
					for i, f := range foes {
						select {
						case <-f.Reached():
						case <-gone[i]:
						}
					}
					began <- time.Now()
					if soft(); c.twice {
						hard()
					}
				}()
			} else {
				began <- time.Now()
			}
			late := map[int]time.Duration{}
			sink := &sshtest.Told{}
			sink.OnDone = func(r fleet.Result) {
				close(gone[r.Index])
				if limit := c.login + c.command + prompt; !c.once && r.Elapsed-r.Waited > limit {
					late[r.Index] = r.Elapsed
				}
			}
			cmd := fleet.Command{Line: "x", Dialogue: c.talk}
			if c.talk == nil {
				spool := fleet.SpoolBytes(make([]byte, 8<<20))
				defer spool.Close()
				cmd.Input = spool
			}
			results := e.run(ctx, t, s, fanout.Params{Drain: drain, CommandTimeout: c.command, MaxOutput: 1 << 20}, cmd, sink)
			if over := time.Since(<-began); c.once && over > prompt {
				t.Errorf("ended %v behind the interrupt", over)
			}
			for i, took := range late {
				t.Errorf("a server that %s was waited for %v", foes[i].name, took)
			}
			for i, r := range results {
				if r.Status() == fleet.OK && c.talk == nil && foes[i].At < sshtest.AtOpen {
					t.Errorf("a server that %s: %+v", foes[i].name, r)
				}
			}
		})
	}
}

// endless has no end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// cuts: a connection that is cut says whether the command or subsystem ran, and what may have run
// is not run again.
func (e engine) cuts(t *testing.T) {
	key := sshtest.NewKey(t)
	user, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	for name, do := range map[string]func(*sshtest.Peer){"reset": cut, "hung up": hangUp} {
		for _, cmd := range []fleet.Command{
			{Line: "true"},
			{Line: "sftp", Dialogue: func(context.Context, host.Host, fleet.Channel) error { return nil }},
		} {
			t.Run(name+", "+cmd.Line, func(t *testing.T) {
				s := servers{User: "tester", Key: user, HostKey: key.PublicKey()}
				var steps []sshtest.Step
				for step := e.From; step < sshtest.Steps; step++ {
					steps = append(steps, step)
					s.Ports = append(s.Ports, (&sshtest.Hostile{At: step, Do: do, HostKey: key}).Start(t))
				}
				for i, r := range e.run(t.Context(), t, s, fanout.Params{RetryFor: 50 * time.Millisecond}, cmd, &sshtest.Told{}) {
					ran, status := fleet.RanNo, fleet.Unreachable
					if steps[i] >= sshtest.AtRequest || steps[i] == sshtest.AtOpen && r.Ran != ran { // it had left, or it had not
						ran, status = fleet.RanUnknown, fleet.Failed
					}
					if cmd.Dialogue != nil && steps[i] > sshtest.AtRequest && r.Ran == fleet.RanYes { // it was granted, and says when it is over
						continue
					}
					if r.Ran != ran || r.Status() != status || r.Err == "" || ran != fleet.RanNo && (r.Attempts != 1 || r.Class != fleet.Lost) {
						t.Errorf("at %v: %+v", steps[i], r)
					}
				}
			})
		}
	}
}

// early: what a server says before it grants the command is output all the same, and so is what a
// command's end brings that is told before that.
func (e engine) early(t *testing.T) {
	key := sshtest.NewKey(t)
	user, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	rest := func(p *sshtest.Peer) {
		for _, act := range []func(*sshtest.Peer) error{
			output, output, onChannel(sshtest.MsgSuccess), output,
			func(p *sshtest.Peer) error { return p.Exit(3) }, onChannel(sshtest.MsgClose),
		} {
			if act(p) != nil {
				return
			}
		}
		swallow(p)
	}
	unanswered := func(p *sshtest.Peer) {
		for _, act := range []func(*sshtest.Peer) error{output, func(p *sshtest.Peer) error { return p.Exit(3) }, onChannel(sshtest.MsgClose)} {
			if act(p) != nil {
				return
			}
		}
		swallow(p)
	}
	var ports []int
	for _, do := range []func(*sshtest.Peer){rest, unanswered} {
		ports = append(ports, (&sshtest.Hostile{At: sshtest.AtRequest, Do: do, HostKey: key}).Start(t))
	}
	sink := &sshtest.Told{}
	results := e.run(t.Context(), t, servers{User: "tester", Key: user, HostKey: key.PublicKey(), Ports: ports}, fanout.Params{CommandTimeout: prompt}, fleet.Command{Line: "true"}, sink)
	want := []string{strings.Repeat("early\n", 3), "early\n"}
	for i, r := range results {
		if r.Exit != 3 || r.Class != fleet.NoFailure || sink.TextOf(i, fleet.Stdout) != want[i] {
			t.Errorf("got %+v, says %q", r, sink.TextOf(i, fleet.Stdout))
		}
	}
	if slices.ContainsFunc(results, func(r fleet.Result) bool { return r.Ran != fleet.RanYes }) {
		t.Error("what has told its end has run")
	}
	if e.NoExec { // ssh waits for the answer whatever else it is told
		e.endsUnasked(t, servers{User: "tester", Key: user, HostKey: key.PublicKey(), ConnectTimeout: time.Second}, key)
	}
}

// endsUnasked: a status that a server tells before it grants the command is not the end of that.
func (e engine) endsUnasked(t *testing.T, s servers, key ssh.Signer) {
	t.Helper()
	ends := func(p *sshtest.Peer) {
		_ = times(3, func(p *sshtest.Peer) error { return p.Exit(3) })(p)
		stop(p)
	}
	s.Ports = []int{(&sshtest.Hostile{At: sshtest.AtOpen, Do: ends, HostKey: key}).Start(t)}
	r := e.run(t.Context(), t, s, fanout.Params{}, fleet.Command{Line: "true"}, &sshtest.Told{})[0]
	if r.Ran == fleet.RanYes || r.Class != fleet.TimedOut || strings.Contains(r.Err, "may still run") != (r.Ran == fleet.RanUnknown) {
		t.Errorf("ends before there is a channel: %+v", r)
	}
}
