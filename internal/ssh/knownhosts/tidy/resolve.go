package tidy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"sshpace/internal/base/sched"
)

// Limits of looking up addresses: they help people who type addresses, are not worth a long wait,
// and a resolver must not be flooded.
const (
	lookupsAtOnce = 16
	lookupSilence = 5 * time.Second  // without any answer
	lookupTime    = 30 * time.Second // for all names
	lookupReport  = time.Second      // between two reports of how far it is
)

var (
	errSilentResolver = errors.New("the resolver does not answer")
	errSlowResolver   = fmt.Errorf("the resolver was too slow: %.0f s are over", lookupTime.Seconds())
)

// resolved is the resolver's answer for one host.
type resolved struct {
	host      string
	addresses []string
}

// resolve asks for all hosts, a few at a time, and notes the failures. It stops when the resolver
// no longer answers, or takes long.
func (s *splitter) resolve(ctx context.Context, hosts []string) []resolved {
	ctx, end := context.WithTimeoutCause(ctx, lookupTime, errSlowResolver)
	defer end()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	silence := time.AfterFunc(lookupSilence, func() { giveUp(errSilentResolver) })
	defer silence.Stop()
	var done atomic.Int64
	defer s.report(&done, len(hosts))()

	answers := make([]resolved, len(hosts))
	failures := make([]error, len(hosts))
	sched.Do(lookupsAtOnce, len(hosts), func(i int) {
		answers[i].host = hosts[i]
		if failures[i] = context.Cause(ctx); failures[i] != nil {
			return
		}
		answers[i].addresses, failures[i] = s.options.Resolve(ctx, hosts[i])
		done.Add(1)
		if late, ok := errors.AsType[net.Error](failures[i]); ctx.Err() == nil && !(ok && late.Timeout()) {
			silence.Reset(lookupSilence)
		} else if failures[i] != nil && ctx.Err() != nil {
			failures[i] = context.Cause(ctx)
		}
	})
	for i, err := range failures {
		if err != nil {
			s.result.Unresolved = append(s.result.Unresolved, hosts[i]+": "+reason(err))
		}
	}
	return answers
}

// reason returns why a name was not resolved, without the name.
func reason(err error) string {
	dns, ok := errors.AsType[*net.DNSError](err)
	if !ok {
		return err.Error()
	}
	if dns.Server != "" {
		return dns.Err + ", said " + dns.Server
	}
	return dns.Err
}

// report reports the progress of the resolver now and then, until it is stopped.
func (s *splitter) report(done *atomic.Int64, total int) (stop func()) {
	if s.options.Looking == nil {
		return func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lookupReport)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.options.Looking(int(done.Load()), total)
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// Addresses asks the system for those of a host.
func Addresses(ctx context.Context, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return net.DefaultResolver.LookupHost(ctx, name)
}
