package check

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/waittest"
	"sshpace/internal/base/wildcard"

	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/sshtest"
)

// record accepts one key, by an index that has not been read.
func record(file, host string, port int, key ssh.PublicKey, hash bool) error {
	return accept(index.Open(file), file, host, port, key, hash)
}

func accept(x *index.Index, file, host string, port int, key ssh.PublicKey, hash bool) error {
	_, err := Accept(x, file, []Addition{{Host: host, Port: port, Keys: []ssh.PublicKey{key}}}, hash)
	return err
}

func kindOf(err error) Kind {
	if v, ok := errors.AsType[*Verdict](err); ok {
		return v.Kind
	}
	return 0
}

func TestRecordMakesPrivateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".ssh")
	file := filepath.Join(dir, "known_hosts")
	if err := record(file, "Db1", 2222, sshtest.Key(1).PublicKey(), false); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, file: 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
	text, _ := os.ReadFile(file)
	if want := "[db1]:2222 " + sshtest.KeyText(1) + "\n"; string(text) != want {
		t.Errorf("file holds %q, want %q", text, want)
	}
}

// A certificate would lock the host out, a directory is made of a typing error, and a name that
// is not a regular file keeps nothing.
func TestRecordRefuses(t *testing.T) {
	cert := &ssh.Certificate{Key: sshtest.Key(1).PublicKey(), CertType: ssh.HostCert}
	if err := cert.SignCert(rand.Reader, sshtest.Key(2)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, key := range map[string]ssh.PublicKey{
		filepath.Join(dir, "certificate"): cert, filepath.Join(dir, "typo", "known_hosts"): cert.Key, "/dev/null": cert.Key,
	} {
		if err := record(file, "db1", 0, key, false); err == nil {
			t.Errorf("%s was written", file)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("made %v", left)
	}
}

func TestRecordCompletesTheLastLine(t *testing.T) {
	file := sshtest.KnownHostsFile(t, "a "+sshtest.KeyText(1))
	if err := record(file, "b", 22, sshtest.Key(2).PublicKey(), true); err != nil {
		t.Fatal(err)
	}
	x := index.Open(file)
	if len(x.Lookup("a", 0)) != 1 || len(x.Lookup("b", 0)) != 1 || len(x.Unreadable()) != 0 {
		text, _ := os.ReadFile(file)
		t.Errorf("file holds %q", text)
	}
}

func TestRecordRefusesWhatIsNoName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known_hosts")
	for _, host := range []string{"", "a b", "a,b", "*", "!a", "a\nb", "@revoked", "#a", "|1|x", strings.Repeat("x", 2000)} {
		if err := record(file, host, 22, sshtest.Key(1).PublicKey(), false); err == nil {
			t.Errorf("%.20q was added", host)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file was made all the same")
	}
}

// TestRecordOnce: runs that meet the same new hosts at once, each with an index of its own, write
// one line a host; another key of a host is not recorded.
func TestRecordOnce(t *testing.T) {
	file := sshtest.KnownHostsFile(t, "first "+sshtest.KeyText(0)+"\n")
	var wg sync.WaitGroup
	const hosts = 20
	for range 4 {
		x := index.Open(file)
		x.Lookup("first", 0) // read before anything is recorded
		wg.Go(func() {
			for i := range hosts {
				if err := accept(x, file, fmt.Sprint("new", i), 2222, sshtest.Key(i).PublicKey(), i%2 == 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	x := index.Open(file)
	for i := range hosts {
		if found := x.Lookup(fmt.Sprint("new", i), 2222); len(found) != 1 {
			t.Errorf("new%d: %d lines", i, len(found))
		}
	}
	if got := kindOf(accept(x, file, "first", 22, sshtest.Key(1).PublicKey(), false)); got != Changed {
		t.Errorf("another key of a known host: %d", got)
	}
}

// TestRecordTogether: keys of several hosts are recorded all or not at all, each once; one of
// another type counts only beside one that is known.
func TestRecordTogether(t *testing.T) {
	first, more, other := sshtest.Key(0).PublicKey(), sshtest.ECKey().PublicKey(), sshtest.Key(1).PublicKey()
	file := sshtest.KnownHostsFile(t, "first "+sshtest.KeyText(0)+"\n")
	x := index.Open(file)
	one := func(name string, keys ...ssh.PublicKey) Addition {
		return Addition{Host: name, Keys: keys, Shown: keys}
	}
	for _, c := range []struct {
		all   []Addition
		added int
		kind  Kind
	}{
		{[]Addition{one("new", other), one("first", other)}, 0, Changed},
		{[]Addition{one("new", other), one("first", more)}, 0, Changed},
		{[]Addition{one("new", other, more), one("NEW", other), one("first", first, more)}, 3, 0},
		{[]Addition{one("new", other, more), one("first", first, more)}, 0, 0},
		{[]Addition{one("first", first, sshtest.RSAKey().PublicKey())}, 1, 0},
		{[]Addition{{Host: "first", Keys: []ssh.PublicKey{other}, Shown: []ssh.PublicKey{first, other}}}, 0, Changed},
	} {
		added, err := Accept(x, file, c.all, false)
		if added != c.added || kindOf(err) != c.kind || c.kind == 0 && err != nil {
			t.Errorf("%+v: %d, %v", c, added, err)
		}
	}
	if text, _ := os.ReadFile(file); strings.Count(string(text), "\n") != 5 {
		t.Errorf("%s", text)
	}
}

// TestParallelWritersLoseNothing: ours, and a shell that appends as ssh does.
func TestParallelWritersLoseNothing(t *testing.T) {
	file := sshtest.KnownHostsFile(t, "first "+sshtest.KeyText(0)+"\n")
	const each = 40
	var wg sync.WaitGroup
	for writer := range 4 {
		wg.Go(func() {
			for i := range each {
				if err := record(file, fmt.Sprintf("w%d-%d", writer, i), 22, sshtest.Key(i).PublicKey(), false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		script := fmt.Sprintf(`for i in $(seq 0 %d); do echo "sh-$i %s" >>"$1"; done`, each-1, sshtest.KeyText(1))
		if out, err := exec.Command("sh", "-c", script, "sh", file).CombinedOutput(); err != nil {
			t.Error(err, string(out))
		}
	})
	wg.Wait()
	x := index.Open(file)
	for _, writer := range []string{"w0", "w1", "w2", "w3", "sh"} {
		for i := range each {
			if found := x.Lookup(fmt.Sprintf("%s-%d", writer, i), 22); len(found) != 1 {
				t.Errorf("%s-%d: %d lines", writer, i, len(found))
			}
		}
	}
	if diff := cmp.Diff([]index.BadLine(nil), x.Unreadable()); diff != "" {
		t.Error(diff)
	}
}

// TestRecordTakesBackHalfALine: a file that has room for a part of a line stays as it was, and
// takes the key once it has room. It runs in a process of its own: the limit is that of all files.
func TestRecordTakesBackHalfALine(t *testing.T) {
	const alone = "SSHPACE_TEST_ALONE"
	if os.Getenv(alone) == "" {
		waittest.Again(t, []string{alone + "=1"})
		return
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	full := make(chan os.Signal, 1)
	signal.Notify(full, syscall.SIGXFSZ) // the error is to be seen, as in a run
	defer signal.Stop(full)
	first := "first " + sshtest.KeyText(1)
	line := len("\nnew " + sshtest.KeyText(2) + "\n")
	for room := 0; room < line; room += 9 {
		file := sshtest.KnownHostsFile(t, first)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(len(first) + room), Max: limit.Max}); err != nil {
			t.Fatal(err)
		}
		err := record(file, "new", 22, sshtest.Key(2).PublicKey(), false)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		if text, _ := os.ReadFile(file); !errors.Is(err, syscall.EFBIG) || string(text) != first {
			t.Fatalf("room for %d bytes: %v, file %q", room, err, text)
		}
		if err := record(file, "new", 22, sshtest.Key(2).PublicKey(), false); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzRecord: whatever name is taken, it is found again under that name, and nothing else in the
// file changes.
func FuzzRecord(f *testing.F) {
	f.Add("db1", uint16(22), false)
	f.Add("Db1", uint16(2222), true)
	f.Add("::1", uint16(22), false)
	f.Add("[x]:1", uint16(0), true)
	f.Add("a\u0085b", uint16(1), false)
	f.Add("-x#|", uint16(1), false)
	f.Fuzz(func(t *testing.T, host string, port uint16, hash bool) {
		file := filepath.Join(t.TempDir(), "known_hosts")
		first := "first " + sshtest.KeyText(1)
		if err := os.WriteFile(file, []byte(first), 0o600); err != nil {
			t.Fatal(err)
		}
		err := record(file, host, int(port), sshtest.Key(2).PublicKey(), hash)
		text, _ := os.ReadFile(file)
		if err != nil {
			if string(text) != first {
				t.Fatalf("refused (%v), and yet the file holds %q", err, text)
			}
			return
		}
		x := index.Open(file)
		found := x.Lookup(host, int(port))
		if len(found) == 0 || found[len(found)-1].Line != 2 || len(x.Unreadable()) != 0 || !strings.HasPrefix(string(text), first+"\n") {
			t.Fatalf("%q, %d: found %v in %q", host, port, found, text)
		}
		if other := x.Lookup("first", 0); len(other) != 1 && wildcard.Lower(host) != "first" {
			t.Fatalf("%q changed another host: %v", host, other)
		}
	})
}
