//go:build linux

package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/shell"
	"sshpace/internal/record"
)

// copying makes the process by which a program, at a path, copies from to target, one of which is
// at the server; both are directories where all is set.
type copying func(b *Ground, program string, o Options, from, target string, all bool) (Process, error)

// landing returns the place of a copy of from to target.
type landing func(b *Ground, o Options, from, target string) string

// scp copies by the SFTP protocol, or with flags such as -O by another.
func scp(flags ...string) copying {
	return func(b *Ground, program string, o Options, from, target string, all bool) (Process, error) {
		argv := append(b.copyOptions(program, o), flags...)
		if all {
			argv = append(argv, "-r")
		}
		return Process{Argv: append(append(argv, "--"), b.places(o, from, target)...), Env: b.Destination.Env}, nil
	}
}

// copyOptions are shared by scp and sftp. They print errors only: debug output for each of many
// files would distort the measurement.
func (b *Ground) copyOptions(program string, o Options) []string {
	options := b.SSH.CopyOptions(b.destination(o), o.Suite, b.Connect)
	return append([]string{program, "-o", "LogLevel=ERROR"}, options[1:]...) // all but -v
}

// places returns from and target as scp and rsync write them.
func (b *Ground) places(o Options, from, target string) []string {
	host := b.Destination.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if o.Direction == record.Download {
		return []string{host + ":" + from, target}
	}
	return []string{from, host + ":" + target}
}

func sftp(b *Ground, program string, o Options, from, target string, all bool) (Process, error) {
	verb := map[record.Direction]string{record.Upload: "put", record.Download: "get"}[o.Direction]
	if all {
		verb += " -r"
	}
	argv := append(b.copyOptions(program, o), "-b", "-", "--", b.Destination.Host)
	return Process{Argv: argv, Env: b.Destination.Env, Input: verb + " " + from + " " + target + "\n"}, nil
}

// rsync splits the command line of its ssh at blanks, so that the ssh has its own script.
func rsync(b *Ground, program string, o Options, from, target string, all bool) (Process, error) {
	b.serial++
	script := b.here(fmt.Sprintf("rsync-ssh.%d", b.serial))
	line := "#!/bin/sh\nexec " + shell.Line(b.SSH.Leading(b.destination(o), o.Suite, b.Connect)...) + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(line), 0o700); err != nil {
		return Process{}, err
	}
	argv := []string{program, "-W", "--no-compress", "-e", script}
	if all {
		argv, from = append(argv, "-r"), from+"/"
	}
	return Process{Argv: append(append(argv, "--"), b.places(o, from, target)...), Env: b.Destination.Env}, nil
}

