package openssh

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/sys/proc"
)

// ServerConfig describes the private sshd of a measurement.
type ServerConfig struct {
	HostKey        string // file, 0600
	AuthorizedKeys string // file
	Home           string // HOME of sessions: a directory without start-up files
	User           string // the only user who may log in
	StrictModes    bool
	PAM            bool      // logins go through PAM, which a locked account needs
	Offer          alg.Offer // the algorithms to enable
	// Everything permits forwarded ports, compression, many sessions on one connection and many
	// foreign keys, for measurements of these.
	Everything bool
}

// text returns the sshd_config. It enables everything that the build knows: the client chooses an
// algorithm, connection by connection.
func (c ServerConfig) text() string {
	yesNo := map[bool]string{true: "yes", false: "no"}
	lines := []string{
		"HostKey " + c.HostKey,
		"HostKeyAlgorithms ssh-ed25519",
		"PubkeyAcceptedAlgorithms ssh-ed25519",
		"AuthorizedKeysFile " + c.AuthorizedKeys,
		"AllowUsers " + c.User,
		"PermitRootLogin prohibit-password",
		"StrictModes " + yesNo[c.StrictModes],
		"PidFile none",
		"UsePAM " + yesNo[c.PAM],
		"PasswordAuthentication no",
		"KbdInteractiveAuthentication no",
		"DisableForwarding " + yesNo[!c.Everything],
		"PermitUserRC no",
		"PermitUserEnvironment no",
		"PermitTTY no",
		"PrintMotd no",
		"PrintLastLog no",
		"LogLevel INFO", // the level of most reasons for which sshd refuses a login
		"UseDNS no",
		"Compression " + yesNo[c.Everything],
		"SetEnv HOME=" + c.Home,
		"Subsystem sftp internal-sftp",
		"Ciphers " + strings.Join(c.Offer.Ciphers, ","),
		"MACs " + strings.Join(c.Offer.MACs, ","),
		"KexAlgorithms " + strings.Join(c.Offer.Kex, ","),
	}
	if c.Everything {
		lines = append(lines, "MaxSessions "+strconv.Itoa(maxSessions), "AllowTcpForwarding yes", "MaxAuthTries "+strconv.Itoa(maxTries))
	}
	return strings.Join(lines, "\n") + "\n"
}

// maxSessions is how many sessions one connection may have where everything is permitted; sshd's
// own default is 10.
const maxSessions = 256

// maxTries is how many keys may be offered there; sshd's own default is 6.
const maxTries = 100

// Validate writes the configuration to path and lets sshd check it. Options that an older or newer
// sshd does not know are dropped, and if its build lacks algorithms of the client, they are found
// one by one. It returns the real offer of this sshd.
func (p Program) Validate(ctx context.Context, c ServerConfig, path string) (alg.Offer, error) {
	for range 2 {
		problem, err := p.check(ctx, c, path)
		if err != nil || problem == "" {
			return c.Offer, err
		}
		if !strings.Contains(problem, "Bad SSH2") {
			return alg.Offer{}, fmt.Errorf("sshd refuses its configuration: %s", problem)
		}
		c.Offer = c.Offer.Filter(func(kind alg.Kind, name string) bool {
			return kind == alg.HostKey || p.accepts(ctx, c, kind, name)
		})
	}
	return alg.Offer{}, fmt.Errorf("%s accepts none of the client's algorithms", p.Path)
}

// check writes the configuration and runs `sshd -t`.
func (p Program) check(ctx context.Context, c ServerConfig, path string) (problem string, err error) {
	text := c.text()
	for {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		complaint, runErr := proc.Ask(ctx, p.Path, "-t", "-f", path)
		if runErr == nil {
			return "", nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		shorter := dropUnknown(text, complaint)
		if shorter == text {
			return strings.TrimSpace(complaint + " (" + runErr.Error() + ")"), nil
		}
		text = shorter
	}
}

// dropUnknown removes the options that sshd's complaint calls bad: "conf: line 4: Bad configuration
// option: SetEnv".
func dropUnknown(text, complaint string) string {
	for line := range strings.Lines(complaint) {
		if option := badOption(line); option != "" {
			text = dropOption(text, option)
		}
	}
	return text
}

func dropOption(text, option string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if name, _, _ := strings.Cut(line, " "); !strings.EqualFold(name, option) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// accepts asks sshd about one name.
func (p Program) accepts(ctx context.Context, c ServerConfig, kind alg.Kind, name string) bool {
	_, err := proc.Ask(ctx, p.Path, "-t", "-f", os.DevNull, "-h", c.HostKey, "-o", kind.Keyword()+"="+name)
	return err == nil
}

// ServeOne returns the command line of an sshd that serves the connection on its standard input, as
// inetd would start it, and logs to standard error.
func (p Program) ServeOne(config string) []string {
	return []string{p.Path, "-i", "-e", "-f", config}
}

// privsepDir is the directory that Debian's sshd changes its root to before a login. Its start-up
// script makes it; where sshd never ran it is missing.
const privsepDir = "/run/sshd"

// PreparePrivilegeSeparation makes the directory that an sshd run by root needs (sshd.c:
// need_chroot). Ordinary users need none.
func PreparePrivilegeSeparation() error {
	if os.Getuid() != 0 {
		return nil
	}
	if err := os.MkdirAll(privsepDir, 0o755); err != nil {
		return fmt.Errorf("make %s for sshd: %w", privsepDir, err)
	}
	return nil
}

// Locked reports whether sshd would refuse a user because the account is locked: without PAM it
// does where the password field begins with "!" (auth.c: allowed_user). Ubuntu locks root like
// that. Only root's sshd can see the field, so for ordinary users the answer is no.
func Locked(user string) bool {
	text, err := os.ReadFile("/etc/shadow")
	return err == nil && locked(string(text), user)
}

func locked(shadow, user string) bool {
	for line := range strings.Lines(shadow) {
		if fields := strings.Split(line, ":"); fields[0] == user && len(fields) > 1 {
			return strings.HasPrefix(fields[1], "!")
		}
	}
	return false
}
