package report

import (
	"fmt"
	"io"

	"sshpace/internal/rank"
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
		mark := ""
		if r.Name == c.Limiting {
			mark = " limiting"
		}
		row(w, "%-42s %8s %8s%s", fit(r.Name, 42), figure(r.Limit/1e6), fmt.Sprintf("%.0f %%", 100*r.Share), mark)
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
