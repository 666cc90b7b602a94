package job

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
)

// Schema names the form of Spec and Manifest.
const Schema = "sshpace.job/1"

// Spec is the part of a job that is for one pool: the whole of what its launchers do.
type Spec struct {
	Schema string `json:"schema"`
	ID     string `json:"id"`
	Pool   string `json:"pool"`
	// Batches are sets of hosts, as Exact names them; Hosts returns those of one.
	Batches []string `json:"batches"`
	// Steps are how many of them each part of the pace has, so that a client that returns knows its
	// order.
	Steps []int `json:"steps"`

	Text     string            `json:"text,omitempty"`  // the command for people
	Line     string            `json:"line"`            // for the login shell, as in fleet.Command
	Own      map[string]string `json:"own,omitempty"`   // lines of hosts that have one of their own, by Exact
	Input    []byte            `json:"input,omitempty"` // at most MaxInput bytes
	Env      []string          `json:"env,omitempty"`
	Terminal bool              `json:"terminal,omitempty"`
	Sudo     string            `json:"sudo,omitempty"` // the user who runs it, "" = the one who logs in

	TimeoutNS        int64  `json:"timeout_ns,omitempty"` // the zero values are those of fanout.Params
	ConnectTimeoutNS int64  `json:"connect_timeout_ns,omitempty"`
	RetryForNS       int64  `json:"retry_for_ns,omitempty"`
	RetryDown        bool   `json:"retry_down,omitempty"`
	SplayNS          int64  `json:"splay_ns,omitempty"`
	MaxOutput        int64  `json:"max_output,omitempty"`
	Fanout           int    `json:"fanout,omitempty"` // of each launcher
	Engine           string `json:"engine,omitempty"`
	NoRemoteKill     bool   `json:"no_remote_kill,omitempty"`
	// Idempotent lets hosts run it again whose launcher was lost.
	Idempotent bool `json:"idempotent,omitempty"`
}

// MaxInput bounds the input of a command, in bytes.
const MaxInput = 4 << 20

// Manifest is signed: it stands for the Specs of all pools.
type Manifest struct {
	Schema  string            `json:"schema"`
	ID      string            `json:"id"`
	Time    time.Time         `json:"time"`
	Expires time.Time         `json:"expires"` // no host starts after it
	Nonce   string            `json:"nonce"`
	Specs   map[string]string `json:"specs"` // SHA-256 of the bytes of each Spec, in hex, by pool
}

// Signed is a job as it is kept for one pool. The three are bytes, as they were signed.
type Signed struct {
	Manifest  []byte `json:"manifest"`
	Signature []byte `json:"signature"` // an SSHSIG of Manifest, in its armored form
	Spec      []byte `json:"spec"`
}

