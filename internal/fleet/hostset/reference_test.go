package hostset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/ssh/sshtest"
)

// reference is ClusterShell's answer to one expression.
type reference struct {
	Names  []string
	Folded string
	Error  string
}

// randomExpression uses what both grammars have: no blanks between names, no touching brackets, no
// digits after a bracket (ClusterShell refuses them after a step), no negative numbers.
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

// Expansion agrees with ClusterShell for thousands of expressions, and what we fold is the same set
// to ClusterShell; in one dimension it is the same text.
func TestAgreesWithClusterShell(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2026))
	expressions := []string{"n[1-010]", "n[01-100]", "n[3-1]", "n[1/2]", "a,,b", "a!", "n[]", "n[1-3", "n1]", "n[00-3]", "n[1-3/0]"}
	for range 3000 {
		expressions = append(expressions, randomExpression(r))
	}
	var folds []string
	var want [][]string
	for i, ref := range sshtest.Reference[reference](t, "clustershell", expressions) {
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
	for i, ref := range sshtest.Reference[reference](t, "clustershell", folds) {
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
	for i, ref := range sshtest.Reference[reference](t, "clustershell", expressions) {
		if got := Fold(strings.Split(expressions[i], ",")); got != ref.Folded {
			t.Errorf("Fold(%q) = %q, ClusterShell %q", expressions[i], got, ref.Folded)
		}
	}
}

// stepQuestion asks for steps.
type stepQuestion struct {
	Text     string `json:"text"`
	Autostep int    `json:"autostep"`
}

func TestFoldsStepsLikeClusterShell(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 2026))
	var questions []stepQuestion
	for range 2000 {
		var list []string
		for range 1 + r.IntN(4) {
			width, at, step := 1+r.IntN(3), r.IntN(40), 1+r.IntN(4)
			for range 1 + r.IntN(6) {
				list = append(list, fmt.Sprintf("n%0*d", width, at))
				at += step
			}
		}
		questions = append(questions, stepQuestion{strings.Join(list, ","), 3 + r.IntN(4)})
	}
	for i, ref := range sshtest.Reference[reference](t, "clustershell", questions) {
		q := questions[i]
		got := FoldSteps(strings.Split(q.Text, ","), q.Autostep)
		if got != ref.Folded {
			t.Errorf("FoldSteps(%q, %d) = %q, ClusterShell %q", q.Text, q.Autostep, got, ref.Folded)
		}
		back, err := Expand(got, Options{})
		if err != nil || !slices.Equal(sortedCopy(back), sortedCopy(strings.Split(q.Text, ","))) {
			t.Errorf("%q folded is %q, which is %q, %v", q.Text, got, back, err)
		}
	}
}

// Steps of a Selection mean what the operators of the grammar mean, which
// TestAgreesWithClusterShell compares with nodeset's.
func TestStepsAreTheOperators(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 2026))
	for range 1000 {
		text := randomExpression(r)
		terms, err := split(text)
		if err != nil {
			t.Fatal(err)
		}
		s := Selection{Sets: []string{terms[0].text}, EmptyOK: true}
		for _, term := range terms[1:] {
			if term.op == ',' {
				s.Sets = append(s.Sets, term.text)
			}
		}
		text = strings.Join(s.Sets, ",")
		for _, term := range terms[1:] {
			if term.op != ',' {
				s.Steps = append(s.Steps, Step{Op: term.op, Sets: []string{term.text}})
				text += string(term.op) + term.text
			}
		}
		want, wrong := Expand(text, Options{})
		got, err := s.Hosts()
		var names []string
		for _, h := range got {
			names = append(names, h.Name)
		}
		if (err != nil) != (wrong != nil) || err == nil && !slices.Equal(sortedCopy(names), sortedCopy(want)) {
			t.Errorf("%q: steps give %q, %v; operators %q, %v", text, names, err, want, wrong)
		}
	}
}
