//go:build linux

// Command relay measures how late a path of `bench --rtt`, `--rate` and `--loss`
// delivers bytes, beyond what the path is meant to cost: from when they were due to when
// the kernel at the other end had them, by its own stamps; for transfers by ssh, to when
// the relay had written them. Beside it, in the same moments, a bare thread of the same
// priority does nothing but sleep until one moment after the other, or wait for a byte over
// loopback where nothing is delayed: what that is late beside the same load is the
// machine's doing, which keeps threads that are due from their core. What the relay adds
// is its own: the 99th percentile of the one less that of the other, turn by turn, in the
// median with its 95 % interval. A bare thread in turns of its own, without the load, says
// how calm the machine is.
//
//	go run ./crosscheck/relay [-for 12s] [-only ssh] [-uid 65534]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
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
	fmt.Printf("%-28s %8s   %-21s   %-21s   %-13s   %s\n", "ms late", "packets", "relay: 50%   99% 99.9%", "beside:50%   99% 99.9%", "alone: 50%   99%", "own at 99%, of turns")
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
	name   string
	path   relay.Path
	load   load
	stream bool // bytes follow each other
}

const ms = time.Millisecond

// cases: questions are single bytes that are answered, streams all that fits.
var cases = []scene{
	{"question", relay.Path{}, talk, false},
	{"question, RTT 0.2 ms", relay.Path{Delay: ms / 10}, talk, false},
	{"question, RTT 10 ms", relay.Path{Delay: 5 * ms}, talk, false},
	{"question, RTT 50 ms", relay.Path{Delay: 25 * ms}, talk, false},
	{"stream, 12 MB/s", relay.Path{Rate: 12e6}, pour, true},
	{"stream, 100 MB/s", relay.Path{Rate: 100e6}, pour, true},
	{"stream, 100 MB/s, RTT 50 ms", relay.Path{Rate: 100e6, Delay: 25 * ms}, pour, true},
	{"ssh, 12 MB/s", relay.Path{Rate: 12e6}, transfer, true},
	{"ssh, 100 MB/s", relay.Path{Rate: 100e6}, transfer, true},
	{"ssh, RTT 10 ms", relay.Path{Delay: 5 * ms}, transfer, true},
	{"ssh, RTT 50 ms", relay.Path{Delay: 25 * ms}, transfer, true},
	{"ssh, RTT 50 ms, 1 % lost", relay.Path{Delay: 25 * ms, Loss: relay.Loss{Share: 0.01, Seed: 1}}, transfer, true},
}

// turn is how long the relay and the bare thread are measured in turns.
const turn = 500 * time.Millisecond

// measure prints a line.
func (c scene) measure(total time.Duration) error {
	var relayed, beside, alone turns
	bare := c.bare()
	for end := time.Now().Add(total); time.Now().Before(end); {
		ctx, cancel := context.WithCancel(context.Background())
		meanwhile := make(chan lateness)
		go func() { meanwhile <- bare(ctx) }()
		late, err := c.load(c.path)
		cancel()
		company := <-meanwhile
		if err != nil {
			return err
		}
		if len(late) > 0 && len(company) > 0 {
			relayed.add(late)
			beside.add(company)
		}
		ctx, cancel = context.WithTimeout(context.Background(), turn)
		alone.add(bare(ctx))
		cancel()
	}
	fmt.Printf("%-28s %8d   %s   %s   %s   %s\n", c.name, len(relayed.all), relayed.quantiles(0.5, 0.99, 0.999), beside.quantiles(0.5, 0.99, 0.999), alone.quantiles(0.5, 0.99), own(relayed.each, beside.each))
	return nil
}

// turns are how late things were.
type turns struct {
	all  lateness
	each lateness // the 99th percentile of each turn
}

func (t *turns) add(late lateness) {
	slices.Sort(late)
	t.all, t.each = append(t.all, late...), append(t.each, late.at(0.99))
}

// quantiles are those of all, in ms.
func (t *turns) quantiles(each ...float64) string {
	slices.Sort(t.all)
	var words []string
	for _, q := range each {
		words = append(words, fmt.Sprintf("%6.3f", t.all.at(q).Seconds()*1e3))
	}
	return strings.Join(words, " ")
}

// own is what the relay adds to what is late beside it, in ms: the median of the turns and its 95 %
// interval, from order statistics.
func own(relayed, beside lateness) string {
	var added lateness
	for i, late := range relayed {
		added = append(added, late-beside[i])
	}
	slices.Sort(added)
	if len(added) == 0 {
		return "-"
	}
	n := len(added)
	reach := int(math.Ceil(0.98 * math.Sqrt(float64(n))))
	return fmt.Sprintf("%6.3f (%.3f to %.3f, %d)", added.at(0.5).Seconds()*1e3, added[max(0, n/2-reach)].Seconds()*1e3, added[min(n-1, n/2+reach)].Seconds()*1e3, n)
}

// lateness is how late things were, sorted.
type lateness []time.Duration

func (l lateness) at(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[int(q*float64(len(l)-1))]
}
