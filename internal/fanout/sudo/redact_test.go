package sudo

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sshpace/internal/base/termsafe"
)

// Whatever stands between the letters of a password and wherever the stream is cut, it is not
// shown; what has nothing of it passes unchanged.
func TestRedactor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SampledFrom([]string{"a", "ab", "aab", "abab"}).Draw(t, "secret")
		pieces := rapid.SliceOf(rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "\x1b[0m", "\x1b[", "\x1b", "\x1b]0;x\x07", "m", "\n"}))).Draw(t, "pieces")
		var r redactor
		var in, out strings.Builder
		for _, piece := range pieces {
			data := strings.Join(piece, "")
			in.WriteString(data)
			out.Write(r.take([]byte(data), []byte(secret)))
		}
		out.Write(r.rest())
		if shown := string(termsafe.Text([]byte(out.String()))); strings.Contains(shown, secret) {
			t.Fatalf("%q of %q became %q", secret, in.String(), out.String())
		}
		if !strings.Contains(out.String(), stars) && out.String() != in.String() {
			t.Fatalf("%q became %q without %q", in.String(), out.String(), secret)
		}
	})
}

// A host that sends the beginning of the password and sequences without end holds up nothing.
func TestRedactorHoldsLittleBack(t *testing.T) {
	var r redactor
	in, out := 0, 0
	for range 1000 {
		piece := []byte("p" + strings.Repeat("\x1b[0m", 100))
		in += len(piece)
		out += len(r.take(piece, []byte(strings.Repeat("p", 2000))))
		if in-out > 2*mostHeld {
			t.Fatalf("%d bytes of %d are held back", in-out, in)
		}
	}
}