// mscp copies over several connections. libssh, its SSH, takes settings from a file, in which ours
// come first and so count, and knows no HostKeyAlias.
func mscp(b *Ground, program string, o Options, from, target string, _ bool) (Process, error) {
	lines := b.settings(o)
	switch config := b.Destination.Config; config {
	case "":
		lines = append(lines, "Include ~/.ssh/config", "Include /etc/ssh/ssh_config")
	case "none", os.DevNull:
	default:
		path, err := filepath.Abs(config)
		if err != nil {
			return Process{}, err
		}
		lines = append(lines, "Include "+path)
	}
	argv := []string{program, "-q", "-n", strconv.Itoa(o.Streams), "-F", b.here("mscp.conf")}
	overwritten := func(said string) string { return strings.ReplaceAll(said, "\r", "\n") }
	err := os.WriteFile(b.here("mscp.conf"), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	return Process{Argv: append(argv, b.places(o, from, target)...), Env: b.Destination.Env, Plain: overwritten}, err
}

// own copies with this program: copy and fetch, in the place of scp.
func own(b *Ground, program string, o Options, from, target string, all bool) (Process, error) {
	to := b.destination(o)
	argv := append([]string{program, "copy", "--no-record", "-w", to.Host}, b.SSH.Leading(to, o.Suite, b.Connect)[1:]...)
	places := []string{strings.ReplaceAll(from, "%", "%%"), ":" + target}
	if all {
		places[0] += "/"
	}
	if o.Direction == record.Download {
		argv[1], places = "fetch", []string{":" + from, target}
	}
	return Process{Argv: append(append(argv, "--"), places...), Env: to.Env, Plain: ownReason}, nil
}

// ownReason returns the reason in the first line of a host; the others count hosts.
func ownReason(said string) string {
	line, _, _ := strings.Cut(said, "\n")
	for _, mark := range []string{" =: ", " => "} {
		if _, reason, ok := strings.Cut(line, mark); ok {
			return reason
		}
	}
	return line
}

// ownPlace is where own puts a copy: fetch makes a directory for the host, and has another way to
// write ':'.
func ownPlace(b *Ground, o Options, from, target string) string {
	if o.Direction == record.Upload {
		return target
	}
	return filepath.Join(target, strings.ReplaceAll(b.Destination.Host, ":", "%3A"), filepath.Base(from))
}

// copied copies size bytes in a mode, as one file or as many.
func (b *Ground) copied(ctx context.Context, o Options, m mode, size int64) (reading Reading, err error) {
	defer func() {
		if err != nil {
			err = cmp.Or(b.There.Lost(), err)
		}
	}()
	from, target, err := b.ends(ctx, o, size)
	if err != nil {
		return reading, err
	}
	all := o.Files > 0 && size > 1
	p, err := m.copies(b, b.Programs[m.program], o, from, target, all)
	defer closeAll([]Process{p})
	if err != nil {
		return reading, err
	}
	place := target
	if m.lands != nil {
		place = m.lands(b, o, from, target)
	}
	defer func() {
		_ = os.Remove(b.here(fmt.Sprintf("rsync-ssh.%d", b.serial)))
		_ = os.Remove(b.here("mscp.conf"))
		err = errors.Join(err, b.clear(ctx, o, target))
	}()
	if reading, err = b.Run(ctx, p); err != nil {
		return reading, err
	}
	began := time.Now()
	err = b.arrived(ctx, o, place, size)
	reading.Verified = time.Since(began)
	return reading, err
}

// ends returns the paths of source and destination.
func (b *Ground) ends(ctx context.Context, o Options, size int64) (from, target string, err error) {
	from, err = b.source(o, size)
	if err != nil {
		return "", "", err
	}
	if o.Direction == record.Upload {
		b.serial++ // no copy continues a part that a failed one has left of another name
		target = b.There.Path(fmt.Sprintf("arrived.%d", b.serial))
		return from, target, b.There.Remove(ctx, target)
	}
	target = b.here("arrived")
	from, err = b.There.Payload(ctx, from, size)
	return from, target, errors.Join(err, os.RemoveAll(target))
}

func (b *Ground) clear(ctx context.Context, o Options, target string) error {
	if o.Direction == record.Upload {
		return b.There.Remove(context.WithoutCancel(ctx), target)
	}
	return os.RemoveAll(target)
}

// arrived compares the copy with the sent files, after the clock has been stopped.
func (b *Ground) arrived(ctx context.Context, o Options, target string, size int64) error {
	path, err := b.source(o, size)
	if err != nil {
		return err
	}
	sent := b.Here.made[path]
	if o.Direction == record.Upload {
		return b.There.Same(ctx, target, sent)
	}
	return sent.same(target)
}

// source returns the payload, at this end.
func (b *Ground) source(o Options, size int64) (string, error) {
	if o.Files > 0 && size > 1 {
		return b.Here.tree(o.Files, o.FileBytes)
	}
	return b.Here.Of(size)
}

// local is a directory of this machine as that of the server.
type local struct{ directory string }

// Local returns the place where the server is this machine.
func Local(directory string) Place { return local{directory} }

func (l local) Path(name string) string { return filepath.Join(l.directory, "there."+name) }

// Payload returns the file itself: reading it does not change it.
func (l local) Payload(_ context.Context, from string, _ int64) (string, error) { return from, nil }

func (l local) Same(_ context.Context, path string, sent content) error { return sent.same(path) }

func (l local) Remove(_ context.Context, path string) error { return os.RemoveAll(path) }

func (local) Lost() error { return nil }
