package file

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Blocks that are put into any file, and edits beside them: what is taken out is exactly what was
// put in.
func TestWithoutTakesBackWhatIntoPut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"Host nas\n", "  User x\n", "\n", "# a comment\n", "# BEGIN other\n"}), 0, 6).Draw(t, "lines")
		var old []byte
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		for _, line := range lines {
			old = append(old, strings.ReplaceAll(line, "\n", end)...)
		}
		b := Block{Name: "advise " + rapid.SampledFrom([]string{"nas", "*", "a b"}).Draw(t, "host"), Text: "Ciphers ^aes128-gcm@openssh.com\n", Last: rapid.Bool().Draw(t, "last")}
		put, err := b.Into(old)
		if err != nil {
			t.Fatal(err)
		}
		back, n, err := Without(put, "advise")
		if err != nil || n != 1 || string(back) != string(old) {
			t.Fatalf("%q became %q, and %q (%d, %v)", old, put, back, n, err)
		}
		if len(old) > 0 && end == "\r\n" && bytes.Count(put, []byte("\n")) != bytes.Count(put, []byte(end)) {
			t.Fatalf("%q became %q", old, put)
		}
		edited := "# first" + end + string(put) + "# last" + end
		back, n, err = Without([]byte(edited), b.Name)
		if err != nil || n != 1 || len(back) != len(edited)-len(b.text(put)) {
			t.Fatalf("%q became %q (%d, %v)", edited, back, n, err)
		}
		if _, n, _ := Without(put, "advise other"); n != 0 {
			t.Fatal("another one's block was taken out")
		}
	})
}

// Lines of the user's between the marks are neither taken out nor replaced; blanks and line ends
// that an editor changes are no lines of the user's.
func TestEditedBlocks(t *testing.T) {
	b := Block{Name: "advise nas", Text: "Host nas\n    Ciphers a\n", After: "Host *"}
	text := "Host nas\n    User x\n" + b.text(nil) + "\nHost other\n"
	for _, edited := range []string{
		strings.Replace(text, "Ciphers a\n", "Ciphers a\n    User me\n", 1), strings.Replace(text, "Ciphers a", "Ciphers b", 1),
		strings.Replace(text, "    Ciphers a\n", "", 1), strings.Replace(text, " "+checksum("Host nas\n    Ciphers a\nHost *\n"), "", 1),
	} {
		_, _, err := Without([]byte(edited), "advise")
		_, written := b.Into([]byte(edited))
		if !errors.Is(err, ErrEdited) || !errors.Is(written, ErrEdited) {
			t.Errorf("%q: %v; %v", edited, err, written)
		}
	}
	for _, same := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), strings.ReplaceAll(text, "\n", " \n")} {
		if _, n, err := Without([]byte(same), "advise"); err != nil || n != 1 {
			t.Errorf("%q: %d, %v", same, n, err)
		}
	}
}

func TestWithoutRefusesDamagedMarks(t *testing.T) {
	for _, text := range []string{"# BEGIN sshpace advise nas\n", "# BEGIN sshpace advise nas\n# BEGIN sshpace advise nas\n# END sshpace advise nas\n"} {
		if _, _, err := Without([]byte(text), "advise"); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
