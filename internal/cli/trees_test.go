package cli_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"
)

// oddNames are what files may be called.
var oddNames = []string{"a", "b c", "-rf", "--", "new\nline", "\nfirst", "not-utf8-\xff\xfe", "ünï", "'quoted'", `"double"`, "$HOME", "`id`", `back\slash`, "*", "~", "~root", ".hidden", "...", "#x#", "tab\there",
	" leading", "trailing ", ":colon", "a:b", "%h", "[1-3]", "x.sshpace-0", "\x01\x7f", strings.Repeat("long", 50), "long" + strings.Repeat("y", 251)}

// randomTree makes a directory with all kinds of things.
type randomTree struct {
	*rand.Rand
	root        string
	directories []string
	files       []string
}

func makeTree(t *testing.T, rng *rand.Rand, root string) *randomTree {
	t.Helper()
	r := &randomTree{Rand: rng, root: root, directories: []string{root}}
	check(t, os.MkdirAll(root, 0o755))
	for range 1 + rng.IntN(12) {
		if at := r.place(); os.Mkdir(at, 0o700) == nil && strings.Count(at, "/") < 20 {
			r.directories = append(r.directories, at)
		}
	}
	for range rng.IntN(40) {
		r.file(t)
	}
	if rng.IntN(6) == 0 { // as many as are worth a pack
		for i := range 70 + rng.IntN(60) {
			at := filepath.Join(r.directories[rng.IntN(len(r.directories))], fmt.Sprint("many", i))
			check(t, os.WriteFile(at, r.content(rng.IntN(3000)), 0o600))
			r.files = append(r.files, at)
		}
	}
	for range rng.IntN(12) {
		os.Symlink(r.target(), r.place())
	}
	if rng.IntN(4) == 0 {
		syscall.Mkfifo(r.place(), 0o600)
	}
	if rng.IntN(4) == 0 && len(r.files) > 0 {
		os.Link(r.files[0], r.place())
	}
	r.finish(t)
	return r
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// place is a name that may be taken.
func (r *randomTree) place() string {
	name := oddNames[r.IntN(len(oddNames))]
	if r.IntN(3) > 0 {
		name = fmt.Sprint(name[:min(len(name), 200)], r.IntN(100))
	}
	return r.directories[r.IntN(len(r.directories))] + "/" + name
}

func (r *randomTree) content(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// file makes a file, empty, small, large or with holes.
func (r *randomTree) file(t *testing.T) {
	at := r.place()
	if _, err := os.Lstat(at); err == nil {
		return
	}
	size := []int{0, 1, r.IntN(100), r.IntN(70_000), r.IntN(300_000), 1 << 16, 1 << 20, r.IntN(4 << 20)}[min(r.IntN(8), r.IntN(8))]
	check(t, os.WriteFile(at, r.content(size), 0o600))
	if r.IntN(10) == 0 {
		check(t, os.Truncate(at, int64(size+r.IntN(3<<20))))
	}
	r.files = append(r.files, at)
}

// target is where a link leads: inside, outside, nowhere, in a circle.
func (r *randomTree) target() string {
	inside := "x"
	if len(r.files) > 0 {
		inside = filepath.Base(r.files[r.IntN(len(r.files))])
	}
	all := []string{inside, inside, ".", "..", "../..", "../" + inside, "/etc/passwd", "a/../../../../etc/shadow", "a/..", "./a/b", "nowhere", "../../../../../../../../../etc/shadow", "b c/../x", r.root, "a//b/./c", "..a/..b", "../.."}
	return all[r.IntN(len(all))]
}

// finish sets modes and times.
func (r *randomTree) finish(t *testing.T) {
	least := map[bool]fs.FileMode{}
	if os.Geteuid() != 0 { // nobody else can read all
		least = map[bool]fs.FileMode{false: 0o600, true: 0o700}
	}
	set := func(at string, mode fs.FileMode) {
		check(t, os.Chmod(at, mode))
		when := time.Unix(r.Int64N(4e9), r.Int64N(1e9))
		check(t, os.Chtimes(at, when, when))
	}
	for _, at := range r.files {
		mode := fs.FileMode(r.IntN(0o1000)) | least[false]
		if r.IntN(10) == 0 {
			mode |= fs.ModeSetuid
		}
		set(at, mode)
	}
	for i := len(r.directories) - 1; i >= 0; i-- {
		mode := fs.FileMode(r.IntN(0o1000)) | least[true]
		if r.IntN(6) == 0 {
			mode |= fs.ModeSticky
		}
		set(r.directories[i], mode)
	}
}

// change is what happens to a tree between two copies.
func (r *randomTree) change(t *testing.T) {
	for range 1 + r.IntN(8) {
		r.file(t)
	}
	for i, at := range r.files {
		if r.IntN(4) == 0 {
			check(t, os.Chmod(at, 0o600))
			check(t, os.WriteFile(r.files[i], r.content(r.IntN(100_000)), 0o600))
		}
	}
	r.finish(t)
}

// seen is what a tree looks like: type, mode, time in seconds and content by name.
func seen(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	check(t, filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, at)
		switch d.Type() {
		case fs.ModeSymlink:
			target, err := os.Readlink(at)
			all[rel] = "link " + target
			return err
		case 0:
			data, err := os.ReadFile(at)
			all[rel] = fmt.Sprintf("%v %d %d %x", info.Mode(), info.ModTime().Unix(), len(data), sha256.Sum256(data))
			return err
		}
		all[rel] = fmt.Sprintf("%v %d", info.Mode(), info.ModTime().Unix())
		return nil
	}))
	return all
}

