// Command agree checks sshpace's figures against loops that share no code with it.
//
//	go build -o sshpace . && go run ./crosscheck/agree [-others 10] [-rounds 8] \
//	  [-data pipe] [-sink splice] [-json FILE]
//
// A loop is the real thing: ssh HOST 'exec cat >/dev/null'. With -sink splice a program takes the
// place of cat that costs next to nothing, like sshpace's own: on two cores cat is most of the
// noise. Each transfer has a connection of its own, settles for 0.15 s once data flow, and is
// measured for 0.5 s: CPU time from /proc/PID/schedstat and bytes from /proc/PID/io, of ssh, of
// sshd and of cat. What ssh reads matters: a pipe costs it up to 0.2 ns a byte more than
// /dev/zero.
//
// The check is surer than what it checks because it is paired and interleaved. Before and after
// every transfer the same runs with the reference, and what is compared is the ratio to both: what
// slows the machine for a while cancels. The reference is one of the cells, too: its ratio must be
// 1. Rounds of loops take turns with parts of one run of sshpace, so that both see the same
// machine. Eight rounds tell ratios of the client's CPU time to 3 %, of throughput to 13 % only:
// on two cores cat shares one with ssh or with sshd, which differ by a third, as the scheduler
// likes. Forty rounds tell it to 6 %.
//
// Of sshpace only JSON is used:
//
//	bench --list --json [--policy NAME]: bulk[].cipher, .mac: the cells that exist,
//	  and those that the policy allows
//	bench --json: bulk[].cipher, .mac, .client_ns_per_byte.value, .server_ns_per_byte.value,
//	  .throughput_bytes_per_s.value; noise_floor.cost_pct, .throughput_pct, the least
//	  difference of two cells: it is taken as half of a ratio's 95 % interval.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"time"
)

// options are the flags.
type options struct {
	program, ssh, sshd, policy, data, sink string
	others, rounds                         int
	match                                  *regexp.Regexp
	budget                                 time.Duration
	seed                                   uint64
	loops                                  bool
}

// parts are how often sshpace goes on in turn with loops, which come first and last.
const parts = 3

// result is all that was measured: what -json writes and -read reads.
type result struct {
	Allowed   []cell     `json:"allowed"` // by the policy, and the present choice
	Others    []cell     `json:"others"`
	Transfers []transfer `json:"transfers"`
	Report    *report    `json:"report,omitempty"` // absent with -loops
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.program, "sshpace", "./sshpace", "the program to check")
	flag.StringVar(&o.ssh, "ssh", "/usr/bin/ssh", "ssh of the loops and of sshpace")
	flag.StringVar(&o.sshd, "sshd", "/usr/sbin/sshd", "sshd of both")
	flag.StringVar(&o.policy, "policy", "modern", "compare all cells that this policy allows, and the present choice")
	flag.StringVar(&o.data, "data", "zero", "zero: ssh reads /dev/zero; pipe: what cat reads from it; random: a file of 1 GiB of random bytes in /dev/shm")
	flag.StringVar(&o.sink, "sink", "cat", "what reads from sshd: cat, or splice, which takes nothing out of memory")
	flag.IntVar(&o.others, "others", 10, "random cells beside these")
	match := flag.String("match", "", "only cells whose names, as the table has them, match this expression")
	flag.IntVar(&o.rounds, "rounds", 8, "transfers of each cell")
	flag.DurationVar(&o.budget, "budget", time.Minute, "of sshpace, in three parts")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of the random order and the other cells")
	flag.BoolVar(&o.loops, "loops", false, "loops alone: how sure the check is")
	save := flag.String("json", "", "write all transfers and sshpace's figures to this file")
	read := flag.String("read", "", "measure nothing, compare what is in this file")
	flag.Parse()
	var err error
	if o.match, err = regexp.Compile(*match); err != nil {
		log.Fatal(err)
	}
	if o.rounds <= parts {
		log.Fatalf("-rounds is at least %d", parts+1)
	}
	if !slices.Contains([]string{"zero", "pipe", "random"}, o.data) {
		log.Fatalf("-data is zero, pipe or random, not %q", o.data)
	}
	if sinks[o.sink] == "" {
		log.Fatalf("-sink is cat or splice, not %q", o.sink)
	}
	r, err := o.result(*read)
	if err == nil && *save != "" {
		err = write(*save, r)
	}
	if err != nil {
		log.Fatal(err)
	}
	compare(os.Stdout, r)
}

// result reads or measures.
func (o options) result(file string) (*result, error) {
	if file == "" {
		return o.measure()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &result{}
	return r, json.Unmarshal(text, r)
}

func write(file string, r *result) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// measure has rounds of loops take turns with parts of a run of sshpace.
func (o options) measure() (*result, error) {
	dir, err := os.MkdirTemp("", "agree")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	random := rand.New(rand.NewPCG(o.seed, 0))
	run := sshpace{o, dir}
	r, err := run.cells(random)
	if err != nil {
		return nil, err
	}
	s, err := newServer(o, dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	all := slices.Concat(r.Allowed, r.Others)
	done := 0
	for round := range o.rounds {
		if part := round * (parts + 1) / o.rounds; part > done && !o.loops {
			log.Printf("sshpace, part %d of %d", part, parts)
			if r.Report, err = run.part(part); err != nil {
				return nil, err
			}
			done = part
		}
		log.Printf("loops, round %d of %d: %d transfers", round+1, o.rounds, 2*len(all)+1)
		random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		transfers, err := s.round(round, all)
		if err != nil {
			return nil, err
		}
		r.Transfers = append(r.Transfers, transfers...)
	}
	return r, nil
}

// round measures all cells in this order, each between two transfers with the reference.
func (s *server) round(round int, cells []cell) ([]transfer, error) {
	var out []transfer
	for place := range 2*len(cells) + 1 {
		c, isReference := reference, place%2 == 0
		if !isReference {
			c = cells[place/2]
		}
		t, err := s.transfer(c)
		if err != nil {
			return nil, fmt.Errorf("transfer with %s: %w", c, err)
		}
		t.Round, t.Place, t.Reference = round, place, isReference
		out = append(out, t)
	}
	return out, nil
}
