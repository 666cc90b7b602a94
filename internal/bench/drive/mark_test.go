package drive

import (
	"strings"
	"testing"

	"sshpace/internal/ssh/openssh"
)

func TestDescribeIsBounded(t *testing.T) {
	got := describe(describe("", "Linux 6.1.0 x86_64"), "model name\t: Some CPU\t")
	if want := "Linux 6.1.0 x86_64; Some CPU"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for range 1000 {
		got = describe(got, "noise ü")
	}
	if len(got) > maxMachine || !strings.HasPrefix(got, "Linux") || strings.ToValidUTF8(got, "") != got {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestDropped(t *testing.T) {
	for detail, want := range map[string]bool{
		"kex_exchange_identification: Connection closed by remote host":    true,
		"ssh_exchange_identification: read: Connection reset by peer":      true,
		"Connection closed by 10.0.0.1 port 22":                            true,
		"ssh: connect to host x port 22: Connection refused":               false,
		"Unable to negotiate with 10.0.0.1 port 22: no matching MAC found": false,
	} {
		if e := (&HostError{openssh.Failure(openssh.ParseVerbose(detail), "")}); e.dropped() != want {
			t.Errorf("%+v: dropped = %v", e, !want)
		}
	}
}
