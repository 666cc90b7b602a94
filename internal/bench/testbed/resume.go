//go:build linux

package testbed

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// Resumes refuses to mix what must not be averaged.
func (b *Testbed) Resumes(old *record.File, offer alg.Offer) error {
	if old == nil {
		return nil
	}
	const startAnew = "start a new result and compare the two: sshpace compare"
	for _, part := range []struct{ what, was, is, flag, path string }{
		{"target", old.Campaign.Target, b.Target, "", ""}, {"server", string(old.Campaign.Server), string(b.Server), "", ""},
		{"client version", old.Environment.Client, b.Environment.Client, "--ssh", old.Environment.ClientPath},
		{"server version", old.Environment.Server, b.Environment.Server, "--sshd", old.Environment.ServerPath},
		{"CPU", old.Environment.CPU, b.Environment.CPU, "", ""},
	} {
		if part.was == part.is {
			continue
		}
		hint := startAnew
		if part.path != "" {
			hint = fmt.Sprintf("add %s %s, which it was measured with, or %s", part.flag, shell.Word(part.path), startAnew)
		}
		return fault.Usage(hint, "the file was measured with %s %q, now it is %q", part.what, part.was, part.is)
	}
	differ := func(was, is string) bool { return was != "" && is != "" && was != is } // not every host tells
	if was, is := old.Environment.ServerMachine, b.Environment.ServerMachine; differ(was, is) {
		return fault.Usage(startAnew, "the file was measured on the machine %q, now it is %q", was, is)
	}
	if differ(old.Environment.AddressCheck, b.Environment.AddressCheck) {
		return fault.Usage(startAnew, "the file was measured at another address or port than %s has now", b.Target)
	}
	for _, kind := range alg.Measured {
		if gone := old.Campaign.Offer.Without(offer, kind); len(gone) > 0 {
			return fault.Usage("start a new result", "%s %q of the file is no longer available", kind, gone[0])
		}
	}
	return nil
}

// addressCheck tells two addresses apart, all but one in 65,536, without naming
// either: a result holds no addresses.
func addressCheck(e openssh.Endpoint) string {
	sum := sha256.Sum256([]byte(net.JoinHostPort(e.Hostname, e.Port)))
	return hex.EncodeToString(sum[:2])
}
