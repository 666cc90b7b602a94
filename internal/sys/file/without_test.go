package file

import (
	"testing"

	"pgregory.net/rapid"
)

// Blocks that are put into any file, and edits beside them: what is taken out is
// exactly what was put in.
func TestWithoutTakesBackWhatIntoPut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"Host nas\n", "  User x\n", "\n", "# a comment\n", "# BEGIN other\n"}), 0, 6).Draw(t, "lines")
		var old []byte
		for _, line := range lines {
			old = append(old, line...)
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
		edited := "# first\n" + string(put) + "# last\n"
		back, n, err = Without([]byte(edited), b.Name)
		if err != nil || n != 1 || len(back) != len(edited)-len(b.text()) {
			t.Fatalf("%q became %q (%d, %v)", edited, back, n, err)
		}
		if _, n, _ := Without(put, "advise other"); n != 0 {
			t.Fatal("another one's block was taken out")
		}
	})
}

func TestWithoutRefusesDamagedMarks(t *testing.T) {
	for _, text := range []string{"# BEGIN sshpace advise nas\n", "# BEGIN sshpace advise nas\n# BEGIN sshpace advise nas\n# END sshpace advise nas\n"} {
		if _, _, err := Without([]byte(text), "advise"); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
