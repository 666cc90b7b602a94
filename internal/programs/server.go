//go:build linux

package programs

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/wire"
	"sshpace/internal/sys/proc"
)

// Server is an SSH server program, running on loopback for this run.
type Server struct {
	Name  string
	Maker string
	Path  string
	SFTP  bool      // it has the subsystem
	Offer alg.Offer // its offer in its first packet

	*loopback.Server
}

// serverRow is a line of the table of servers: command returns the command line that serves one
// connection on its standard input.
type serverRow struct {
	maker, program, pkg string
	command             func(ctx context.Context, b *Setup, path string) (name string, sftp bool, argv []string, err error)
}

// serverRows lists the known servers.
var serverRows = []serverRow{
	{"openssh", "sshd", "openssh-server", opensshServer},
	{"hpn-ssh", "hpnsshd", "hpnssh", opensshServer},
	{"dropbear", "dropbear", "dropbear-bin", dropbearServer},
	{"tinyssh", "tinysshd", "tinysshd", tinysshServer},
	{native, "", "", nativeServer},
	{oldCipherServer, "", "", oldServer},
}

// servers starts the servers that are installed here, on our own ports. builds are the user's own
// sshd. The caller closes them.
func (b *Setup) servers(ctx context.Context, builds []Build) (found []Server, missing map[string]error) {
	missing = map[string]error{}
	add := func(row serverRow, name string) {
		s, err := b.server(ctx, row)
		if err != nil {
			missing[row.maker] = err
			return
		}
		s.Name = cmp.Or(name, s.Name)
		found = append(found, s)
	}
	for _, build := range builds {
		add(serverRow{"openssh", build.Path, "", opensshServer}, build.Name)
	}
	for _, row := range serverRows {
		if row.program == "" || !given(builds, proc.Find(row.program)) {
			add(row, "")
		}
	}
	unlike(found, func(s *Server) (*string, string) { return &s.Name, s.Path })
	return found, missing
}

func (b *Setup) server(ctx context.Context, row serverRow) (s Server, err error) {
	s = Server{Maker: row.maker, Path: b.Helper("")[0]}
	if row.program != "" {
		if s.Path = proc.Find(row.program); s.Path == "" {
			return s, absent(row.program, row.pkg)
		}
	}
	var argv []string
	if s.Name, s.SFTP, argv, err = row.command(ctx, b, s.Path); err != nil {
		return s, err
	}
	var greeting wire.Greeting
	if s.Server, greeting, err = b.Serve(ctx, argv, greetingLimit); err != nil {
		return s, err
	}
	s.Offer = greeting.Offer
	if name := s.Name; !strings.Contains(name, " ") && row.maker != native { // the program does not report its version: the protocol does
		s.Name = bannerName(row.maker, greeting.Version)
	}
	return s, nil
}

// bannerName returns a name from a version line such as "SSH-2.0-tinyssh_20230101".
func bannerName(maker, banner string) string {
	software, _, _ := strings.Cut(strings.TrimPrefix(banner, "SSH-2.0-"), " ")
	if _, version, ok := strings.Cut(software, "_"); ok {
		return maker + " " + version
	}
	return maker
}

func opensshServer(ctx context.Context, b *Setup, path string) (name string, sftp bool, argv []string, err error) {
	sshd, err := openssh.FindServer(ctx, path)
	if err != nil {
		return "", false, nil, err
	}
	offer := wire.Offer()
	if client, err := openssh.FindClient(ctx, sibling(path)); err == nil {
		if own, err := client.Query(ctx); err == nil {
			offer = own
		}
	}
	if err := openssh.PreparePrivilegeSeparation(); err != nil {
		return "", false, nil, err
	}
	b.serial++
	argv, err = b.Sshd(ctx, sshd, openssh.ServerConfig{User: b.User, Offer: offer}, "sshd_config."+strconv.Itoa(b.serial))
	return opensshName("openssh", sshd.Version), true, argv, err
}