// NewManifest returns the manifest of Specs by their pools, and their bytes.
func NewManifest(specs map[string]*Spec, now time.Time, expires time.Duration) (m Manifest, data map[string][]byte, err error) {
	data = map[string][]byte{}
	m = Manifest{Schema: Schema, Time: now.UTC(), Expires: now.Add(expires).UTC(), Nonce: rand.Text(), Specs: map[string]string{}}
	for pool, spec := range specs {
		if data[pool], err = json.Marshal(spec); err != nil {
			return m, nil, err
		}
		m.ID, m.Specs[pool] = spec.ID, digest(data[pool])
	}
	return m, data, nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Hosts returns the hosts of a batch. A place in them is that in State.
func (s *Spec) Hosts(batch int) ([]host.Host, error) {
	if batch < 0 || batch >= len(s.Batches) {
		return nil, fmt.Errorf("job %s has no batch %d", s.ID, batch)
	}
	names, err := hostset.Expand(s.Batches[batch], hostset.Options{})
	if err != nil {
		return nil, err
	}
	hosts := make([]host.Host, len(names))
	for i, name := range names {
		if hosts[i], err = host.Parse(name); err != nil {
			return nil, err
		}
	}
	return hosts, nil
}

// Command returns the command of a host.
func (s *Spec) Command(h host.Host) fleet.Command {
	c := fleet.Command{Line: s.Line, Text: s.Text, Env: s.Env, Terminal: s.Terminal}
	if own, is := s.Own[h.Exact()]; is {
		c.Line = own
	}
	if len(s.Input) > 0 {
		c.Input = fleet.SpoolBytes(s.Input)
	}
	return c
}

// A batch has at most mostHosts hosts, and a pool's part of a pace has at least leastBatches, as
// far as they have leastHosts, so that several launchers share it.
const (
	mostHosts    = 100
	leastHosts   = 5
	leastBatches = 16
)

// Place is where a host is in a job.
type Place struct {
	Pool  string
	Batch int // of its pool
	At    int // in its batch
}

// Cut puts hosts into batches of their pools: batches of one pool, in order, as sets. sizes are
// those of the batches of the pace, none of which shares a batch with another. places are those of
// the hosts.
func Cut(hosts []host.Host, poolOf func(host.Host) string, sizes []int) (batches map[string][]string, places []Place, err error) {
	batches, places = map[string][]string{}, make([]Place, len(hosts))
	first := 0
	for _, size := range sizes {
		of := map[string][]int{}
		for i := first; i < first+size; i++ {
			pool := poolOf(hosts[i])
			of[pool] = append(of[pool], i)
		}
		first += size
		for pool, members := range of {
			n := min(max((len(members)+leastBatches-1)/leastBatches, leastHosts), mostHosts)
			for len(members) > 0 {
				some := members[:min(n, len(members))]
				members = members[len(some):]
				set, err := place(hosts, some, places, Place{Pool: pool, Batch: len(batches[pool])})
				if err != nil {
					return nil, nil, err
				}
				batches[pool] = append(batches[pool], set)
			}
		}
	}
	return batches, places, nil
}

// place returns hosts as a set, and notes their places in it.
func place(hosts []host.Host, members []int, places []Place, p Place) (string, error) {
	index := map[string]int{}
	var names []string
	for _, i := range members {
		index[hosts[i].Exact()] = i
		names = append(names, hosts[i].Exact())
	}
	set := hostset.Fold(names)
	names, err := hostset.Expand(set, hostset.Options{})
	if err != nil || len(names) != len(members) {
		return "", errors.Join(fmt.Errorf("the hosts %s are not a set", set), err)
	}
	for at, name := range names {
		p.At = at
		places[index[name]] = p
	}
	return set, nil
}

// partSize bounds the data of a part of a signed job, in bytes; the smallest limit of servers is a
// mebibyte.
const partSize = 512 << 10

// partsHeader has the number of parts, in each of them.
const partsHeader = "Parts"

// entries returns the entries that keep the job for its pool.
func (s *Signed) entries(pool, id string) ([]Entry, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	n := (len(data) + partSize - 1) / partSize
	all := make([]Entry, n)
	for i := range all {
		all[i] = Entry{
			Subject: subject(jobKind, pool, id, i), Header: map[string]string{partsHeader: strconv.Itoa(n)},
			Data: data[i*partSize : min((i+1)*partSize, len(data))],
		}
	}
	return all, nil
}

// mostParts bounds what is read of a job.
const mostParts = 256

// load reads what a hub keeps of a job for a pool, or for all pools with *.
func load(ctx context.Context, bus Bus, pool, id string) (map[string]Signed, error) {
	found := map[string][][]byte{}
	for e, err := range bus.Follow(ctx, strings.Join([]string{jobKind, pool, Token(id), "*"}, "."), FollowOptions{Until: true}) {
		if err != nil {
			return nil, err
		}
		of, _, number, whole := parts(e.Subject)
		if n, _ := strconv.Atoi(e.Header[partsHeader]); whole && number == len(found[of]) && number < n && n <= mostParts {
			found[of] = append(found[of], e.Data)
		}
	}
	all := map[string]Signed{}
	for of, parts := range found {
		signed, err := joined(parts)
		if err != nil {
			return nil, fmt.Errorf("job %s of pool %s: %w: %w", id, of, errUnreadable, err)
		}
		all[of] = signed
	}
	if len(all) == 0 {
		return nil, ErrUnknown(id)
	}
	return all, nil
}

// ErrUnknown says that a hub does not have a job.
func ErrUnknown(id string) error {
	return fault.Usage("sshpace jobs --hub URL lists its jobs; a hub keeps them for a week", "the hub has no job %s", id)
}

// errUnreadable says that nobody can do anything with a job.
var errUnreadable = errors.New("it cannot be read")

// joined reads a job from its parts, in order.
func joined(parts [][]byte) (s Signed, err error) {
	err = json.Unmarshal(bytes.Join(parts, nil), &s)
	return s, err
}
