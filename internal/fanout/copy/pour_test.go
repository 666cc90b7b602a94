package copy

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"sshpace/internal/base/unit"
)

// A large file goes through cat; where that does something else, or there is the beginning of the
// file already, it arrives all the same.
func TestPour(t *testing.T) {
	src := t.TempDir() + "/huge"
	text := strings.Repeat("0123456789abcdef", huge/16+1000)
	write(t, src, text, 0o640)
	info, err := os.Stat(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, before string
		noVerify     bool
		part         string // there already
		link         bool   // or a link to a file
		pours        bool
	}{
		{name: "cat", pours: true},
		{name: "not compared", noVerify: true, pours: true},
		{name: "no perl", before: program(t, "perl", "exit 127"), pours: true},
		{name: "perl reads", before: program(t, "perl", "head -c 1000 >/dev/null")},
		{name: "no cat", before: program(t, "cat", "exit 127")},
		{name: "too little", before: program(t, "cat", "head -c 1000")},
		{name: "damaged", before: program(t, "cat", "tr 0 1")},
		{name: "no cksum", before: program(t, "cksum", "exit 127"), pours: true}, // compared by reading it back
		{name: "beginning", part: text[:huge/2]},
		{name: "other beginning", part: "other"},
		{name: "link", link: true, pours: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/there/file", "old", 0o600)
			write(t, dir+"/precious", "precious", 0o600)
			part := uploadPart(t, dir+"/there/file", src)
			if tt.part != "" {
				write(t, part, tt.part, 0o600)
			}
			if tt.link {
				if err := os.Symlink(dir+"/precious", part); err != nil {
					t.Fatal(err)
				}
			}
			s := (&server{before: tt.before}).start(t, "")
			said, err := upload(t, t.Context(), s, Options{NoVerify: tt.noVerify}, dir+"/there/file", src)
			if sent := int64(len(text) - len(tt.part)); err != nil || tt.part != "other" && !strings.HasPrefix(said, "1 file copied, "+unit.Bytes(sent).String()) {
				t.Fatalf("%v, said %q", err, said)
			}
			data, _ := os.ReadFile(dir + "/there/file")
			if now, err := os.Stat(dir + "/there/file"); err != nil || string(data) != text || now.Mode() != 0o640 || now.ModTime().Unix() != info.ModTime().Unix() {
				t.Errorf("%d bytes, %v, %v", len(data), now, err)
			}
			if data, _ := os.ReadFile(dir + "/precious"); string(data) != "precious" {
				t.Errorf("the other file has %d bytes", len(data))
			}
			if left := parts(t, dir); left != nil {
				t.Errorf("left behind: %q", left)
			}
			if n := s.sent.Load(); (n < huge/4) != tt.pours {
				t.Errorf("%d bytes by SFTP", n)
			}
		})
	}
}

// What a lost host has of a large file the next copy continues with.
func TestPourHostDies(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("0123456789abcdef", huge/16+1000)
	write(t, dir+"/src", text, 0o640)
	write(t, dir+"/there/file", "old", 0o600)
	if said, err := upload(t, t.Context(), (&server{execDiesAt: huge / 2}).start(t, ""), Options{}, dir+"/there/file", dir+"/src"); err == nil {
		t.Errorf("no error, said %q", said)
	}
	if data, _ := os.ReadFile(dir + "/there/file"); string(data) != "old" {
		t.Errorf("the old file has %d bytes", len(data))
	}
	s := (&server{}).start(t, "")
	said, err := upload(t, t.Context(), s, Options{}, dir+"/there/file", dir+"/src")
	if data, _ := os.ReadFile(dir + "/there/file"); err != nil || string(data) != text {
		t.Errorf("%v, %d bytes, said %q", err, len(data), said)
	}
	if n := s.sent.Load(); n > huge*3/4 {
		t.Errorf("%d bytes were sent again", n)
	}
	if left := parts(t, dir); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// A file that has become shorter ends; nothing is made up.
func TestPouringOfLess(t *testing.T) {
	for _, size := range []int{0, 5, 100} {
		f := io.NewSectionReader(limited{bytes.NewReader(make([]byte, size)), &side{ctx: t.Context()}}, 0, 300)
		if n, err := io.Copy(io.Discard, f); n != int64(size) || err != nil {
			t.Errorf("%d of %d bytes, %v", n, size, err)
		}
	}
}