// sibling returns the ssh that belongs to an sshd: next to it, or where the system has it.
func sibling(sshd string) string {
	for _, path := range []string{filepath.Join(filepath.Dir(sshd), "ssh"), filepath.Join(filepath.Dir(sshd), "..", "bin", "ssh")} {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	return ""
}

// sftpServers lists where systems keep OpenSSH's sftp-server, which others use.
var sftpServers = []string{"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server", "/usr/libexec/sftp-server", "/usr/lib/sftp-server"}

func sftpServer() string {
	for _, path := range sftpServers {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func dropbearServer(ctx context.Context, b *Setup, path string) (name string, sftp bool, argv []string, err error) {
	key := b.Dir.File("host_key.dropbear")
	if err := b.convert(ctx, key, "dropbearconvert", "openssh", "dropbear", b.Keys.HostKey, key); err != nil {
		return "", false, nil, err
	}
	answer, _ := proc.Ask(ctx, path, "-V")
	argv, err = b.atHome(ctx, path, "-i", "-s", "-r", key)
	return "dropbear " + versionIn(answer, "Dropbear v"), sftpServer() != "", argv, err
}

// tinysshServer prepares TinySSH as a server and returns its arguments. It writes the host key of
// this run in TinySSH's format: the public key, and the seed followed by the public key.
func tinysshServer(ctx context.Context, b *Setup, path string) (name string, sftp bool, argv []string, err error) {
	directory, err := b.directory("tinyssh")
	if err != nil {
		return "", false, nil, err
	}
	text, err := os.ReadFile(b.Keys.HostKey)
	if err != nil {
		return "", false, nil, err
	}
	raw, err := ssh.ParseRawPrivateKey(text)
	if err != nil {
		return "", false, nil, err
	}
	private, ok := raw.(*ed25519.PrivateKey)
	if !ok {
		return "", false, nil, fmt.Errorf("%s is not an Ed25519 key", b.Keys.HostKey)
	}
	if err := put(filepath.Join(directory, ".ed25519.sk"), string(*private)); err != nil {
		return "", false, nil, err
	}
	if err := put(filepath.Join(directory, "ed25519.pk"), string(private.Public().(ed25519.PublicKey))); err != nil {
		return "", false, nil, err
	}
	words := []string{path}
	if program := sftpServer(); program != "" {
		words, sftp = append(words, "-x", "sftp="+program), true
	}
	argv, err = b.atHome(ctx, append(words, directory)...)
	return "tinyssh", sftp, argv, err
}

func nativeServer(_ context.Context, b *Setup, _ string) (name string, sftp bool, argv []string, err error) {
	return native, false, append(b.Helper("native-server"), b.Keys.HostKey, b.Keys.AuthorizedKeys, b.Dir.Path), nil
}

// oldServer has only the ciphers that no other server has any more.
func oldServer(_ context.Context, b *Setup, _ string) (name string, sftp bool, argv []string, err error) {
	return oldCipherServer, false, append(b.Helper("old-server"), b.Keys.HostKey, b.Keys.AuthorizedKeys, b.Dir.Path), nil
}

// atHome returns the command line of a server that looks for authorized_keys in the home directory
// of the account, which no option changes: it sees a directory of this run there, in its own view
// of the file system. The user's own home is not touched.
func (b *Setup) atHome(ctx context.Context, argv ...string) ([]string, error) {
	if within(b.Dir.Path, b.Home) {
		return nil, errors.New("it looks for keys in the home directory only, and cannot be shown another one: there is no private directory outside it")
	}
	home, err := b.directory("home", ".ssh")
	if err != nil {
		return nil, err
	}
	keys, err := os.ReadFile(b.Keys.AuthorizedKeys)
	if err == nil {
		err = put(filepath.Join(home, "authorized_keys"), string(keys))
	}
	if err != nil {
		return nil, err
	}
	view := []string{"unshare", "--mount"}
	if os.Getuid() != 0 {
		view = append(view, "--map-current-user", "--keep-caps")
	}
	view = append(view, "--", "sh", "-c", `mount --bind "$0" "$1" && shift && exec "$@"`, filepath.Dir(home), b.Home)
	if said, err := proc.Ask(ctx, append(view[:len(view):len(view)], "true")...); err != nil {
		return nil, errors.New("it looks for keys in the home directory only, and a view with another one is not permitted here: " + strings.TrimSpace(said+" "+err.Error()))
	}
	return append(view, argv...), nil
}

// within reports whether path is directory or lies in it.
func within(path, directory string) bool {
	relative, err := filepath.Rel(directory, path)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, "../")
}
