package prove

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"sshpace/internal/base/alg"
)

// A proof that was stopped after its first round has a ratio and no interval.
func TestProofOfOneRound(t *testing.T) {
	p := &proof{target: "loopback", suites: [2]alg.Suite{{Cipher: "a"}, {Cipher: "b"}}, methods: []*method{{name: "raw upload", direct: true}, {name: "scp upload"}}}
	p.methods[0].add([2]rates{{throughput: 100e6, cost: 2}, {throughput: 235e6, cost: 1}})
	report := func() string {
		var out bytes.Buffer
		if err := p.write(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	one := report()
	if strings.Contains(one, "x (") || !strings.Contains(one, "2.35x  not enough data") || !strings.Contains(one, "one round gives no interval") || strings.Contains(one, "login") {
		t.Errorf("one round, and no copy:\n%s", one)
	}
	var doc struct {
		Schema  string
		Methods []struct {
			Verdict string
			Speed   struct{ Value float64 } `json:"throughput_ratio"`
		}
	}
	var out bytes.Buffer
	if err := errors.Join(p.json(&out), json.Unmarshal(out.Bytes(), &doc)); err != nil || doc.Schema != "sshpace.proof/1" || len(doc.Methods) != 2 ||
		math.Abs(doc.Methods[0].Speed.Value-2.35) > 0.01 || doc.Methods[0].Verdict != "not enough data" {
		t.Errorf("%+v, %v", doc, err)
	}
	for range 2 {
		p.methods[0].add([2]rates{{throughput: 100e6}, {throughput: 240e6}})
		p.methods[1].add([2]rates{{throughput: 50e6}, {throughput: 60e6}})
	}
	if more := report(); !strings.Contains(more, "x (2.35-2.40)") || !strings.Contains(more, "3 rounds give no") || !strings.Contains(more, "include the login") {
		t.Errorf("three rounds:\n%s", more)
	}
}

// What ten rounds cannot tell gets a hint how many can; where all is told there is none.
func TestProofSaysHowManyRounds(t *testing.T) {
	p := &proof{target: "loopback", suites: [2]alg.Suite{{Cipher: "a"}, {Cipher: "b"}}, methods: []*method{{name: "raw upload", direct: true}, {name: "scp upload"}}}
	report := func() string {
		var out bytes.Buffer
		if err := p.write(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for i := range 10 {
		p.methods[0].add([2]rates{{throughput: 100e6}, {throughput: 200e6 + float64(i)*1e5}})
	}
	if told := report(); strings.Contains(told, "--rounds") {
		t.Errorf("all is told:\n%s", told)
	}
	for i := range 10 {
		p.methods[1].add([2]rates{{throughput: 100e6}, {throughput: 90e6 + float64(i)*3e6}})
	}
	if open := report(); !strings.Contains(open, "not enough data\n") || !strings.Contains(open, "\n# for more data: --rounds ") {
		t.Errorf("scp is open:\n%s", open)
	}
}
