//go:build linux

// Command guard measures two builds of sshpace in turns and reports for each figure whether the
// second is better, equal, worse, or not known well enough. crosscheck/against builds both and
// calls it. A subject that one of them cannot do is reported and left out.
//
//	go run ./crosscheck/guard -before OLD/sshpace -now ./sshpace
//
// Each turn measures both builds one after the other, in random order, so that a busy moment of
// the machine hits both. A figure is the mean of the logarithms of before/now with Student's
// interval; all figures together are judged by sshpace's own rule (stats.Judge, with Holm's
// correction). Figures that can be counted exactly are compared as they are. The exit status is
// 3 if a figure is worse.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sshpace/crosscheck/lab"
	"sshpace/internal/base/sched"
)

// errWorse ends the program with status 3.
var errWorse = errors.New("a figure is worse")

func main() {
	lab.Reap()
	before := flag.String("before", "", "the sshpace to measure against")
	now := flag.String("now", "sshpace", "the sshpace that is judged")
	only := flag.String("only", "", "only subjects whose name contains one of these words, separated by commas")
	budget := flag.Duration("budget", 10*time.Minute, "measuring time in all")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the order")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, [2]string{*before, *now}, *only, *budget, *seed)
	switch {
	case errors.Is(err, errWorse):
		os.Exit(3)
	case err != nil:
		fmt.Fprintf(os.Stderr, "guard: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binaries [2]string, only string, budget time.Duration, seed uint64) error {
	dir, err := os.MkdirTemp("", "guard-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &rig{dir: dir}
	defer r.stop()
	var sides [2]side
	for i, binary := range binaries {
		if sides[i], err = newSide(dir, binary, []string{"before", "now"}[i]); err != nil {
			return err
		}
	}
	chosen := choose(subjects(r), only)
	if len(chosen) == 0 {
		return fmt.Errorf("no subject has a name with %s", only)
	}
	t := &table{subjects: chosen}
	loop := sched.Loop[subject]{
		Rounds: sched.Rounds{Count: 6, Budget: budget}, // in six rounds each subject has a turn
		Seed:   seed,
		Due:    func(round int) []subject { return slices.DeleteFunc(due(chosen, round), t.hasFailed) },
		Take: func(round int, s subject) error {
			fmt.Fprintf(os.Stderr, "\r\x1b[Kround %d: %s", round+1, s.name)
			t.turn(ctx, s, sides, sched.Shuffled(seed, round, []int{0, 1}))
			return ctx.Err()
		},
	}
	err = loop.Run(ctx)
	fmt.Fprint(os.Stderr, "\r\x1b[K")
	if err != nil && ctx.Err() == nil {
		return err
	}
	return t.print(os.Stdout)
}

// choose keeps the subjects whose name contains one of the words.
func choose(all []subject, words string) (chosen []subject) {
	for _, s := range all {
		for word := range strings.SplitSeq(words, ",") {
			if strings.Contains(s.name, word) {
				chosen = append(chosen, s)
				break
			}
		}
	}
	return chosen
}

// due are the subjects of a round. Subjects that take long are measured in every few rounds.
func due(all []subject, round int) (list []subject) {
	for _, s := range all {
		turn, rest := (round-s.first)/max(s.every, 1), (round-s.first)%max(s.every, 1)
		if round >= s.first && rest == 0 && (s.most == 0 || turn < s.most) {
			list = append(list, s)
		}
	}
	return list
}

// side is a build with a home of its own, so that neither profits from what the other keeps.
type side struct {
	binary, home string
}

func newSide(dir, binary, name string) (side, error) {
	path, err := filepath.Abs(binary)
	if err != nil {
		return side{}, err
	}
	if _, err := os.Stat(path); err != nil {
		return side{}, err
	}
	home := filepath.Join(dir, name)
	return side{binary: path, home: home}, os.Mkdir(home, 0o700)
}

// env leads a program of this side to its own home.
func (s side) env() []string {
	return []string{"HOME=" + s.home, "XDG_CACHE_HOME=" + filepath.Join(s.home, "cache"), "XDG_STATE_HOME=" + filepath.Join(s.home, "state")}
}

// measure runs sshpace of this side.
func (s side) measure(ctx context.Context, args ...string) (lab.Cost, error) {
	return lab.Measure(ctx, append([]string{s.binary}, args...), s.env()...)
}
