package channel

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/crypto/ssh"
)

// message has every kind of field, in x/crypto's words.
type fieldsMessage struct {
	Cookie [3]byte `sshtype:"20"`
	Number uint32
	Text   []byte
	Names  []string
	None   []string
	Yes    bool
	Rest   []byte `ssh:"rest"`
}

func encode(m *fieldsMessage) []byte {
	p := append([]byte{20}, m.Cookie[:]...)
	p = AppendText(AppendNumber(p, m.Number), m.Text)
	p = AppendNames(AppendNames(p, m.Names), m.None)
	return append(AppendBool(p, m.Yes), m.Rest...)
}

func decode(p []byte) (fieldsMessage, error) {
	var m fieldsMessage
	f := FieldsOf(p)
	copy(m.Cookie[:], f.Bytes(3))
	m.Number, m.Text, m.Names, m.None, m.Yes = f.Number(), f.Text(), f.Names(), f.Names(), f.Bool()
	m.Rest = f.Rest
	return m, f.Err()
}

// TestLikeReflection: what is written and read is what x/crypto writes and reads, and no cut
// message is taken.
func TestLikeReflection(t *testing.T) {
	m := fieldsMessage{[3]byte{1, 2, 3}, 7, []byte("text"), []string{"a", "bc", "def"}, nil, true, []byte("rest")}
	want := ssh.Marshal(m)
	if got := encode(&m); !bytes.Equal(got, want) {
		t.Errorf("written %q, want %q", got, want)
	}
	got, err := decode(want)
	if err != nil || got.Number != 7 || string(got.Text) != "text" || !slices.Equal(got.Names, m.Names) || got.None != nil || !got.Yes || string(got.Rest) != "rest" {
		t.Errorf("read %+v, %v", got, err)
	}
	for n := range len(want) - len(m.Rest) {
		if _, err := decode(want[:n]); err == nil {
			t.Errorf("the first %d bytes are taken", n)
		}
	}
	if f := FieldsOf(want); f.End() == nil {
		t.Error("what follows the last field is not seen")
	}
}

// FuzzFields: no message is read beyond its end, and what x/crypto takes is read the same.
func FuzzFields(f *testing.F) {
	f.Add(ssh.Marshal(fieldsMessage{Names: []string{"x"}}))
	f.Add([]byte{20, 0, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, p []byte) {
		got, err := decode(p)
		var want fieldsMessage
		if ssh.Unmarshal(p, &want) != nil {
			return
		}
		if err != nil || got.Number != want.Number || !bytes.Equal(got.Text, want.Text) || !slices.Equal(got.Names, want.Names) || got.Yes != want.Yes {
			t.Errorf("read %+v, %v; want %+v", got, err, want)
		}
	})
}
