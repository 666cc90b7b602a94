package sim

import (
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// Transfers are single transfers, one after the other, as they were measured
// before connections took turns: blocks of all cells in random order.
type Transfers struct {
	Length     time.Duration // until so much time has passed, or
	Rounds     int           // complete blocks
	Directions []record.Direction
	Holdouts   int // cells that are never fitted
	Controls   int // A/A pairs in a block: an AEAD cipher under two names
}

// Shape of a transfer, and of what comes between them.
const (
	segmentLength = 50 * time.Millisecond
	segmentCount  = 3
	loginEvery    = 4 // transfers
)

// Transfer carries transfers out and returns the file that a lab would have
// written. Every key exchange has a login in the first block.
func (m *Machine) Transfer(c record.Campaign, s Transfers) *record.File {
	space := alg.Fold(c.Offer)
	k := m.collector(c, nil)
	order, login := slices.Clone(space.Bulk), 0
	held := map[alg.Suite]bool{}
	for _, i := range m.random.Perm(len(order))[:s.Holdouts] {
		held[order[i]] = true
	}
	for block := 1; block <= s.Rounds || s.Rounds == 0 && k.elapsed < s.Length; block++ {
		var trials []record.Trial
		for _, d := range s.Directions {
			for i, cell := range order {
				t := transferOf(cell, d)
				if t.Block = block; held[cell] {
					t.Role = record.RoleHoldout
				}
				trials = append(trials, t)
				if block == 1 && i < len(space.Kex) || i%loginEvery == 0 {
					trials = append(trials, record.Trial{Want: alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-sha2-256", Kex: space.Kex[login%len(space.Kex)]}, Workload: record.Login, Block: block})
					login++
				}
			}
			trials = append(trials, controls(c.Offer, d, block, s.Controls)...)
		}
		m.random.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
		for _, t := range trials {
			if s.Rounds > 0 || k.elapsed < s.Length {
				t.ID, t.Target = len(k.file.Trials)+1, c.Target
				k.single(t)
			}
		}
	}
	return k.file
}

func transferOf(cell alg.Suite, d record.Direction) record.Trial {
	return record.Trial{
		Want: alg.Suite{Cipher: cell.Cipher, MAC: cell.MAC, Kex: "curve25519-sha256"}, Workload: record.Transfer, Direction: d,
		SegmentNS: segmentLength, Segments: segmentCount,
	}
}

// controls are pairs of transfers of one cell that ask for it under two names.
func controls(offer alg.Offer, d record.Direction, block, pairs int) []record.Trial {
	aead := slices.DeleteFunc(slices.Clone(offer.Ciphers), func(name string) bool { return !alg.IsAEAD(name) })
	var out []record.Trial
	for pair := range pairs {
		for _, mac := range offer.MACs[:2] {
			cipher := aead[pair%len(aead)]
			t := transferOf(alg.Suite{Cipher: cipher}, d)
			t.Role, t.Pair, t.Block = record.RoleControl, block*pairs+pair, block
			t.Offered = alg.Suite{Cipher: cipher, MAC: mac, Kex: t.Want.Kex}
			out = append(out, t)
		}
	}
	return out
}
