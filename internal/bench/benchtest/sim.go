// Package benchtest simulates machines, and makes results, rankings and documents of them for
// tests; some have hostile names everywhere.
package benchtest

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// Machine holds the parameters of the simulation. The zero value of a field switches that effect
// off.
type Machine struct {
	Seed        uint64
	Cores       int     // free for ssh and sshd; 0 counts as 2
	Noise       float64 // relative deviation of a slice's CPU cost
	WallNoise   float64 // relative deviation of a slice's wall time, beyond its cost
	Connection  float64 // relative deviation between connections
	Drift       float64 // relative change of all costs over an hour... per 100 trials
	RoundDrift  float64 // relative deviation between rounds
	Interaction float64 // relative deviation of a cell from base + cipher + MAC, fixed for a cipher and a MAC's primitive
	Fail        float64 // share of trials that are refused
	NoServer    bool    // server CPU cannot be read
	NoClient    bool    // client CPU cannot be read
	Scale       float64 // factor on all costs; 0 counts as 1
	Path        float64 // ns per byte of the path besides a server's computation: a link or a window is the limit
	Factor      map[alg.Suite]float64
	Neighbors   Neighbors // of sittings only

	trials int
	random *rand.Rand
	levels map[int]float64 // of rounds
}

// Client costs in ns per byte: base, then the additional costs of ciphers and MACs, near those of
// OpenSSH 9.2 on a machine with AES and without SHA instructions.
const base = 0.45

var ciphers = map[string]float64{
	"3des-cbc": 32, "aes128-cbc": 1.25, "aes192-cbc": 1.45, "aes256-cbc": 1.65,
	"aes128-ctr": 0.35, "aes192-ctr": 0.39, "aes256-ctr": 0.43,
	"aes128-gcm@openssh.com": 0.5, "aes256-gcm@openssh.com": 0.57, "chacha20-poly1305@openssh.com": 1.2,
}

var macs = map[string]float64{
	"hmac-sha1": 1.1, "hmac-sha1-96": 1.1, "hmac-sha2-256": 2.4, "hmac-sha2-512": 1.65, "hmac-md5": 1.5,
	"hmac-md5-96": 1.5, "umac-64@openssh.com": 0.3, "umac-128@openssh.com": 0.52, "hmac-sha1-etm@openssh.com": 1.1,
	"hmac-sha1-96-etm@openssh.com": 1.1, "hmac-sha2-256-etm@openssh.com": 2.4, "hmac-sha2-512-etm@openssh.com": 1.65,
	"hmac-md5-etm@openssh.com": 1.5, "hmac-md5-96-etm@openssh.com": 1.5, "umac-64-etm@openssh.com": 0.3,
	"umac-128-etm@openssh.com": 0.52,
}

var kexes = map[string]float64{ // ms of login
	"diffie-hellman-group1-sha1": 66, "diffie-hellman-group14-sha1": 72, "diffie-hellman-group14-sha256": 72, "diffie-hellman-group16-sha512": 95,
	"diffie-hellman-group18-sha512": 210, "diffie-hellman-group-exchange-sha1": 90, "diffie-hellman-group-exchange-sha256": 90,
	"ecdh-sha2-nistp256": 63.5, "ecdh-sha2-nistp384": 68, "ecdh-sha2-nistp521": 71, "curve25519-sha256": 63, "curve25519-sha256@libssh.org": 63,
	"sntrup761x25519-sha512": 67, "sntrup761x25519-sha512@openssh.com": 67,
}

// Offer returns the whole offer of OpenSSH 9.2: 10 ciphers, 16 MACs, 14 key exchanges.
func Offer() alg.Offer {
	sorted := func(m map[string]float64) []string { return slices.Sorted(maps.Keys(m)) }
	return alg.Offer{Ciphers: sorted(ciphers), MACs: sorted(macs), Kex: sorted(kexes)}
}

