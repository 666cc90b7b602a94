package mux_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/fleettest"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/ssh/sshtest"
)

// masters runs on each host over the master of its port.
type masters struct {
	path    map[uint16]string
	servers fleettest.Servers
}

func (masters) FDs() int { return 1 }

func (m masters) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a *fleet.Attempt) fleet.Outcome {
	s := mux.Session{Path: m.path[h.Port], Command: cmd, Timeout: m.servers.Timeout()}
	o, err := s.Run(ctx, a)
	if err == nil {
		return o
	}
	o = fleet.Outcome{Class: fleet.Local, Exit: -1, Err: err.Error(), Cause: err}
	if ctx.Err() != nil {
		o.Class, o.Err = fleet.Stopped(context.Cause(ctx))
	}
	return o
}

// TestConformance: a session over a master does what every executor has to do.
func TestConformance(t *testing.T) {
	fleettest.Test(t, fleettest.Engine{From: sshtest.AtOpen, Reach: func(t testing.TB, s fleettest.Servers) fleet.Executor {
		m := masters{path: map[uint16]string{}, servers: s}
		var mu sync.Mutex
		var all sync.WaitGroup
		for ports := range slices.Chunk(s.Ports, 10) {
			all.Go(func() {
				for _, port := range ports {
					path := startMasterAt(t, s.User, s.Key, port).path
					mu.Lock()
					m.path[uint16(port)] = path
					mu.Unlock()
				}
			})
		}
		all.Wait()
		return m
	}})
}
