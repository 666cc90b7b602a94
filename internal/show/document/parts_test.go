package document_test

import (
	"math"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// Two ciphers, two MACs and an AEAD cipher, additive by construction:
//
//	aes128-ctr + umac 0.7, aes128-ctr + md5 1.9, 3des + umac 30.7, 3des + md5 31.9; gcm 0.5
//
// The cheapest of all is gcm: base 0.5. aes128-ctr with the cheapest MAC costs
// 0.7: cipher 0.2. md5 adds 1.2 to umac.
func TestParts(t *testing.T) {
	costs := map[alg.Suite]float64{
		{Cipher: "aes128-ctr", MAC: "umac"}: 0.7, {Cipher: "aes128-ctr", MAC: "md5"}: 1.9,
		{Cipher: "3des", MAC: "umac"}: 30.7, {Cipher: "3des", MAC: "md5"}: 31.9, {Cipher: "gcm"}: 0.5,
	}
	want := map[alg.Suite]document.Parts{
		{Cipher: "aes128-ctr", MAC: "umac"}: {Base: 0.5, Cipher: 0.2}, {Cipher: "aes128-ctr", MAC: "md5"}: {Base: 0.5, Cipher: 0.2, MAC: 1.2},
		{Cipher: "3des", MAC: "umac"}: {Base: 0.5, Cipher: 30.2}, {Cipher: "3des", MAC: "md5"}: {Base: 0.5, Cipher: 30.2, MAC: 1.2}, {Cipher: "gcm"}: {Base: 0.5},
	}
	r := &rank.Ranking{}
	for suite, cost := range costs {
		r.Bulk = append(r.Bulk, rank.Cell{Suite: suite, Direction: record.Upload, Client: &rank.Quantity{Value: cost}})
		r.Bulk = append(r.Bulk, rank.Cell{Suite: suite, Direction: record.Download, Client: &rank.Quantity{Value: 100 * cost}})
	}
	client := func(c rank.Cell) *rank.Quantity { return c.Client }
	got := document.PartsOf(r, record.Upload, client)
	for suite, w := range want {
		g := got[suite]
		if math.Abs(g.Base-w.Base)+math.Abs(g.Cipher-w.Cipher)+math.Abs(g.MAC-w.MAC) > 1e-3*costs[suite] {
			t.Errorf("%s: %+v, want %+v", suite, g, w)
		}
		if sum := g.Base + g.Cipher + g.MAC; math.Abs(sum-costs[suite]) > 1e-9 {
			t.Errorf("%s: the parts add up to %v, want %v", suite, sum, costs[suite])
		}
	}
	if got := document.PartsOf(r, record.Upload, func(c rank.Cell) *rank.Quantity { return c.Server }); len(got) != 0 {
		t.Errorf("parts of a side that is unknown: %v", got)
	}
}
