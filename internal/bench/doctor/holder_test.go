//go:build linux

package doctor

import (
	"bufio"
	"strings"
	"testing"
)

// TestInodeOf: the one socket that listens at a path, whatever else has such a name.
func TestInodeOf(t *testing.T) {
	const head = "Num       RefCount Protocol Flags    Type St Inode Path\n"
	const (
		ours   = "00000000d1ac3a6c: 00000002 00000000 00010000 0001 01 715553 /h/a b/cm.DkJykm1FRvR5FTmB\n"
		plain  = "00000000d1ac3a6d: 00000002 00000000 00010000 0001 01   123 /h/a b/cm\n"
		client = "00000000d1ac3a6e: 00000003 00000000 00000000 0001 03 715554 /h/a b/cm\n"
		other  = "00000000d1ac3a6f: 00000002 00000000 00010000 0001 01 715555 /h/a b/cm.web1.DkJykm1FRvR5FTmB\n"
		none   = "00000000d1ac3a70: 00000003 00000000 00000000 0001 03 715556\n"
	)
	for text, want := range map[string]string{
		head + none + client + other + ours: "715553",
		head + other + plain:                "123",
		head + ours + plain:                 "", // which of them, is not known
		head + client + other:               "",
		"":                                  "",
	} {
		if got := inodeOf(bufio.NewScanner(strings.NewReader(text)), "/h/a b/cm"); got != want {
			t.Errorf("%q, want %q in:\n%s", got, want, text)
		}
	}
}
