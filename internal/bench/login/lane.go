//go:build linux

package login

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/relay"
)

// A login mostly waits, for its own other side and for the disk, so that a core has time for
// several. CPU time is measured as well there, and CPU times on one core compare better with each
// other than those on several. On two cores four lanes a core carry out a fifth more logins than
// two and leave a fifth less doubt; kinds of logins compare as with two.

const (
	lanesPerCore = 4
	mostCores    = 4
	mostLanes    = 8 // each has its own servers
)

// Lane is a place where logins are carried out one after the other while others are carried out in
// other lanes: on one core, with its own servers and relays.
type Lane struct {
	core int
	dir  string
	ends map[*relay.Relay]*Ends
}

// Lanes returns places for cases on the cores that we may use; none if there is no second core,
// which the relays need. The caller closes them.
func Lanes(cases []Case, dir string) (lanes []Lane, err error) {
	cores, err := proc.Cores()
	if err != nil || len(cores) < 2 {
		return nil, nil
	}
	on := slices.Repeat(cores[:min(mostCores, len(cores))], lanesPerCore)
	for i, core := range on[:min(mostLanes, len(on))] {
		l := Lane{core, filepath.Join(dir, fmt.Sprintf("lane%d", i)), map[*relay.Relay]*Ends{}}
		lanes = append(lanes, l)
		if err := l.open(cases); err != nil {
			return nil, errors.Join(err, CloseLanes(lanes))
		}
	}
	return lanes, nil
}

// CloseLanes ends their servers and relays.
func CloseLanes(lanes []Lane) error {
	var errs []error
	for _, l := range lanes {
		for _, e := range l.ends {
			errs = append(errs, e.Close(), e.Server.Close())
		}
	}
	return errors.Join(errs...)
}

// open starts the servers of cases.
func (l *Lane) open(cases []Case) error {
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		return err
	}
	for _, c := range cases {
		if c.Ends == nil || l.ends[c.Ends.relay] != nil {
			continue
		}
		server, err := c.Ends.Server.On(l.core)
		if err != nil {
			return err
		}
		own := *c.Ends
		if err := own.relayTo(server); err != nil {
			return errors.Join(err, server.Close())
		}
		l.ends[c.Ends.relay] = &own
	}
	return nil
}

// moved returns a case in the lane.
func (l *Lane) moved(c Case) Case {
	if c.Ends == nil {
		return c
	}
	own, argv := l.ends[c.Ends.relay], c.Argv
	c.After = own.After
	c.Argv = func(log string) []string {
		words := argv(log)
		words[slices.Index(words, "-p")+1] = strconv.Itoa(own.relay.Port())
		return words
	}
	return c
}
