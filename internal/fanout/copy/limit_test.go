package copy

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestLimiter: by no time has more passed than the rate allows, from the first byte on, nor at once
// more than a tenth of a second's; a file of one piece is none of a burst.
func TestLimiter(t *testing.T) {
	const rate, size = 20_000, 200_000
	synctest.Test(t, func(t *testing.T) {
		began, passed := time.Now(), 0
		l := NewLimiter(rate)
		r := trickle{io.NewSectionReader(limited{bytes.NewReader(make([]byte, size)), &side{ctx: t.Context(), Options: Options{Limit: l}}}, 0, size), l}
		for buf := make([]byte, 256<<10); ; {
			n, err := r.Read(buf)
			passed += n
			if allowed := int(time.Since(began).Seconds()*rate) + 1; passed > allowed || n > rate/10 {
				t.Fatalf("%d bytes have passed, %d of them at once; %d may", passed, n, allowed)
			}
			if err == io.EOF {
				break
			}
		}
		if took := time.Since(began); passed != size || took > 11*time.Second {
			t.Errorf("%d bytes in %v", passed, took)
		}
	})
	var none *Limiter
	if none.piece(1<<20) != 1<<20 || NewLimiter(1).piece(100) != 1 || NewLimiter(1).piece(0) != 0 {
		t.Error("pieces without a limit, or below one")
	}
}

// TestFetchNamesNoPattern: a pattern that matches no file name is reported as a pattern.
func TestFetchNamesNoPattern(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/src/host1", "x", 0o644)
	s := (&server{}).start(t, "")
	err := download(t, s, Options{}, 0, dir, dir+"/src/host*")
	if said := s.said.String(); err == nil || !bytes.Contains([]byte(said), []byte("patterns are not expanded on hosts")) {
		t.Errorf("%v, said %q", err, said)
	}
}
