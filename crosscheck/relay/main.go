//go:build linux

// Command relay measures how late a path of `bench --rtt`, `--rate` and `--loss`
// delivers bytes, beyond what the path is meant to cost: from when they were due to when
// the kernel at the other end had them, by its own stamps; for transfers by ssh, to when
// the relay had written them. In turns with that, every half second, a thread of the
// same priority does nothing but sleep as long, or wait for a byte over loopback where
// nothing is delayed: what that is late is the machine's doing.
//
//	go run ./crosscheck/relay [-for 12s] [-only ssh] [-uid 65534]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/sys/relay"
)

func main() {
	log.SetFlags(0)
	each := flag.Duration("for", 12*time.Second, "of each case, half of it with the relay")
	only := flag.String("only", "", "cases whose name holds this")
	uid := flag.Int("uid", 0, "be this user: one who may not ask for priority")
	flag.Parse()
	if *uid > 0 {
		if err := become(*uid); err != nil {
			log.Fatal(err)
		}
	}
	if err := run(*each, *only); err != nil {
		log.Fatal(err)
	}
}

// run measures the cases whose name holds only.
func run(each time.Duration, only string) error {
	fmt.Printf("%-28s %8s   %-28s   %s\n", "ms late", "parcels", "relay: 50%   99%  99.9%    typ.", "bare: 50%    99%  99.9%    typ.")
	for _, c := range cases {
		if !strings.Contains(c.name, only) {
			continue
		}
		if err := c.measure(each); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func become(uid int) error {
	if err := unix.Setgid(uid); err != nil {
		return err
	}
	return unix.Setuid(uid)
}

// scene is a path and what goes over it.
type scene struct {
	name string
	path relay.Path
	load load
}

const ms = time.Millisecond

// cases: questions are single bytes that are answered, streams all that fits.
var cases = []scene{
	{"question", relay.Path{}, talk},
	{"question, RTT 0.2 ms", relay.Path{Delay: ms / 10}, talk},
	{"question, RTT 10 ms", relay.Path{Delay: 5 * ms}, talk},
	{"question, RTT 50 ms", relay.Path{Delay: 25 * ms}, talk},
	{"stream, 12 MB/s", relay.Path{Rate: 12e6}, pour},
	{"stream, 100 MB/s", relay.Path{Rate: 100e6}, pour},
	{"stream, 100 MB/s, RTT 50 ms", relay.Path{Rate: 100e6, Delay: 25 * ms}, pour},
	{"ssh, 12 MB/s", relay.Path{Rate: 12e6}, transfer},
	{"ssh, 100 MB/s", relay.Path{Rate: 100e6}, transfer},
	{"ssh, RTT 10 ms", relay.Path{Delay: 5 * ms}, transfer},
	{"ssh, RTT 50 ms", relay.Path{Delay: 25 * ms}, transfer},
	{"ssh, RTT 50 ms, 1 % lost", relay.Path{Delay: 25 * ms, Loss: relay.Loss{Share: 0.01, Seed: 1}}, transfer},
}

// turn is how long the relay and the bare thread are measured in turns.
const turn = 500 * time.Millisecond

// measure prints a line.
func (c scene) measure(total time.Duration) error {
	var relayed, alone turns
	bare := c.bare()
	for end := time.Now().Add(total); time.Now().Before(end); {
		late, err := c.load(c.path)
		if err != nil {
			return err
		}
		relayed.add(late)
		ctx, cancel := context.WithTimeout(context.Background(), turn)
		alone.add(bare(ctx))
		cancel()
	}
	fmt.Printf("%-28s %8d   %s   %s\n", c.name, len(relayed.all), &relayed, &alone)
	return nil
}

// turns are how late things were.
type turns struct {
	all  lateness
	each lateness // the 99th percentile of each turn
}

func (t *turns) add(late lateness) {
	if len(late) == 0 {
		return
	}
	slices.Sort(late)
	t.all, t.each = append(t.all, late...), append(t.each, late.at(0.99))
}

// String has quantiles in ms, and last the 99th percentile of half of the turns: what
// stops the machine now and then is in the others.
func (t *turns) String() string {
	slices.Sort(t.all)
	slices.Sort(t.each)
	return fmt.Sprintf("%6.3f %6.3f %6.3f %7.3f", t.all.at(0.5).Seconds()*1e3, t.all.at(0.99).Seconds()*1e3, t.all.at(0.999).Seconds()*1e3, t.each.at(0.5).Seconds()*1e3)
}

// lateness is how late things were, sorted.
type lateness []time.Duration

func (l lateness) at(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[int(q*float64(len(l)-1))]
}
