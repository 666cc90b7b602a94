package termsafe

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", ""},
		{"plain text\twith tab\nand line\n", "plain text\twith tab\nand line\n"},
		{"grüße, 世界, שלום", "grüße, 世界, שלום"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b[1;32;40mbold\x1b[m!", "bold!"},
		{"\x1b[2J\x1b[Hhome", "home"},
		{"\x1b]0;title\x07text", "text"},
		{"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"\x1bP1$r0m\x1b\\done", "done"},
		{"\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\z", "z"},
		{"\x1b(B\x1b=\x1b7\x1bcx", "x"},
		{"\x1b]0;unfinished\nnext line", "\nnext line"},
		{"\x1b[12\nnext", "\nnext"},
		{"\x1b", `\x1b`},
		{"\x1b\x1b[0m", `\x1b`},
		{"a\x1b\x01b", `a\x1b\x01b`},
		{"bell\x07 back\x08 nul\x00 del\x7f", `bell\x07 back\x08 nul\x00 del\x7f`},
		{"over\rwrite", `over\x0dwrite`},
		{"vt\x0bff\x0c", `vt\x0bff\x0c`},
		{"\x9b31m raw csi", `\x9b31m raw csi`},
		{"\u009b31m utf-8 csi", `\u009b31m utf-8 csi`},
		{"\u0085nel", `\u0085nel`},
		{"a\u202eb\u2066c\u200fd\u061ce\u2028f", `a\u202eb\u2066c\u200fd\u061ce\u2028f`},
		{"\U0001f469\u200d\U0001f4bb \u2764\ufe0f\u200d\U0001f525 \U0001f468\U0001f3fd\u200d\u2695\ufe0f", "\U0001f469\u200d\U0001f4bb \u2764\ufe0f\u200d\U0001f525 \U0001f468\U0001f3fd\u200d\u2695\ufe0f"},
		{"a\u200d\U0001f4bb\u200d\u200d\U0001f4bb\u200db", `a\u200d` + "\U0001f4bb" + `\u200d\u200d` + "\U0001f4bb" + `\u200db`},
		{"a\u200bb\ufeffc\u200dd\u00ade\u2060f\u3164g", `a\u200bb\ufeffc\u200dd\u00ade\u2060f\u3164g`},
		{"tag \U000e0041", `tag \U000e0041`},
		{"caf\u0065\u0301 \u26a0\ufe0f", "caf\u0065\u0301 \u26a0\ufe0f"},
		{"bad \xff\xc3( \xe2\x82", `bad \xff\xc3( \xe2\x82`},
		{"\xed\xa0\x80 surrogate", `\xed\xa0\x80 surrogate`},
		{"\x1b[" + strings.Repeat("1", 2*maxSequence) + "m", `\x1b[` + strings.Repeat("1", 2*maxSequence) + "m"},
		{"\x1b]" + strings.Repeat("x", 2*maxSequence), `\x1b]` + strings.Repeat("x", 2*maxSequence)},
	}
	for _, tt := range tests {
		if got := string(Text([]byte(tt.in))); got != tt.want {
			t.Errorf("Text(%.60q) = %.80q, want %.80q", tt.in, got, tt.want)
		}
	}
}

// Sequences that never end cost linear time: each byte is looked at twice at most.
func TestNestedSequencesAreLinear(t *testing.T) {
	src := bytes.Repeat([]byte("\x1b]"), 1<<20)
	if got := Text(src); len(got) > 4*len(src) {
		t.Errorf("%d bytes became %d", len(src), len(got))
	}
}

func TestLine(t *testing.T) {
	if got := Line("a\nb\x1b[2J"); got != `a\nb` {
		t.Errorf("Line = %q", got)
	}
}

func TestCleanTextIsNotCopied(t *testing.T) {
	src := []byte("nothing to do here\n")
	if got := Text(src); &got[0] != &src[0] {
		t.Error("Text copied clean ASCII")
	}
	if n := testing.AllocsPerRun(10, func() { Text(src) }); n != 0 {
		t.Errorf("%v allocations for clean ASCII", n)
	}
}

// In whatever pieces a stream comes, the result is the same.
func TestWriterIsIndependentOfPieces(t *testing.T) {
	src := []byte("a\x1b[31mb\u202ec\x1b]0;t\x1b\\d\xffe\x1b(Bf\x1b]x\ng\x1b")
	want := string(Text(src))
	for size := 1; size <= len(src); size++ {
		var out bytes.Buffer
		w := &Writer{W: &out}
		for i := 0; i < len(src); i += size {
			piece := src[i:min(i+size, len(src))]
			if n, err := w.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		if err := w.Close(); err != nil || out.String() != want {
			t.Errorf("pieces of %d: %q, %v; want %q", size, out.String(), err, want)
		}
	}
}

// A sequence without end does not make the writer hold more and more.
func TestWriterHoldsLittleBack(t *testing.T) {
	var out bytes.Buffer
	w := &Writer{W: &out}
	if _, err := w.Write([]byte("\x1b]0;")); err != nil {
		t.Fatal(err)
	}
	for range 3 * maxSequence / 100 {
		if _, err := w.Write(bytes.Repeat([]byte("x"), 100)); err != nil {
			t.Fatal(err)
		}
		if len(w.held) > maxSequence+100 {
			t.Fatalf("%d bytes held back", len(w.held))
		}
	}
	if out.Len() < 2*maxSequence {
		t.Errorf("only %d bytes came out", out.Len())
	}
}

// safe is the property in its plainest form, written without the tables above.
func safe(s string) bool {
	for _, r := range s {
		switch {
		case r == '\t' || r == '\n':
		case r < 0x20, r >= 0x7f && r <= 0x9f:
			return false
		case strings.ContainsRune("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r):
			return false
		}
	}
	return utf8.ValidString(s)
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31mx", "\x1b]0;t\x07", "\x9b2J", "a\rb", "\u202e", "\xff", "\x1b\x1b]\n", "\x1bP\x1b[\x1b\\", "\U0001f469\u200d\U0001f4bb\u200d", "\u2764\ufe0f\u200dx"} {
		f.Add([]byte(s), 3)
		f.Add([]byte(s), 8)
	}
	f.Fuzz(func(t *testing.T, src []byte, cut int) {
		got := string(Text(bytes.Clone(src)))
		if !safe(got) {
			t.Fatalf("Text(%q) = %q", src, got)
		}
		if again := string(Text([]byte(got))); again != got {
			t.Fatalf("Text twice: %q, %q", got, again)
		}
		if n, m := bytes.Count(src, []byte("\n")), strings.Count(got, "\n"); n != m {
			t.Fatalf("%d lines became %d", n, m)
		}
		cut = min(max(cut, 0), len(src))
		var out bytes.Buffer
		w := &Writer{W: &out}
		for _, piece := range [][]byte{src[:cut], src[cut:]} {
			if _, err := w.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || out.String() != got {
			t.Fatalf("cut at %d: %q, want %q", cut, out.String(), got)
		}
	})
}

func BenchmarkCleanASCII(b *testing.B) {
	src := bytes.Repeat([]byte("Nov 21 20:13:19 web1 sshd[123]: Accepted publickey\n"), 1000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		Text(src)
	}
}

// A picture begins with one of the bytes that emoji looks for.
func TestFirstBytesOfPictures(t *testing.T) {
	for r := range rune(unicode.MaxRune) {
		if first := string(r)[0]; unicode.Is(pictures, r) && first != 0xe2 && first != 0xf0 {
			t.Fatalf("%U begins with %x", r, first)
		}
	}
}

func BenchmarkBinary(b *testing.B) {
	src := make([]byte, 32<<10)
	dst := make([]byte, 0, 4*len(src))
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		Append(dst, src)
	}
}

func BenchmarkColors(b *testing.B) {
	src := bytes.Repeat([]byte("\x1b[01;34mdirectory\x1b[0m and grüße\n"), 1000)
	dst := make([]byte, 0, 2*len(src))
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		Append(dst, src)
	}
}