// documented makes of what rsync gives what copy or fetch are to give: no pipes, no setuid bits of
// files, and for fetch no special bits at all and no links that lead out of the directory, which is
// depth directories above the tree.
func documented(all map[string]string, fetch bool, depth int) map[string]string {
	want := map[string]string{}
	for name, text := range all {
		target, isLink := strings.CutPrefix(text, "link ")
		switch {
		case isLink && fetch && leadsOut(path.Dir(name), target, depth):
			continue
		case isLink:
		case text[0] == 'p':
			continue
		case fetch || text[0] == 'u':
			mode, rest, _ := strings.Cut(text, " ")
			text = strings.NewReplacer("u", "-", "td", "d", "dt", "d").Replace(mode[:len(mode)-9]) + mode[len(mode)-9:] + " " + rest
		}
		want[name] = text
	}
	return want
}

// leadsOut follows a link by its words; what is behind a name and then .. nobody knows.
func leadsOut(directory, target string, depth int) bool {
	if path.IsAbs(target) {
		return true
	}
	split := func(name string) []string {
		return strings.FieldsFunc(path.Clean("/"+name), func(r rune) bool { return r == '/' })
	}
	up, named := 0, false
	for _, w := range strings.Split(target, "/") {
		if w == ".." && named {
			return true
		} else if w == ".." {
			up++
		}
		named = named || w != "" && w != "." && w != ".."
	}
	return up > depth+len(split(directory))
}

// accounts are kinds of accounts, and whether ours is the SFTP server of sshd itself.
var accounts = []struct {
	name   string
	sshd   []string
	bashrc string
}{
	{"plain", nil, ""},
	{"server", []string{"Subsystem sftp /usr/lib/openssh/sftp-server"}, ""},
	{"noisy", nil, "echo Welcome to this machine; echo; seq 100\n"},
	{"sftp only", []string{"ForceCommand internal-sftp"}, ""},
	{"silent", nil, "exec sh -c 'exit 0'\n"},
}

// TestTreesAsRsync copies and fetches random trees, twice with changes between, and compares with
// rsync -a over ssh.
func TestTreesAsRsync(t *testing.T) {
	t.Parallel()
	count, seed := seedtest.Cases(t, 5)
	var dirs []string
	for _, account := range accounts {
		s := sshtest.StartSshd(t, account.sshd...)
		check(t, os.WriteFile(filepath.Join(s.Dir, "home", ".bashrc"), []byte(account.bashrc), 0o600))
		dir := t.TempDir()
		fleetFiles(t, dir, s)
		dirs = append(dirs, dir)
	}
	copies := 0
	for n := range count {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		account := n % len(accounts)
		engine := []string{"native", "openssh"}[n/len(accounts)%2]
		t.Run(fmt.Sprintf("%d %s %s", n, accounts[account].name, engine), func(t *testing.T) {
			dir := t.TempDir()
			t.Cleanup(func() { exec.Command("chmod", "-R", "u+rwx", dir).Run() })
			tree := makeTree(t, rng, dir+"/src/tree")
			check(t, errors.Join(os.Mkdir(dir+"/ours", 0o755), os.Mkdir(dir+"/theirs", 0o755), os.Mkdir(dir+"/in", 0o755)))
			remote := "ssh -F " + dirs[0] + "/ssh_config"
			slash := []string{"", "/"}[rng.IntN(2)]
			for range 2 {
				must(t, dir, 0, "rsync", "-a", "-e", remote, "src/tree"+slash, "127.0.1.1:"+dir+"/theirs/tree"+slash)
				must(t, dir, 0, "rsync", "-a", "-e", remote, "127.0.1.1:"+dir+"/src/tree"+slash, "in/theirs")
				flags := []string{"-q", "--engine", engine, "-F", dirs[account] + "/ssh_config", "-w", "127.0.1.1"}
				must(t, dir, 0, "sshpace", append(append([]string{"copy"}, flags...), "src/tree"+slash, ":"+dir+"/ours/tree")...)
				must(t, dir, 0, "sshpace", append(append([]string{"fetch"}, flags...), ":"+dir+"/src/tree"+slash, "in/ours")...)
				copies += 2
				deeper := map[string]string{"": "/tree", "/": ""}[slash]
				want := documented(seen(t, dir+"/theirs/tree"+deeper), false, 0)
				got := seen(t, dir+"/ours/tree"+deeper)
				if slash == "/" && len(got) > 0 { // DEST itself is the user's once it is there
					delete(want, ".")
					delete(got, ".")
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("copy (-rsync +ours):\n%s", diff)
				}
				want = documented(seen(t, dir+"/in/theirs"+deeper), true, len(strings.TrimSuffix(deeper, "tree")))
				got = seen(t, dir+"/in/ours/127.0.1.1"+deeper)
				if slash == "/" {
					delete(want, ".")
					delete(got, ".")
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("fetch (-rsync +ours):\n%s", diff)
				}
				tree.change(t)
			}
		})
	}
	t.Logf("%d copies as rsync makes them", copies)
}

