package benchtest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Sitting describes how connections take turns. The zero value of a field leaves that part out.
type Sitting struct {
	Cells []alg.Suite // canonical, one connection each
	// Directions of the data; each has its own connections. None means uploads.
	Directions []record.Direction
	Logins     int // of each key exchange, after the slices
	Length     time.Duration
	Slice      time.Duration // cost of a slice on the busier side
	Long       int           // every longEvery slices of a connection one is longFactor as long
	Controls   int           // second connections of the first cells
	Holdouts   int           // cells, from the end, that are never fitted
	ExcessNS   float64       // cost of a slice on either side besides its bytes
}

const longFactor = 5

// Neighbors are other guests of the host, modeled on a real one: they take execution units for 10
// to 50 ms at a time, which only ever slows, and are busier at some times than at others.
type Neighbors struct {
	Share float64 // of the time, on average
	Slow  float64 // mean relative cost that a burst adds
	Drift float64 // relative amplitude of the slow changes of Share
	// Uneven is how much more a computation that needs many execution units feels them, and how
	// much less one that waits for its own results.
	Uneven float64
}

// felt returns the part of a burst that a cell feels.
func (n Neighbors) felt(cell alg.Suite) float64 {
	switch name := cell.Cipher + cell.MAC; {
	case strings.Contains(name, "3des") || strings.Contains(name, "md5"):
		return 1 - n.Uneven
	case strings.Contains(name, "umac") || cell.MAC == "":
		return 1 + n.Uneven
	}
	return 1
}

// weather is the slowness of the machine over time.
type weather struct {
	of     Neighbors
	random *rand.Rand
	phase  float64
	until  time.Duration // end of the burst or of the calm
	slow   float64       // of the burst; 0 in a calm
}

// weather returns the slowness of the machine over time, from some point of its slow changes on.
func (m *Machine) weather() *weather {
	return &weather{of: m.Neighbors, random: m.random, phase: 2 * math.Pi * m.random.Float64()}
}

// burst is the mean length of a burst.
const burst = 30 * time.Millisecond

// at returns the factor on costs at a time, which must not go back.
func (w *weather) at(now time.Duration) float64 {
	for w.of.Share > 0 && w.until <= now {
		if w.slow > 0 {
			w.slow = 0
			share := w.of.Share * (1 + w.of.Drift*math.Sin(w.phase+now.Seconds()/4))
			calm := float64(burst) * (1 - share) / math.Max(share, 0.01)
			w.until += time.Duration(w.random.ExpFloat64() * calm)
			continue
		}
		w.slow = w.of.Slow * (0.3 + 0.7*w.random.ExpFloat64()) // heavy tail
		w.until += burst/3 + time.Duration(w.random.Float64()*float64(burst)*4/3)
	}
	return 1 + w.slow
}

// Sit runs one sitting and returns the file that a lab would have written.
func (m *Machine) Sit(c record.Campaign, s Sitting) *record.File {
	m.begin(11)
	f := m.file(c)
	own := map[int]float64{} // factor of each connection
	for i, t := range s.trials() {
		t.ID, t.Target, t.Round = i+1, c.Target, 1
		f.Trials[t.ID] = t
		own[t.ID] = m.noise(m.Connection)
	}
	m.turns(f, s, own)
	for id := range len(f.Trials) {
		t := f.Trials[id+1]
		if t.Workload == record.Sitting {
			f.Samples = append(f.Samples, record.Sample{Trial: t.ID, Got: t.Want, Outcome: record.OK, ElapsedNS: s.Length})
		}
	}
	m.logins(f, s.Logins)
	return f
}

// logins logs in each times with every key exchange; each one with two names also has a control
// under either name.
func (m *Machine) logins(f *record.File, each int) {
	space := alg.Fold(f.Campaign.Offer)
	login := func(t record.Trial) {
		t.ID, t.Target, t.Workload, t.Round = len(f.Trials)+1, f.Campaign.Target, record.Login, 1
		f.Trials[t.ID] = t
		f.Samples = append(f.Samples, m.Run(t))
	}
	for round := range each {
		for _, kex := range space.Kex {
			t := record.Trial{Want: alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-sha2-256", Kex: kex}}
			login(t)
			for _, alias := range space.Alias[kex] {
				t.Role, t.Pair = record.RoleControl, round+1
				login(t)
				t.Offered = t.Want
				t.Offered.Kex = alias
				login(t)
			}
		}
	}
}

func (s Sitting) trials() (out []record.Trial) {
	directions := s.Directions
	if len(directions) == 0 {
		directions = []record.Direction{record.Upload}
	}
	for _, d := range directions {
		first := len(out)
		for i, cell := range s.Cells {
			t := record.Trial{Want: cell, Workload: record.Sitting, Direction: d}
			if i >= len(s.Cells)-s.Holdouts {
				t.Role = record.RoleHoldout
			}
			out = append(out, t)
		}
		for i := first; i < first+s.Controls; i++ {
			out[i].Pair = i + 1
			second := out[i]
			second.Role = record.RoleControl
			out = append(out, second)
		}
	}
	return out
}

// turns gives every connection a slice per round, three if it is held out, in random order.
func (m *Machine) turns(f *record.File, s Sitting, own map[int]float64) {
	w := m.weather()
	var ids []int
	for id, t := range f.Trials {
		ids = append(ids, id)
		if t.Role == record.RoleHoldout {
			ids = append(ids, id, id)
		}
	}
	slices.Sort(ids)
	var now time.Duration
	batch := record.Slices{Sitting: 1, Start: time.Unix(0, 0)}
	take := func(id, round int, long bool) {
		slice := m.slice(f.Trials[id], s, own[id], w.at(now), long)
		slice.Round, slice.StartNS = round, now-batch.Start.Sub(time.Unix(0, 0))
		batch.Slices = append(batch.Slices, slice)
		if now += slice.WallNS + s.Slice/2; slice.StartNS > time.Second {
			f.Slices = append(f.Slices, batch)
			batch = record.Slices{Sitting: 1, Start: time.Unix(0, int64(now))}
		}
	}
	for round := 1; now < s.Length; round++ {
		m.random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		for _, id := range ids {
			take(id, round, s.Long > 0 && (round+id)%s.Long == 0)
		}
	}
	f.Slices = append(f.Slices, batch)
}

// slice carries out one turn of one connection.
func (m *Machine) slice(t record.Trial, s Sitting, own, slow float64, long bool) record.Slice {
	cell := t.Want.Bulk()
	bytes := math.Ceil(float64(s.Slice)/(m.Path+m.Server(cell))/32768) * 32768
	if long {
		bytes *= longFactor
	}
	level := own * (1 + (slow-1)*m.Neighbors.felt(cell)) * m.noise(m.Noise)
	client := time.Duration(m.Client(cell)*bytes*level*m.noise(m.Noise/4) + s.ExcessNS)
	server := time.Duration(m.Server(cell)*bytes*level*m.noise(m.Noise/4) + s.ExcessNS)
	wall := time.Duration(m.Wall(cell)*bytes*level*m.noise(m.WallNoise) + s.ExcessNS)
	out := record.Slice{Trial: t.ID, WallNS: wall, Bytes: unit.Bytes(bytes), ClientCPUNS: &client, ServerCPUNS: &server}
	if m.NoServer {
		out.ServerCPUNS = nil
	}
	if m.NoClient {
		out.ClientCPUNS = nil
	}
	return out
}
