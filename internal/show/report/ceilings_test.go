package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// limited is a limit and a control.
func limited() *compare.Ceilings {
	return &compare.Ceilings{
		Suite: alg.Suite{Cipher: "aes128-gcm@openssh.com"}, Direction: record.Upload, Throughput: stats.Interval{Value: 8e8, Lo: 7e8, Hi: 9e8, N: 3}, Limiting: "pipe",
		Rows: []compare.Ceiling{{Name: "pipe", Limit: 1e9, Share: 80}, {Name: "disk read, blocks of 512", Limit: 1e6, Control: true}},
	}
}

func TestCeilingsAsText(t *testing.T) {
	var out bytes.Buffer
	if err := Text(&out, document.OfRanking(&rank.Ranking{}, nil, document.Options{All: true, Ceilings: limited()})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"80.0 limiting\n", "1.00        - control\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestCeilingsAsJSON(t *testing.T) {
	var out bytes.Buffer
	if err := JSON(&out, &rank.Ranking{}, document.Options{Choice: &advise.Choice{}, Ceilings: limited()}); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Ceilings struct {
			Cipher, Direction, Limiting string
			Throughput                  struct{ Value float64 } `json:"throughput_bytes_per_s"`
			Limits                      []struct {
				Name    string
				Limit   float64  `json:"bytes_per_s"`
				Share   *float64 `json:"share_pct"`
				Control bool
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	c := doc.Ceilings
	if c.Cipher != "aes128-gcm@openssh.com" || c.Direction != "upload" || c.Limiting != "pipe" || c.Throughput.Value != 8e8 || len(c.Limits) != 2 {
		t.Fatalf("ceilings: %+v", c)
	}
	if pipe := c.Limits[0]; pipe.Name != "pipe" || pipe.Limit != 1e9 || pipe.Share == nil || *pipe.Share != 80 || pipe.Control {
		t.Errorf("limit: %+v", pipe)
	}
	if control := c.Limits[1]; control.Share != nil || !control.Control {
		t.Errorf("control: %+v", control)
	}
	out.Reset()
	if err := JSON(&out, &rank.Ranking{}, document.Options{Choice: &advise.Choice{}}); err != nil || strings.Contains(out.String(), "ceilings") {
		t.Errorf("a machine that was not measured: %v\n%s", err, out.String())
	}
}

// Rates are in MB/s, whatever the program prints; the answer says what bounds every connection.
func TestMachine(t *testing.T) {
	f := &record.File{Measurements: []record.Measurement{
		{Name: "pipe, blocks of 32K", Unit: record.BytesPerSecond, Value: 2e9, N: 1}, {Name: "loopback TCP, blocks of 32K", Unit: record.BytesPerSecond, Value: 1.5e9, N: 3, Lo: 1e9, Hi: 1.6e9},
		{Name: "AES-128-GCM 32768", Unit: record.KBPerSecond, Value: 7e6, N: 1}, {Name: "rsa 3072 sign", Unit: record.PerSecond, Value: 665, N: 1},
	}}
	var out bytes.Buffer
	if err := Text(&out, document.OfMachine(f, false, document.Commands{Report: "sshpace report x"})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"can be faster than 1500 MB/s,", "the speed of its loopback TCP.", "7000 MB/s with AES-128-GCM", "1500 (1000-1600) MB/s", "665             1/s"} {
		if !strings.Contains(strings.ReplaceAll(out.String(), "\n", " "), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	f.Measurements = nil
	if err := Text(&out, document.OfMachine(f, false, document.Commands{})); err != nil || strings.Contains(out.String(), "/s") {
		t.Errorf("no probe: %v\n%s", err, out.String())
	}
}
