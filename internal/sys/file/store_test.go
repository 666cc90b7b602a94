package file

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"testing"
)

// What memory has no room for goes to a file without a name, whole sequences are read back as they
// were added, whatever was added between, and memory stays within its limit.
func TestStore(t *testing.T) {
	s := Store{What: "output", Dir: t.TempDir(), Limit: 1 << 20}
	random := rand.NewChaCha8([32]byte{})
	const sequences = 3
	var contents [sequences]Content
	var want [sequences][]byte
	for range 300 {
		for i := range contents {
			piece := make([]byte, 1+random.Uint64()%30_000)
			random.Read(piece)
			want[i] = append(want[i], piece...)
			if err := s.Add(&contents[i], piece); err != nil || contents[i].Lost != nil {
				t.Fatal(err, contents[i].Lost)
			}
			if s.inside > s.Limit+sequences*2*minSpill {
				t.Fatalf("%d bytes in memory", s.inside)
			}
		}
	}
	s.Settle(&contents[0])
	for i := range contents {
		got, err := io.ReadAll(s.Reader(&contents[i]))
		if err != nil || !bytes.Equal(got, want[i]) || contents[i].Size != int64(len(want[i])) {
			t.Errorf("%d: %d bytes of %d, %v", i, len(got), len(want[i]), err)
		}
		s.Drop(&contents[i])
	}
	if entries, err := os.ReadDir(s.Dir); err != nil || len(entries) > 0 || s.inside != 0 {
		t.Errorf("left: %v, %d bytes in memory; %v", entries, s.inside, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
