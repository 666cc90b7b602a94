package hostset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// reference is ClusterShell's answer to one expression.
type reference struct {
	Names  []string
	Folded string
	Error  string
}

// askClusterShell asks Debian's package clustershell, which the tests need.
func askClusterShell(t *testing.T, expressions []string) []reference {
	t.Helper()
	var in, out, stderr bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, e := range expressions {
		if err := enc.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/usr/bin/python3", "testdata/reference.py")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("ClusterShell: %v\n%sinstall the package clustershell", err, stderr.String())
	}
	var answers []reference
	for dec := json.NewDecoder(&out); dec.More(); {
		var r reference
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, r)
	}
	if len(answers) != len(expressions) {
		t.Fatalf("%d answers to %d expressions", len(answers), len(expressions))
	}
	return answers
}

// randomExpression uses what both grammars have: no blanks between names, no
// touching brackets, no digits after a bracket (ClusterShell refuses them after
// a step), no negative numbers.
func randomExpression(r *rand.Rand) string {
	var b strings.Builder
	for i := range 1 + r.IntN(5) {
		if i > 0 {
			b.WriteByte(operators[r.IntN(len(operators))])
		}
		b.WriteString([]string{"n", "web", "r1c", "x-"}[r.IntN(4)])
		if r.IntN(4) > 0 {
			b.WriteString(randomRange(r))
		}
		b.WriteString([]string{"", "", "-ib", ".example"}[r.IntN(4)])
		if r.IntN(4) == 0 {
			b.WriteString("p" + randomRange(r))
		}
	}
	return b.String()
}

func randomRange(r *rand.Rand) string {
	var spans []string
	for range 1 + r.IntN(3) {
		width := 1 + r.IntN(3)
		lo := r.IntN(12)
		s := fmt.Sprintf("%0*d", width, lo)
		if r.IntN(2) == 0 {
			s += fmt.Sprintf("-%0*d", width, lo+r.IntN(15))
			if r.IntN(3) == 0 {
				s += fmt.Sprintf("/%d", 1+r.IntN(3))
			}
		}
		spans = append(spans, s)
	}
	return "[" + strings.Join(spans, ",") + "]"
}

// Expansion agrees with ClusterShell for thousands of expressions, and what we
// fold is the same set to ClusterShell; in one dimension it is the same text.
func TestAgreesWithClusterShell(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2026))
	expressions := []string{"n[1-010]", "n[01-100]", "n[3-1]", "n[1/2]", "a,,b", "a!", "n[]", "n[1-3", "n1]", "n[00-3]", "n[1-3/0]"}
	for range 3000 {
		expressions = append(expressions, randomExpression(r))
	}
	var folds []string
	var want [][]string
	for i, ref := range askClusterShell(t, expressions) {
		got, err := Expand(expressions[i], Options{})
		if (err != nil) != (ref.Error != "") {
			t.Errorf("%q: our error %v, ClusterShell's %q", expressions[i], err, ref.Error)
			continue
		}
		if !slices.Equal(sortedCopy(got), sortedCopy(ref.Names)) {
			t.Errorf("%q: ours %q, ClusterShell %q", expressions[i], got, ref.Names)
		}
		if len(got) > 0 {
			folds, want = append(folds, Fold(got)), append(want, sortedCopy(got))
		}
	}
	for i, ref := range askClusterShell(t, folds) {
		if !slices.Equal(sortedCopy(ref.Names), want[i]) {
			t.Errorf("folded %q: ClusterShell reads %q, %s; want %q", folds[i], ref.Names, ref.Error, want[i])
		}
	}
}

func TestFoldsLikeClusterShell(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2026))
	var expressions []string
	for range 1000 {
		var list []string
		for range 1 + r.IntN(20) {
			list = append(list, fmt.Sprintf("n%0*d", 1+r.IntN(3), r.IntN(120)))
		}
		expressions = append(expressions, strings.Join(list, ","))
	}
	for i, ref := range askClusterShell(t, expressions) {
		if got := Fold(strings.Split(expressions[i], ",")); got != ref.Folded {
			t.Errorf("Fold(%q) = %q, ClusterShell %q", expressions[i], got, ref.Folded)
		}
	}
}
