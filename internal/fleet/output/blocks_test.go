package output

import (
	"fmt"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// blocksOf plays a run into the view of -b, and returns its parts.
func blocksOf(t *testing.T, steps ...any) *Blocks {
	t.Helper()
	b := &Blocks{}
	sink, err := (&View{Gather: true, Quiet: true, Color: "never"}).Sink(Streams{Out: b, Err: b, Getenv: func(string) string { return "" }}, make([]host.Host, 2))
	if err != nil {
		t.Fatal(err)
	}
	play(t, sink, steps...)
	if err := sink.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// What a host sends is in its own block, whatever it looks like.
func TestBlocks(t *testing.T) {
	forged := rule + "\nweb9 (1)\n" + rule + "\nweb9 (1) =: exit 7\n[9 more bytes were not kept: x]\n"
	b := blocksOf(t, out(0, "web1", forged), exited(0, "web1", 0), out(1, "web2", "a\x1b[2Jb\n"), stderr(1, "web2", "oh\n"), exited(1, "web2", 3), refused(2, "web3"))
	if len(b.Groups) != 3 || b.Groups[0].Title != "web1 (1)" || string(b.Groups[0].Text) != forged || string(b.Groups[1].Text) != "ab\n" {
		t.Errorf("%+v %+v", *b.Groups[0], *b.Groups[1])
	}
	if got := b.Groups[2]; got.Title != "web2 (1), standard error" || string(got.Text) != "oh\n" {
		t.Errorf("%+v", *got)
	}
	if len(b.Ends) < 2 || !strings.Contains(strings.Join(b.Ends, "\n"), "web2 (1) =: exit 3") || b.Left != 0 {
		t.Errorf("ends %q, %d left", b.Ends, b.Left)
	}
}

// What is kept is bounded, and counts the rest.
func TestBlocksAreBounded(t *testing.T) {
	var steps []any
	for i := range mostBlocks + 7 {
		name := fmt.Sprintf("h%03d", i)
		steps = append(steps, out(i, name, name+"\n"), exited(i, name, 0))
	}
	lines := strings.Repeat("0123456789\n", 10_000)
	steps = append(steps, out(900, "a0", lines), exited(900, "a0", 0), out(901, "a1", strings.Repeat("é", 5000)), exited(901, "a1", 0))
	b := blocksOf(t, steps...)
	if len(b.Groups) != mostBlocks || b.Left != 9 {
		t.Fatalf("%d groups, %d left", len(b.Groups), b.Left)
	}
	if first := b.Groups[0]; len(first.Text) > mostBlockText || len(first.Text)+first.Left != len(lines) {
		t.Errorf("%d bytes, and %d left of %d", len(first.Text), first.Left, len(lines))
	}
	if long := string(b.Groups[1].Text); strings.Count(long, "é") != 1023 || !strings.HasSuffix(long, "… (7954 bytes more)\n") {
		t.Errorf("%q", long)
	}
}
