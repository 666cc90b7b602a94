package channel

import (
	"bytes"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestPart: what is read is what was added, whatever the sizes.
func TestPart(t *testing.T) {
	p := part{}
	p.came.L = &p.mu
	r := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(r.Uint32())
	}
	var adding sync.WaitGroup
	adding.Go(func() {
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(2*maxPacket))
			p.add(rest[:n])
			rest = rest[n:]
		}
		p.end()
	})
	var got []byte
	for buf := make([]byte, 50_000); ; {
		n, err := p.wait(buf[:1+len(got)%len(buf)])
		got = append(got, buf[:n]...)
		if err == io.EOF {
			break
		}
	}
	adding.Wait()
	if !bytes.Equal(got, want) || len(p.kept) > 0 {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}
