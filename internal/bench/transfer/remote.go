//go:build linux

package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// remote is a private directory on a host. A shell there keeps it: its standard input is ours, and
// when that ends, which is when we end, for any reason, it removes the directory. If the host fails
// to, the next run does.
type remote struct {
	ground *Ground
	path   string
	keeper *job
	alive  io.Closer
	swept  []string // leftovers of killed runs
	made   map[int64]string
}

// remoteName matches the answers that the host may give, in the requested directory: no command
// ever contains another name. words match the names that directory may have.
var (
	remoteName = wildcard.Regexp(`^sshpace-copy-[A-Za-z0-9]{10}$`)
	words      = wildcard.Regexp(`^(/[A-Za-z0-9_.+@,=-]+)+$`)
)

// Misplaced describes an error in the place of files, and the remedy: in which modes, how many if
// not one, in which directory here at this end and there on a host, if there is one; 0 and "" are
// not named.
func Misplaced(modes []record.Mode, files int, here, there string, host bool) (wrong, hint string) {
	if files > 0 && !slices.ContainsFunc(modes, copiesFiles) {
		return "none of these methods copies files, and --files is for files", "add one that does: --only " + strings.Join(wordsOf(mode.isCopy), ",")
	}
	if here != "" {
		if wrong, hint = Unusable(here); wrong != "" {
			return wrong, hint
		}
	}
	switch {
	case there == "":
	case !host:
		return "--remote-dir has no meaning without a host", "use --dir: the private server is here"
	case path.Clean(there) != there || !words().MatchString(there):
		return "--remote-dir " + there + " is not an absolute path of letters, digits and _.+@,=-", "such as --remote-dir /srv/nas"
	}
	return "", ""
}

// Unusable is Misplaced for --dir.
func Unusable(directory string) (wrong, hint string) {
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return "--dir " + directory + ": there is no such directory", "make it first, or name another one"
	}
	const hintElse = "name another one, or leave it out"
	made, err := os.MkdirTemp(directory, ".sshpace-")
	if err != nil {
		return fmt.Sprintf("--dir %s: nothing can be written there: %v", directory, err), hintElse
	}
	if err := os.Remove(made); err != nil {
		return fmt.Sprintf("--dir %s: nothing can be removed there: %v", directory, err), hintElse
	}
	return "", ""
}

// keep makes the directory, prints its name and the leftovers, and waits. A directory of ours whose
// keeper is gone is a leftover.
const keep = `umask 077
for d in "$1"/sshpace-copy-??????????; do
if [ -O "$d" ] && [ ! -L "$d" ] && [ -f "$d/.keeper" ] && ! kill -0 "$(cat "$d/.keeper")" 2>/dev/null; then rm -rf -- "$d" && echo "left $d"; fi
done
d=$(mktemp -d "$1"/sshpace-copy-XXXXXXXXXX) && echo $$ >"$d/.keeper" && echo "made $d" || exit 1
trap "" HUP INT TERM
cat >/dev/null
rm -rf -- "$d"`

// maxAnswer is how much a host may print, in bytes.
const maxAnswer = 64 << 10

// openRemote logs in and lets the host make a directory in directory.
func openRemote(ctx context.Context, b *Ground, directory string) (*remote, error) {
	r := &remote{ground: b, made: map[int64]string{}}
	p := b.command(b.Destination, alg.Suite{}, "exec sh -c "+shell.Quote(keep)+" sh "+directory)
	ends, err := proc.OpenPipes(os.Pipe)
	if err != nil {
		return nil, err
	}
	defer ends.Out.Close() // no more output
	p.Stdin, p.Stdout, r.alive = ends.Stdin, ends.Stdout, ends.In
	r.keeper, err = b.start(context.Background(), p) // which outlives ctx
	ends.HandOver()
	if err != nil {
		return nil, errors.Join(err, r.alive.Close())
	}
	defer context.AfterFunc(ctx, r.keeper.Kill)()
	late := time.AfterFunc(b.Connect+loopback.Grace, r.keeper.Kill)
	defer late.Stop()
	if r.path, r.swept, err = placeIn(ends.Out, directory); err != nil {
		r.close()
		return nil, &Failure{"ssh", fmt.Sprintf("the host cannot make a directory for the files: %s", r.keeper.why(errors.Join(err, r.keeper.End)))}
	}
	return r, nil
}

// placeIn parses the keeper's answer about a directory in directory.
func placeIn(out io.Reader, directory string) (place string, swept []string, err error) {
	for {
		line, err := openssh.AwaitMark(out, "") // any line
		if err != nil {
			return "", swept, err
		}
		what, name, _ := strings.Cut(line, " ")
		switch {
		case path.Dir(name) != directory || !remoteName().MatchString(path.Base(name)):
		case what == "left":
			swept = append(swept, name)
		case what == "made":
			return name, swept, nil
		}
	}
}

// close lets the keeper remove the directory, and waits for it.
func (r *remote) close() {
	r.alive.Close()
	if !r.keeper.Await(loopback.Grace) {
		r.keeper.Kill()
	}
}

// errLost is the error where ssh has not reported why its session ended.
var errLost = errors.New("the connection is lost")

func (r *remote) Lost() error {
	if !r.keeper.HasEnded() {
		return nil
	}
	return &Failure{"ssh", "the session that kept the directory on the host has ended, and its directory is gone: " + r.keeper.why(errLost)}
}

// ask runs a command on the host and returns what it prints.
func (r *remote) ask(ctx context.Context, command string, stdin *os.File) (text string, err error) {
	p := r.ground.command(r.ground.Destination, alg.Suite{}, command)
	p.Stdin = stdin
	var said func() string
	if p.Stdout, said, err = answer(); err != nil {
		return "", err
	}
	_, err = r.ground.Run(ctx, p)
	p.Stdout.Close()
	return said(), err
}

func (r *remote) Path(name string) string { return r.path + "/" + name }

// Payload copies the file there, once.
func (r *remote) Payload(ctx context.Context, from string, size int64) (string, error) {
	info, err := os.Stat(from)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return "", &Failure{"download", "many files can only be sent to a host, not fetched"}
	}
	if path, known := r.made[size]; known {
		return path, nil
	}
	path := r.Path("payload." + strconv.FormatInt(size, 10))
	file, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if _, err := r.ask(ctx, "cat >"+path, file); err != nil {
		return "", err
	}
	r.made[size] = path
	return path, nil
}

// Same compares hashes; if the host has no sha256sum, it compares lengths.
func (r *remote) Same(ctx context.Context, path string, sent content) error {
	text, err := r.ask(ctx, fmt.Sprintf(sumThere, path), nil)
	if err != nil {
		return err
	}
	said, _, _ := strings.Cut(text, " ")
	if said == sent.hash || len(said) < len(sent.hash) && said == strconv.FormatInt(sent.size, 10) {
		return nil
	}
	return errOther
}

// sumThere prints the hash of a file, of a directory as contentOf computes it, or else the length.
const sumThere = `cd /tmp; p=%s; LC_ALL=C; export LC_ALL
if ! command -v sha256sum >/dev/null; then find "$p" -type f -exec cat {} + | wc -c
elif [ -d "$p" ]; then cd "$p" && find . -type f -exec sha256sum {} + | sort -k 2 | sha256sum
else sha256sum "$p"; fi`

func (r *remote) Remove(ctx context.Context, path string) error {
	_, err := r.ask(ctx, "rm -rf -- "+path, nil)
	return err
}