// must runs a program in a directory, and returns what it said.
func must(t *testing.T, dir string, want int, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	text, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Fatalf("%s %q: %v\n%s", program, args, err, text)
	}
	return string(text)
}

// An account whose start-up file prints before an SFTP server that the login shell starts is named
// for what it is, with both engines, as is one without such a server; and fetch brings files from
// accounts for SFTP alone.
func TestAccountsForFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sshd   []string
		bashrc string
		code   int
		want   string
	}{
		"prints":    {[]string{"Subsystem sftp /usr/lib/openssh/sftp-server"}, "echo Welcome to web1", 1, `the account's start-up file prints to non-interactive sessions: "Welcome to web1"; `},
		"refuses":   {[]string{"Subsystem sftp /usr/lib/openssh/sftp-server"}, "echo This account is not available.; exit 1", 1, `the host does not speak SFTP for this account; it says: "This account is not available."`},
		"sftp only": {[]string{"ForceCommand internal-sftp"}, "", 0, "1 file copied"},
	} {
		s := sshtest.StartSshd(t, tt.sshd...)
		check(t, os.WriteFile(filepath.Join(s.Dir, "home", ".bashrc"), []byte(tt.bashrc+"\n"), 0o600))
		dir := t.TempDir()
		fleetFiles(t, dir, s)
		for _, engine := range []string{"native", "openssh"} {
			check(t, os.RemoveAll(dir+"/got"))
			said := must(t, dir, tt.code, "sshpace", "fetch", "-q", "--engine", engine, "-F", "ssh_config", "-w", "127.0.1.1", ":"+dir+"/ssh_config", "got")
			if !strings.Contains(said, tt.want) {
				t.Errorf("%s, %s: said %q, want %q", name, engine, said, tt.want)
			}
		}
	}
}

// Where another user has prepared the directory of a host, nothing is written, by fetch and by
// pslurp, whose host cannot name a directory elsewhere either.
func TestFetchIntoDirectoryOfAnother(t *testing.T) {
	t.Parallel()
	if !waittest.AsRoot(t) {
		return
	}
	s := sshtest.StartSshd(t)
	base, foreign := theirs(t)
	fleetFiles(t, base, s)
	ours := base + "/ours"
	check(t, os.WriteFile(base+"/hosts", []byte("127.0.1.1\n../../theirs/x\n"), 0o600))
	check(t, errors.Join(os.Mkdir(ours+"/theirs", 0o755), os.Chown(ours+"/theirs", stranger, stranger)))
	for _, directory := range []string{"127.0.1.1", "127.0.1.1:None"} {
		check(t, errors.Join(os.Symlink(foreign, ours+"/"+directory), os.Lchown(ours+"/"+directory, stranger, stranger)))
	}
	must(t, base, 1, "sshpace", "fetch", "-F", "ssh_config", "-w", "127.0.1.1", ":"+base+"/hosts", "ours")
	must(t, base, 2, "sshpace", "fetch", "-F", "ssh_config", "-w", "127.0.1.1", ":"+base+"/hosts", "ours/theirs/new")
	must(t, base, 1, "sshpace", "compat", "parallel-slurp", "-x", "-F "+base+"/ssh_config", "-H", "127.0.1.1", "-L", "ours", base+"/hosts", "got")
	must(t, base, 4, "sshpace", "compat", "parallel-slurp", "-x", "-F "+base+"/ssh_config", "-h", "hosts", "-L", "ours/in/deep", base+"/hosts", "got")
	for _, directory := range []string{foreign, ours + "/theirs"} {
		if list, err := os.ReadDir(directory); err != nil || len(list) > 0 {
			t.Errorf("%s holds %v, %v", directory, list, err)
		}
	}
}
