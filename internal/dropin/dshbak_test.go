package dropin_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/dropin"
)

// dshbak runs our mode.
func dshbak(t *testing.T, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = dropin.Mode("dshbak")(t.Context(), dropin.Env{Stdin: strings.NewReader(in), Stdout: &stdout, Stderr: &stderr}, args)
	return stdout.String(), stderr.String(), code
}

// original runs Debian's, from the package pdsh.
func original(t *testing.T, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	cmd := exec.Command("/usr/bin/dshbak", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatalf("%v: install pdsh", err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// blocks are the parts of an output with their heads' names sorted: the original's order is that of
// a hash where numbers are equal.
func blocks(out string) []string {
	const line = "----------------\n"
	parts := strings.Split(out, line)
	var list []string
	for i := 1; i+1 < len(parts); i += 2 {
		names := strings.Split(strings.TrimSpace(parts[i]), ",")
		slices.Sort(names)
		list = append(list, strings.Join(names, ",")+"\n"+parts[i+1])
	}
	slices.Sort(list)
	return list
}

func TestDshbakAsTheOriginal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2026))
	inputs := []string{"", "a: b", "a: b\n", "no colon\n", "  a  :  two\n", "a:x\na: y\nb: x\n", "n1: x\nn10: x\nn2: y\n", "a: \x1b[1mbold\n"}
	for range 60 {
		var b strings.Builder
		for range r.IntN(30) {
			prefix := []string{"n", "web", "r1c"}[r.IntN(3)]
			suffix := []string{"", "-ib", ".example"}[r.IntN(3)]
			fmt.Fprintf(&b, "%s%0*d%s: %s\n", prefix, 1+r.IntN(3), r.IntN(15), suffix, []string{"x", "y", ""}[r.IntN(3)])
		}
		inputs = append(inputs, b.String())
	}
	for _, in := range inputs {
		for _, args := range [][]string{{}, {"-c"}} {
			out, errs, code := dshbak(t, in, args...)
			want, _, wantCode := original(t, in, args...)
			if code != wantCode || errs != "" || !slices.Equal(blocks(out), blocks(want)) {
				t.Errorf("%q %q: %d, %s\n%s\noriginal: %d\n%s", args, in, code, errs, out, wantCode, want)
			}
		}
	}
}

func TestDshbakMistakes(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"-c", "-d", dir}, {"-f"}, {"-d", filepath.Join(dir, "none")}} {
		_, errs, code := dshbak(t, "a: b\n", args...)
		_, want, wantCode := original(t, "a: b\n", args...)
		if code != wantCode || errs != want {
			t.Errorf("%q: %d, %q; original %d, %q", args, code, errs, wantCode, want)
		}
	}
}

// Files have the original's names and content; what a host is called leads nowhere.
func TestDshbakFiles(t *testing.T) {
	dir := t.TempDir()
	in := "a1: x\na2: y\na1: z\n"
	dshbak(t, in, "-f", "-d", dir+"/ours")
	original(t, in, "-f", "-d", dir+"/theirs")
	if out, err := exec.Command("diff", "-r", dir+"/ours", dir+"/theirs").CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
	dshbak(t, "../evil: x\n", "-d", dir+"/ours")
	if list, _ := filepath.Glob(dir + "/*"); len(list) != 2 {
		t.Errorf("made: %q", list)
	}
}
