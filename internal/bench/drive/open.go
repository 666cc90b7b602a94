//go:build linux

package drive

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
)

// atOnce is the number of parallel logins: they mostly wait for each other.
const atOnce = 8

// Open opens the connections of trials, several at a time, and calls each with the sample of each
// as soon as its login is over. It ends early with ctx, when each fails, or when the server refuses
// our own key, which is a *LoginError.
func (p *Private) Open(ctx context.Context, trials []record.Trial, each func(record.Trial, record.Sample) error) error {
	p.Server.Fresh(true)
	return p.open(ctx, &p.Rig, trials, opening{atOnce, func(ctx context.Context) bool { return ctx.Err() == nil }, p.enter, admitted}, each)
}

// enter opens one connection and reads its negotiation.
func (p *Private) enter(ctx context.Context, trials []record.Trial) (o opened) {
	o.sample.Start = time.Now()
	c, err := p.dial(trials[0])
	if err != nil {
		o.sample.Outcome, o.sample.Detail = record.Broken, err.Error()
		return o
	}
	err = p.await(ctx, c)
	if err == nil {
		c.used, err = c.asleep()
	}
	if err == nil {
		c.judge(&o.sample, c.SoFar(), nil)
		o.line = c
		return o
	}
	c.linger(err)
	c.Kill()
	c.finish(&o.sample, err)
	p.explain(&o.sample)
	c.close()
	return o
}

// Shares of the machine that connections may use, and the needs of each.
const (
	memoryShare   = 4       // a quarter of the available memory
	perConnection = 6 << 20 // memory of ssh, its sshd processes and a sleeping command: 3 MiB by proportional set size
	filesEach     = 10      // descriptors of ours: pipes, clocks, logs, and the socket while it logs in
	filesAside    = 40
	pagesEach     = 7 * 16 // of pipes: three of the client, three of the command, one of sshd's own
	pagesAside    = 1024   // of the wide ones
	maxOpen       = 400    // keeps the number of processes within reason
)

// Capacity returns how many connections can be open at a time.
func (p *Private) Capacity() int {
	n := maxOpen
	if available, ok := proc.AvailableMemory(); ok {
		n = min(n, int(available/memoryShare/perConnection))
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && limit.Cur < 1<<20 {
		n = min(n, (int(limit.Cur)-filesAside)/filesEach)
	}
	if pages, ok := pipePages(); ok {
		n = min(n, (pages-pagesAside)/pagesEach)
	}
	return max(n, 1)
}

// pipePages returns the pages that the pipes of this user may hold together before new ones get
// very few (pipe(7), pipe-user-pages-soft), less a tenth that is left to others. ok is false if
// there is no limit.
func pipePages() (pages int, ok bool) {
	if os.Geteuid() == 0 {
		return 0, false
	}
	text, err := os.ReadFile("/proc/sys/fs/pipe-user-pages-soft")
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n * 9 / 10, err == nil && n > 0
}
