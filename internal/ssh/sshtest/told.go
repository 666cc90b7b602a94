package sshtest

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"sshpace/internal/fleet"
)

// Told is a sink that keeps the course of a run. The zero value is ready.
type Told struct {
	fleet.Nothing
	OnOutput func(fleet.Event) error // gets output, which is then not kept
	OnDone   func(fleet.Result)

	mu      sync.Mutex
	out     map[int]*[2]bytes.Buffer
	results []fleet.Result
}

func (s *Told) Output(e fleet.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.OnOutput != nil {
		return s.OnOutput(e)
	}
	if s.out == nil {
		s.out = map[int]*[2]bytes.Buffer{}
	}
	if s.out[e.Index] == nil {
		s.out[e.Index] = new([2]bytes.Buffer)
	}
	s.out[e.Index][e.Stream].Write(e.Data)
	return nil
}

func (s *Told) Done(r fleet.Result, _ fleet.Summary) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, r)
	if s.OnDone != nil {
		s.OnDone(r)
	}
	return nil
}

// Results returns the results of the hosts that have ended, in the order of hosts.
func (s *Told) Results() []fleet.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(slices.Values(s.results), func(a, b fleet.Result) int { return a.Index - b.Index })
}

// TextOf returns the output of a host on a stream.
func (s *Told) TextOf(index int, stream fleet.Stream) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out[index] == nil {
		return ""
	}
	return s.out[index][stream].String()
}

// Text returns the output of all hosts on a stream, in the order of hosts.
func (s *Told) Text(stream fleet.Stream) (all string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, index := range slices.Sorted(maps.Keys(s.out)) {
		all += s.out[index][stream].String()
	}
	return all
}
