package output

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
)

// forgers are what a host would build a forged block, end or summary of: our own words, every dash,
// bar and blank that looks like ours, and what ends a line.
var forgers = []string{
	rule, "---------------\n", "x (1)\n", "x (1), standard error\n", "x (1) =: exit 3\n", "hint: run it\n", "3 hosts: 3 ok in 1s\n",
	"| ", "|", "\u2502 ", "\uff5c", "\u2223", "\u01c0 ", "-", "\u2010", "\u2013", "\u2014", "\u2212", "\u2500", "\u2501", "\u23af", "\uff0d", "\ufe63",
	" ", "\t", "\u00a0", "\u2800", "\u3000", "\u3164", "\u200b", "\u2028", "\u0085", "\u202e", "\x1b[1A\x1b[2K", "\x1b[2J", "\b\b", "\x0b", "\x0c", "\x00", "\xff",
	"\n", "\r", "\r\n", "\n\n", "a", "[9 more bytes were not kept]\n",
}

var lineEnds = regexp.MustCompile("\r\n|\r|\n")

// shown are the lines that a text is to be shown as.
func shown(text string) []string {
	text = string(bytes.TrimSuffix([]byte(lineEnds.ReplaceAllString(text, "\n")), []byte("\n")))
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, string(termsafe.Text([]byte(line))))
	}
	return lines
}

// blocks reads what Gather wrote, as a reader does who trusts nothing but the mark: the lines of
// each block by the line with its names, and the other lines.
func blocks(t *rapid.T, text string) (marked map[string][]string, rest []string) {
	marked = map[string][]string{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	title := ""
	for i := 0; i < len(lines) && text != ""; i++ {
		line := lines[i]
		host, isHost := strings.CutPrefix(line, hostMark)
		switch {
		case isHost && title == "":
			t.Fatalf("line %q of a host belongs to none", line)
		case isHost:
			marked[title] = append(marked[title], host)
		case line == rule && i+2 < len(lines) && lines[i+2] == rule:
			title = lines[i+1]
			i += 2
		default:
			title = ""
			rest = append(rest, line)
		}
	}
	return marked, rest
}

// Whatever hosts send, each line is under the host that sent it, and nothing but what we write
// stands outside of the marked lines.
func TestGatherCannotBeForged(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(forgers), 0, 12).Draw(t, "parts"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		var o, e bytes.Buffer
		g := newGather(gatherOptions{Out: &o, Err: &e})
		want := [2]map[string][]string{{}, {}}
		var ends []string
		for i := range rapid.IntRange(1, 4).Draw(t, "hosts") {
			name := fmt.Sprintf("host%d", i)
			for stream, suffix := range []string{"", ", standard error"} {
				sent := text.Draw(t, "text")
				if sent == "" {
					continue
				}
				sent = fmt.Sprint("#", i, " ", sent) // so that no two hosts are folded
				at := rapid.IntRange(0, len(sent)).Draw(t, "cut")
				for _, piece := range []string{sent[:at], sent[at:]} {
					must(t, g.Output(fleet.Event{Index: i, Host: name, Stream: fleet.Stream(stream), Data: []byte(piece)}))
				}
				want[stream][name+" (1)"+suffix] = shown(sent)
			}
			code := rapid.IntRange(0, 1).Draw(t, "exit") * (i + 1)
			must(t, g.Done(exited(i, name, code), fleet.Summary{}))
			if code > 0 {
				ends = append(ends, fmt.Sprintf("%s (1) =: exit %d", name, code))
			}
		}
		must(t, g.End(fleet.Summary{}))
		for stream, text := range []string{o.String(), e.String()} {
			got, rest := blocks(t, text)
			if diff := cmp.Diff(want[stream], got); diff != "" {
				t.Fatalf("stream %d (-sent +shown):\n%s\n%q", stream, diff, text)
			}
			if diff := cmp.Diff([][]string{nil, ends}[stream], rest); diff != "" {
				t.Fatalf("lines that are of no host (-want +got):\n%s\n%q", diff, text)
			}
		}
	})
}

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
