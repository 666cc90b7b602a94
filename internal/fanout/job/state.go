package job

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// State is how far the hosts of a batch are: the headers of each entry of its journal, over all
// entries before.
type State struct {
	Owner                  string // instance of the launcher that may start hosts
	Started, Ended, Failed Bits   // hosts, by their places in the batch; Failed are among Ended
}

// nameOf returns the name of the launcher with an instance.
func nameOf(instance string) string {
	name, _, _ := strings.Cut(instance, "/")
	return name
}

// Bits is a set of numbers.
type Bits []byte

// Has reports whether i is in it.
func (b Bits) Has(i int) bool { return i/8 < len(b) && b[i/8]&(1<<(i%8)) != 0 }

// Add adds i.
func (b *Bits) Add(i int) {
	for len(*b) <= i/8 {
		*b = append(*b, 0)
	}
	(*b)[i/8] |= 1 << (i % 8)
}

func (b Bits) drop(i int) {
	if i/8 < len(b) {
		b[i/8] &^= 1 << (i % 8)
	}
}

// Join adds all of other.
func (b *Bits) Join(other Bits) {
	for i, byte := range other {
		if i == len(*b) {
			*b = append(*b, 0)
		}
		(*b)[i] |= byte
	}
}

// Count returns how many numbers are in it.
func (b Bits) Count() (n int) {
	for i := range 8 * len(b) {
		if b.Has(i) {
			n++
		}
	}
	return n
}

// carried counts the hosts that have ended, without those that nobody starts any more.
func (s *State) carried() (n int) {
	for i := range 8 * len(s.Ended) {
		if s.Ended.Has(i) && (s.Started.Has(i) || s.Failed.Has(i)) {
			n++
		}
	}
	return n
}

func (s *State) clone() State {
	return State{Owner: s.Owner, Started: slices.Clone(s.Started), Ended: slices.Clone(s.Ended), Failed: slices.Clone(s.Failed)}
}

// The names of the headers.
const (
	ownerHeader   = "Owner"
	startedHeader = "Started"
	endedHeader   = "Ended"
	failedHeader  = "Failed"
)

// header returns the state as headers.
func (s *State) header() map[string]string {
	text := base64.RawStdEncoding.EncodeToString
	return map[string]string{ownerHeader: s.Owner, startedHeader: text(s.Started), endedHeader: text(s.Ended), failedHeader: text(s.Failed)}
}

// stateOf reads the state from headers.
func stateOf(header map[string]string) (s State, err error) {
	s.Owner = header[ownerHeader]
	for name, bits := range map[string]*Bits{startedHeader: &s.Started, endedHeader: &s.Ended, failedHeader: &s.Failed} {
		if *bits, err = base64.RawStdEncoding.DecodeString(header[name]); err != nil {
			return s, fmt.Errorf("the header %s: %w", name, err)
		}
	}
	return s, nil
}
