package benchtest

import (
	"testing"
	"time"

	"sshpace/internal/base/alg"

	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Ranking returns a run of all cells on a simulated machine. scale is its slowness; 1 is that of
// the simulation's own machine.
func Ranking(t testing.TB, scale float64, directions ...record.Direction) (*rank.Ranking, *record.File) {
	t.Helper()
	if len(directions) == 0 {
		directions = []record.Direction{record.Upload}
	}
	m := &Machine{Seed: 3, Noise: 0.03, WallNoise: 0.05, Connection: 0.01, Scale: scale}
	f := m.Sit(record.Campaign{Offer: Offer(), Target: "loopback", Tool: "test"}, Sitting{
		Cells: alg.Fold(Offer()).Bulk, Directions: directions, Length: 5 * time.Second, Slice: 2 * time.Millisecond, Long: 2, Logins: 2,
	})
	addOverheads(f, directions)
	f.Environment.CPU, f.Environment.Client, f.Environment.Server = "Simulated CPU", "OpenSSH_9.2p1", "OpenSSH_9.2"
	r, err := rank.Of(f, rank.Auto)
	if err != nil {
		t.Fatal(err)
	}
	return r, f
}

// addOverheads appends the copies of one byte that a run on loopback holds, as they are recorded:
// one segment, nearly all of whose time is the login.
func addOverheads(f *record.File, directions []record.Direction) {
	want := alg.NewSuite("aes128-gcm@openssh.com", "", "curve25519-sha256")
	direction := record.Upload
	if len(directions) > 0 {
		direction = directions[0]
	}
	last := f.Samples[len(f.Samples)-1]
	start := last.Start.Add(last.ElapsedNS)
	for range 3 {
		id := len(f.Trials) + 1
		wall, client, server := 140*time.Millisecond, 9*time.Millisecond, 22*time.Millisecond
		f.Trials[id] = record.Trial{ID: id, Target: f.Trials[last.Trial].Target, Want: want, Workload: record.Copy, Direction: direction, SizeBytes: 1, Role: record.RoleOverhead}
		f.Samples = append(f.Samples, record.Sample{
			Trial: id, Got: want, Outcome: record.OK, Start: start, ElapsedNS: wall, Bytes: 1,
			ClientCPUNS: &client, ServerCPUNS: &server,
		})
		start = start.Add(wall)
	}
}

// Payloads are names that a hostile host might use. A script that runs sets window.hacked.
var Payloads = []string{
	`<script>window.hacked=1</script>`,
	`</script><script>window.hacked=1</script>`,
	`"><img src=x onerror=window.hacked=1>`,
	`' onmouseover=window.hacked=1 x='`,
	"\u2028window.hacked=1//\u2029",
	"\x1b]0;owned\x07\x1b[31mred",
	`</style><svg onload=window.hacked=1>`,
	`<!--<script>`,
	`{{.}}${window.hacked=1}`,
	`javascript:window.hacked=1`,
	`=HYPERLINK("http://127.0.0.1/","x")`,
	`=1+2`, `+1+2`, `-1+2`, `@SUM(1)`, "\t=1+2",
	"a|b](http://127.0.0.1/) ![i](x) `code`",
	"line\nbreak\r\nmore",
	"\u202etxt.exe",
	"]]>\x00\xff&amp;",
}

// Spoil puts the payloads into every text of a ranking that a host or a file can choose.
func Spoil(r *rank.Ranking) {
	n := 0
	next := func() string {
		n++
		return Payloads[n%len(Payloads)]
	}
	e, c := &r.Environment, &r.Campaign
	for _, s := range []*string{
		&e.CPU, &e.Client, &e.Server, &e.Crypto, &e.ServerBanner, &e.ServerMachine, &e.Kernel, &e.ClientPath, &e.Hypervisor,
		&c.Target, &c.Tool, &c.Data, (*string)(&c.Engine), (*string)(&c.Server), &c.Policy, &r.Ended,
	} {
		*s = next()
	}
	for _, payload := range Payloads {
		r.Failed = append(r.Failed, rank.Failure{Suite: alg.Suite{Cipher: payload}, Workload: record.Workload(payload), Outcome: record.Outcome(payload), Detail: payload, Attempts: 1})
		r.Warnings = append(r.Warnings, rank.Warning{Name: payload, Text: payload, Hint: payload})
		r.Findings = append(r.Findings, record.Finding{What: payload, Why: payload, Evidence: payload, Fix: payload})
	}
	for i := range min(len(Payloads), len(r.Bulk)) {
		r.Bulk[i].Suite.Cipher = Payloads[i]
		r.Bulk[len(r.Bulk)-1-i].Suite.MAC = Payloads[i]
	}
	for i := range r.Kex {
		r.Kex[i].Name = next()
		r.Kex[i].Aliases = []string{next()}
	}
}
