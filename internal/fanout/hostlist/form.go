package hostlist

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet/hostset"
)

// Form is the form of a printed list of hosts: one short set by default.
type Form struct {
	Count, Expand bool
	Separator     string // of Expand, as in a string of Go
	Autostep      Autostep
}

// Autostep is the number of equally spaced numbers from which on hosts are folded as a-b/step: a
// count, or a share of the hosts. The zero value is never.
type Autostep struct {
	Numbers int
	Share   float64 // of the hosts; "auto" is all of them, and three at least
}

// String returns a text that Set reads.
func (a *Autostep) String() string {
	if a.Share > 0 {
		return strconv.FormatFloat(100*a.Share, 'g', -1, 64) + "%"
	}
	return strconv.Itoa(a.Numbers)
}

// Set parses the argument of nodeset(1): 4, 50% or auto.
func (a *Autostep) Set(text string) (err error) {
	*a = Autostep{}
	percent, isShare := strings.CutSuffix(text, "%")
	switch {
	case text == "auto":
		a.Numbers, a.Share = 3, 1
		return nil
	case isShare:
		a.Share, err = strconv.ParseFloat(percent, 64)
		a.Share /= 100
	default:
		a.Numbers, err = strconv.Atoi(text)
	}
	if err != nil || !(a.Share >= 0 && a.Share <= 100) || a.Numbers < 0 || a.Numbers == 1 {
		return errors.New("want 2 or more, a percentage or auto; 0 is never")
	}
	return nil
}

// Type names the kind of value.
func (a *Autostep) Type() string { return "N" }

// of returns the least number of names that fold into a step, for a set of hosts of a size.
func (a Autostep) of(hosts int) int {
	if a.Share == 0 {
		return a.Numbers
	}
	return max(a.Numbers, 2, int(math.Ceil(float64(hosts)*a.Share)))
}

// fold makes one set of names.
func (a Autostep) fold(names []string) string { return hostset.FoldSteps(names, a.of(len(names))) }

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
		_, err = fmt.Fprintln(w, f.Autostep.fold(host.Names(hosts)))
	}
	return err
}
