package hostlist

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet/hostset"
)

// Form is how a list of hosts is printed: one short set, unless it says otherwise.
type Form struct {
	Count, Expand bool
	Separator     string // of Expand, as in a string of Go
	Autostep      int
}

// Write prints hosts.
func (f Form) Write(w io.Writer, hosts []host.Host) error {
	var err error
	switch {
	case f.Count:
		_, err = fmt.Fprintln(w, len(hosts))
	case f.Expand:
		separator, bad := strconv.Unquote(`"` + strings.ReplaceAll(f.Separator, `"`, `\"`) + `"`)
		if bad != nil {
			separator = f.Separator
		}
		_, err = fmt.Fprintln(w, strings.Join(hostset.Sorted(host.Names(hosts)), separator))
	default:
		_, err = fmt.Fprintln(w, hostset.FoldSteps(host.Names(hosts), f.Autostep))
	}
	return err
}
