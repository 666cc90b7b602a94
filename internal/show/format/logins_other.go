//go:build !linux

package format

import (
	"io"

	"sshpace/internal/base/fault"
	"sshpace/internal/record"
)

// Logins is the report of a record file that holds logins, which are taken apart
// on Linux only.
type Logins struct{ Records *record.File }

// Render says so.
func (*Logins) Render(io.Writer, Format) error { return errLogins() }

// LoginChanges are as Logins.
type LoginChanges struct{ *Logins }

// CompareLogins says so.
func CompareLogins([]string, []*record.File) (*LoginChanges, error) { return nil, errLogins() }

func errLogins() error {
	return fault.Usage("read the file on Linux", "results of sshpace handshake are read on Linux only")
}