// Client returns the true client cost of a cell in ns per byte.
func (m *Machine) Client(cell alg.Suite) float64 {
	cost := (base + ciphers[cell.Cipher] + macs[cell.MAC]) * m.scale()
	if f := m.Factor[cell.Bulk()]; f != 0 {
		cost *= f
	}
	return cost * math.Exp(m.Interaction*fixed(cell))
}

func (m *Machine) cores() int {
	if m.Cores == 0 {
		return 2
	}
	return m.Cores
}

func (m *Machine) scale() float64 {
	if m.Scale == 0 {
		return 1
	}
	return m.Scale
}

// Server returns the true server cost of a cell in ns per byte.
func (m *Machine) Server(cell alg.Suite) float64 { return 1.04*m.Client(cell) + 0.08 }

// Wall returns the true wall time of a cell in ns per byte, on an idle machine.
func (m *Machine) Wall(cell alg.Suite) float64 {
	if m.Cores == 1 {
		return m.Path + (m.Client(cell)+m.Server(cell))*1.02
	}
	return m.Path + m.Server(cell)*1.08
}

// fixed returns a standard normal figure that depends only on the computation of a cell.
func fixed(cell alg.Suite) float64 {
	h := uint64(14695981039346656037)
	for _, b := range []byte(cell.Cipher + "/" + alg.Primitive(cell.MAC)) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(h, 1)).NormFloat64()
}

// Run carries out one trial. Its time is the sample's ElapsedNS.
func (m *Machine) Run(t record.Trial) record.Sample {
	if m.random == nil {
		m.begin(7)
	}
	m.trials++
	asked := t.Asked()
	s := record.Sample{Trial: t.ID, Got: alg.NewSuite(asked.Cipher, asked.MAC, asked.Kex), Outcome: record.OK}
	if m.random.Float64() < m.Fail {
		s.Outcome, s.ElapsedNS = record.Refused, 20*time.Millisecond
		return s
	}
	level := m.level(t.Round)
	switch t.Workload {
	case record.Login:
		m.login(&s, level)
	case record.Copy:
		seconds := (kexes[t.Want.Kex]*1e6 + m.Wall(t.Want.Bulk())*float64(t.SizeBytes)) * level * m.noise(m.WallNoise)
		s.Bytes, s.ElapsedNS = t.SizeBytes, time.Duration(seconds)
	}
	return s
}

// begin seeds the random numbers of one of several streams.
func (m *Machine) begin(stream uint64) {
	m.random, m.levels = rand.New(rand.NewPCG(m.Seed, stream)), map[int]float64{}
}

// file returns an empty file of the machine.
func (m *Machine) file(c record.Campaign) *record.File {
	f := &record.File{Campaign: c, Trials: map[int]record.Trial{}}
	f.Campaign.Format = record.FormatVersion
	f.Campaign.Combos = alg.Fold(c.Offer).Combinations()
	f.Environment.Cores = m.cores()
	return f
}

func (m *Machine) noise(deviation float64) float64 {
	return math.Exp(deviation * m.random.NormFloat64())
}

// level returns the speed of the machine during this trial.
func (m *Machine) level(round int) float64 {
	if _, ok := m.levels[round]; !ok {
		m.levels[round] = m.noise(m.RoundDrift)
	}
	return m.levels[round] * (1 + m.Drift*float64(m.trials)/100) * m.noise(m.Connection)
}

func (m *Machine) login(s *record.Sample, level float64) {
	ms := kexes[s.Got.Kex] * level
	wall := time.Duration(ms * 1e6 * m.noise(m.WallNoise))
	client := time.Duration((ms - 45) * 1e6 * 0.5 * m.noise(m.Noise))
	server := time.Duration((ms - 45) * 1e6 * m.noise(m.Noise))
	s.Phases = &record.Phases{LoginNS: wall, ClientCPUNS: &client, ServerCPUNS: &server}
	if m.NoServer {
		s.Phases.ServerCPUNS = nil
	}
	s.ElapsedNS = wall + 60*time.Millisecond
}
