package report

import (
	"fmt"
	"io"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
)

// ceilings says how near the fastest cell comes to what its machine can do.
func ceilings(w io.Writer, c *rank.Ceilings) {
	if c == nil {
		return
	}
	name := Short(c.Cell.Suite.Cipher)
	if c.Cell.Suite.MAC != "" {
		name += " " + Short(c.Cell.Suite.MAC)
	}
	say(w, "\nCeilings of %s, %s, %s MB/s", name, c.Cell.Direction, number(c.Cell.Throughput, 1e6))
	row(w, "%-42s %8s %8s", "", "MB/s", "share")
	for _, r := range c.Rows {
		share, mark := fmt.Sprintf("%.0f %%", 100*r.Share), ""
		switch {
		case r.Control:
			share, mark = "-", " control"
		case r.Name == c.Limiting:
			mark = " limiting"
		}
		row(w, "%-42s %8s %8s%s", fit(r.Name, 42), figure(r.Limit/1e6), share, mark)
	}
	switch {
	case c.Limiting == "" && c.Busy:
		say(w, "nothing of this is near: other work on the machine took its share")
	case c.Limiting == "":
		say(w, "nothing of this is near: the link, the window of 2 MiB or the scheduler limits")
	}
	if c.Disk != "" {
		say(w, "a copy of files is limited by the disk: %s is slower than SSH", c.Disk)
	}
}

// jsonCeilings are the limits of the machine beside its fastest cell.
type jsonCeilings struct {
	alg.Suite
	Direction  record.Direction `json:"direction"`
	Throughput jsonQuantity     `json:"throughput_bytes_per_s"` // of that cell
	Measured   time.Time        `json:"measured"`               // when the machine was
	Limiting   string           `json:"limiting,omitempty"`     // name of the limit that is nearest; absent where none is near
	Disk       string           `json:"disk,omitempty"`         // name of the disk's limit, where a copy of files hits it first
	Limits     []jsonCeiling    `json:"limits"`
}

// jsonCeiling is one limit.
type jsonCeiling struct {
	Name    string   `json:"name"`
	Limit   float64  `json:"bytes_per_s"`
	Share   *float64 `json:"share_pct,omitempty"` // of the limit that the cell reaches
	Control bool     `json:"control,omitempty"`   // for comparison only: it limits nothing and has no share
}

func ceilingsDocument(c *rank.Ceilings) *jsonCeilings {
	if c == nil {
		return nil
	}
	out := &jsonCeilings{
		Suite: c.Cell.Suite, Direction: c.Cell.Direction, Throughput: jsonQuantity(*c.Cell.Throughput),
		Measured: c.Measured, Limiting: c.Limiting, Disk: c.Disk, Limits: []jsonCeiling{},
	}
	for _, r := range c.Rows {
		limit := jsonCeiling{Name: r.Name, Limit: r.Limit, Control: r.Control}
		if !r.Control {
			share := 100 * r.Share
			limit.Share = &share
		}
		out.Limits = append(out.Limits, limit)
	}
	return out
}
