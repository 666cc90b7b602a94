package job

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"sshpace/internal/base/host"
)

// Each host has one place, which its batch names, and batches of the pace share none of the job.
func TestCut(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var hosts []host.Host
		for i := range 1 + r.IntN(400) {
			text := []string{fmt.Sprintf("web%03d.example.com", i), fmt.Sprintf("root@10.0.%d.%d:2222", i/256, i%256), fmt.Sprintf("h-%d", i*7)}[r.IntN(3)]
			h, err := host.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			hosts = append(hosts, h)
		}
		var sizes []int
		for left := len(hosts); left > 0; {
			n := min(1+r.IntN(300), left)
			sizes, left = append(sizes, n), left-n
		}
		pools := map[string]string{}
		for _, h := range hosts {
			pools[h.Exact()] = fmt.Sprint("p", r.IntN(3))
		}
		batches, places, err := Cut(hosts, func(h host.Host) string { return pools[h.Exact()] }, sizes)
		if err != nil {
			t.Fatal(err)
		}
		seen, paceOf := map[Place]bool{}, map[string]int{}
		first := 0
		for number, size := range sizes {
			for i := first; i < first+size; i++ {
				p := places[i]
				spec := Spec{Batches: batches[p.Pool]}
				members, err := spec.Hosts(p.Batch)
				if err != nil || members[p.At].Exact() != hosts[i].Exact() || p.Pool != pools[hosts[i].Exact()] || seen[p] {
					t.Fatalf("seed %d: %s is at %+v: %v", seed, hosts[i], p, err)
				}
				seen[p] = true
				batch := fmt.Sprint(p.Pool, p.Batch)
				if of, is := paceOf[batch]; is && of != number {
					t.Fatalf("seed %d: batch %s is in batches %d and %d of the pace", seed, batch, of, number)
				}
				paceOf[batch] = number
			}
			first += size
		}
	}
}

func TestBits(t *testing.T) {
	var a, b Bits
	a.Add(3)
	b.Add(90)
	a.Join(b)
	s := State{Owner: "x/1", Started: a, Ended: b}
	got, err := stateOf(s.header())
	if err != nil || !got.Started.Has(3) || !got.Started.Has(90) || got.Ended.Has(3) || got.Started.Count() != 2 || got.Owner != "x/1" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := stateOf(map[string]string{startedHeader: "%"}); err == nil {
		t.Error("no error")
	}
}
