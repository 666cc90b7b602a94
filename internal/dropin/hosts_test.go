package dropin

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// blank is a text of empty lines without end.
type blank struct{}

func (blank) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("\n"), len(p))), nil }

// A list of hosts that does not end is an error in every mode.
func TestListsEnd(t *testing.T) {
	for _, args := range [][]string{{"pssh", "-h", "/dev/zero", "x"}, {"pdsh", "-w", "^/dev/zero", "x"}, {"mpssh", "-f", "-", "x"}, {"mpssh.py", "-f", "/dev/zero", "x"}} {
		var stdout, stderr bytes.Buffer
		env := offline(t, &stdout, &stderr)
		env.Stdin, env.Getenv = blank{}, func(string) string { return "" }
		if code := Mode(args[0])(t.Context(), env, args[1:]); code == exitOK || !strings.Contains(stderr.String(), "more than 64 MiB") {
			t.Errorf("%q: code %d, stdout %q, stderr %q", args, code, &stdout, &stderr)
		}
	}
}

// Numbers of more than 32 bits, such as dates, are numbers of hosts for pdsh, too.
func TestLongNumbers(t *testing.T) {
	for _, list := range []string{"n[20261126001]", "n[4294967295-4294967297,007]-ib", "n[9000000000000000000]"} {
		out, err := exec.Command("pdsh", "-R", "exec", "-N", "-w", list, "echo", "%h").Output()
		if err != nil {
			t.Fatalf("%v: install the package pdsh", err)
		}
		want := strings.Fields(string(out))
		got, err := expandList(list)
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; pdsh %q", list, got, err, want)
		}
	}
}
