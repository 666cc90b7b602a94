package copy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// server is the installed sftp-server behind pipes, and a shell.
type server struct {
	in     io.WriteCloser
	out    io.ReadCloser
	cmd    *exec.Cmd
	mu     sync.Mutex // of said
	said   bytes.Buffer
	sent   atomic.Int64
	dieAt  int64 // bytes after which the host is gone, 0 = never
	noExec bool  // no second command
	execs  atomic.Int64
	before string // what the shell does first
	where  string // it begins in this directory
	denied string // requests that the server refuses
	by     uint32 // the account that it runs for; 0: ours

	dead       bool
	execDiesAt int64 // bytes of a command's input after which the host is gone, 0 = never
}

var _ fleet.Channel = (*server)(nil)

const sftpServer = "/usr/lib/openssh/sftp-server"

// start runs the server; setup is shell before it, in a mount namespace of its own.
func (s *server) start(t *testing.T, setup string) *server {
	t.Helper()
	if _, err := os.Stat(sftpServer); err != nil {
		t.Fatalf("%v: install openssh-sftp-server", err)
	}
	s.cmd = exec.Command(sftpServer, "-P", s.denied)
	if setup != "" {
		s.cmd = exec.Command("unshare", "-m", "sh", "-c", setup+" && exec "+sftpServer)
		s.noExec = true // its shell would see other mounts
	}
	if s.by != 0 && os.Geteuid() == 0 {
		s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: s.by, Gid: s.by}}
	}
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.in.Close(); s.cmd.Wait() })
	return s
}

func (s *server) Read(p []byte) (int, error) { return s.out.Read(p) }

func (s *server) Write(p []byte) (int, error) {
	if n := s.sent.Add(int64(len(p))); s.dieAt > 0 && n > s.dieAt {
		s.cmd.Process.Kill()
		return 0, io.ErrClosedPipe
	}
	return s.in.Write(p)
}

func (s *server) Close() error { s.in.Close(); return s.out.Close() }

func (s *server) Banner() string { return "" }

func (s *server) heard() string { return s.said.String() }

func (s *server) Output(_ fleet.Stream, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.Write(data)
	return nil
}

func (*server) Open(context.Context, string) (io.ReadWriteCloser, error) {
	return nil, fleet.ErrNoExec
}

func (s *server) Exec(ctx context.Context, line string, input io.Reader) ([]byte, error) {
	if s.noExec || s.dead {
		return nil, fleet.ErrNoExec
	}
	s.execs.Add(1)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", s.before+line)
	cmd.Stdin, cmd.Dir = input, s.where
	if s.execDiesAt > 0 {
		cmd.Stdin = io.LimitReader(input, s.execDiesAt)
		defer func() { s.cmd.Process.Kill(); s.dead = true }()
	}
	return cmd.Output()
}

// upload copies names to dest and returns what is said, with the error as its last line, and the
// error.
func upload(t *testing.T, ctx context.Context, s interface {
	fleet.Channel
	heard() string
}, o Options, dest string, names ...string) (string, error) {
	t.Helper()
	var list []*Source
	for _, name := range names {
		source, err := scanWithout(o.Exclude, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, source)
	}
	u := Upload{Options: o, Dest: dest, Sources: func(host.Host) ([]*Source, error) { return list, nil }}
	err := u.Dialogue(ctx, host.Host{Name: "h"}, s)
	if err != nil {
		return fmt.Sprintf("%s%s\n", s.heard(), err), err
	}
	return s.heard(), nil
}

func download(t *testing.T, s fleet.Channel, o Options, max int64, dir string, names ...string) error {
	t.Helper()
	d := Download{Options: o, Dir: dir, Sources: names, MaxSize: max}
	return d.Dialogue(t.Context(), host.Host{Name: "h"}, s)
}

// put writes a file with a time in the past.
func write(t *testing.T, path, text string, perm fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), perm), os.Chmod(path, perm)); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-time.Hour)
	os.Chtimes(path, then, then)
}

// listing describes a tree: names, modes, times in seconds, links, content.
func listing(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		b.WriteString(rel + " " + info.Mode().String())
		switch {
		case d.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(path)
			b.WriteString(" -> " + target)
		case d.Type() == 0:
			data, _ := os.ReadFile(path)
			b.WriteString(fmt.Sprintf(" %d %d %x", info.ModTime().Unix(), len(data), sha256.Sum256(data)))
		default:
			b.WriteString(fmt.Sprintf(" %d", info.ModTime().Unix()))
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// contents is listing without the directories.
func contents(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(listing(t, root)) {
		if !strings.Contains(line, " d") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// tree makes a directory with all that a copy has to deal with.
func tree(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "src")
	write(t, dir+"/a", "hello", 0o640)
	write(t, dir+"/empty", "", 0o600)
	write(t, dir+"/new\nline 'quoted' $x", "x", 0o755)
	write(t, dir+"/-dash", "x", 0o400)
	write(t, dir+"/sub/deep/b", strings.Repeat("b", 300_000), 0o644)
	write(t, dir+"/unreadable/c", "c", 0o200)
	write(t, dir+"/big", strings.Repeat("0123456789abcdef", 200_000), 0o644)
	for name, target := range map[string]string{"link": "a", "sub/loop": "..", "dangling": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	os.Chmod(dir+"/sub/deep", 0o555)
	t.Cleanup(func() { os.Chmod(dir+"/sub/deep", 0o755) })
	then := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"/sub/deep", "/sub", "/unreadable", ""} {
		os.Chtimes(dir+name, then, then)
	}
	return dir
}

// uploadPart is the name of a part that a copy of src to dest would leave.
func uploadPart(t *testing.T, dest, src string) string {
	t.Helper()
	s, err := Scan(src, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.items[0].identity()
	if err != nil {
		t.Fatal(err)
	}
	return newPart("h", dest, id).fresh()
}

// parts lists what is left of unfinished files.
func parts(t *testing.T, dir string) (list []string) {
	t.Helper()
	filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		if strings.Contains(path, ".sshpace-") {
			list = append(list, path)
		}
		return nil
	})
	return list
}
