//go:build linux

package testbed

import (
	"crypto/sha256"
	"encoding/hex"
	"net"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// Resumes refuses to mix what must not be averaged.
func (b *Testbed) Resumes(old *record.File, offer alg.Offer) error {
	if old == nil {
		return nil
	}
	const startAnew = "start a new result and compare the two: sshpace compare"
	for _, pair := range [][3]string{
		{"target", old.Campaign.Target, b.Target}, {"server", string(old.Campaign.Server), string(b.Server)},
		{"client version", old.Environment.Client, b.Environment.Client}, {"server version", old.Environment.Server, b.Environment.Server},
		{"CPU", old.Environment.CPU, b.Environment.CPU},
	} {
		if pair[1] != pair[2] {
			return fault.Usage(startAnew, "the file was measured with %s %q, now it is %q", pair[0], pair[1], pair[2])
		}
	}
	differ := func(was, is string) bool { return was != "" && is != "" && was != is } // not every host tells
	if was, is := old.Environment.ServerMachine, b.Environment.ServerMachine; differ(was, is) {
		return fault.Usage(startAnew, "the file was measured on the machine %q, now it is %q", was, is)
	}
	if differ(old.Environment.AddressCheck, b.Environment.AddressCheck) {
		return fault.Usage(startAnew, "the file was measured at another address or port than %s has now", b.Target)
	}
	for _, kind := range []alg.Kind{alg.Cipher, alg.MAC, alg.Kex} {
		if gone := old.Campaign.Offer.Without(offer, kind); len(gone) > 0 {
			return fault.Usage("start a new result", "%s %q of the file is not to be had any more", kind, gone[0])
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
