package copy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/ssh/sftp"
	"sshpace/internal/sys/safedir"
)

// Download copies files of hosts to this machine.
type Download struct {
	Options
	Sources []string // names on the hosts, with tokens
	Dir     string   // each host has its own directory in it, unless Place is set
	// Place, if set, returns the directory of a host, and in it a directory for its files, or the
	// name for the only source.
	Place   func(h host.Host) (directory, name string)
	MaxSize int64 // bytes of each host, 0 = any number
}

// Dialogue copies from one host; see fleet.Dialogue.
func (d *Download) Dialogue(ctx context.Context, h host.Host, ch fleet.Channel) error {
	g := &get{side: side{Options: d.Options, ctx: ctx, host: h.String(), ch: ch, received: true}, max: d.MaxSize, names: maxNames}
	var err error
	if g.root, g.name, err = d.open(h); err != nil {
		return fmt.Errorf("here: %w", err)
	}
	defer g.root.Close()
	closing, err := g.connect()
	if err != nil {
		return err
	}
	defer closing()
	for _, source := range d.Sources {
		g.source(d.Naming.of(source, h))
	}
	g.copy()
	return g.verdict()
}

// open opens the directory of a host, which nobody else may have made or can write to: a link there
// would lead elsewhere. name is the name of the source in it, "" as on the host.
func (d *Download) open(h host.Host) (root *os.Root, name string, err error) {
	dir := filepath.Join(d.Dir, output.FileName(h.String()))
	if d.Place != nil {
		dir, name = d.Place(h)
	}
	open := safedir.Make
	if d.Dry {
		open = safedir.Open
	}
	directory, err := open(dir)
	if d.Dry && errors.Is(err, fs.ErrNotExist) {
		root, err := nowhere()
		return root, name, err
	}
	if err != nil {
		return nil, "", err
	}
	if name == "" {
		return directory.Root, "", nil
	}
	if inside, err := directory.OpenRoot(name); err == nil {
		return inside, "", directory.Close()
	}
	return directory.Root, name, nil
}

// nowhere returns an empty directory that has no name any more.
func nowhere() (*os.Root, error) {
	name, err := os.MkdirTemp("", "sshpace-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(name)
	return os.OpenRoot(name)
}

// get is the copy from one host. All names on our side are below root, and no name from a host
// leads out of it (os.Root). Files are copied while the host is still asked for more names, so that
// few of them are kept at a time.
type get struct {
	side
	root  *os.Root
	name  string // of the source here, "" as on the host
	max   int64
	names int // that may still come
	held  int // bytes of names that are kept now
	came  atomic.Int64

	files       []*found // that are to be copied next
	directories []*found // completely listed directories, which get their modes and times after their files
}

// found is a file or directory of the host.
type found struct {
	remote, local string
	attrs         sftp.Attrs
	part          string
	from          int64 // how much of it was there before
	sum           uint32
	size          int64
	short         error // it ended earlier than the host said: only its cksum shows whether this is all
}

func (f *found) checked() checked { return checked{f.remote, f.sum, f.size} }

// here marks an error of our own side.
func here(err error) error {
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("here: %w", err)
}

// link copies a symbolic link that stays inside.
func (g *get) link(f *found) {
	target, err := g.target(f.remote)
	if err != nil {
		g.fail(f.remote, err)
		return
	}
	if !staysInside(path.Dir(f.local), target) {
		g.skip(f.remote, "skipped: it points to %s, which is or may be outside the directory", clip(target))
		return
	}
	if now, err := g.root.Readlink(f.local); err == nil && now == target {
		g.add(func(t *tally) { t.identical++ })
		return
	}
	if g.Dry {
		g.add(func(t *tally) { t.copied++ })
		g.would("link", f.local+" -> "+target)
		return
	}
	part := g.partOf(f).fresh()
	if err = g.root.Symlink(target, part); err == nil {
		if err = g.root.Rename(part, f.local); err != nil {
			g.root.Remove(part)
		}
	}
	if err != nil {
		g.fail(f.remote, here(err))
		return
	}
	g.add(func(t *tally) { t.copied++ })
}

// target returns the target of a link, relative to the link. Some hosts return it relative to their
// first directory; for a link that leads nowhere that is unknown.
func (g *get) target(name string) (string, error) {
	target, err := g.client.Readlink(name)
	directory := path.Dir(name)
	top, _, _ := strings.Cut(directory, "/")
	if err != nil || path.IsAbs(name) || !strings.HasPrefix(target, top+"/") || g.has(path.Join(directory, target)) || !g.has(target) {
		return target, err
	}
	return filepath.Rel(directory, target)
}

// has reports whether the host has a file with a name.
func (g *get) has(name string) bool {
	_, err := g.client.Stat(name)
	return err == nil
}

// copy copies the listed files, and then gives the directories their modes and times.
func (g *get) copy() {
	files := g.missing(g.files)
	if g.Dry {
		g.forecast(files)
		g.files, g.directories = nil, nil
		return
	}
	if len(files) > 0 && !g.NoVerify && g.Scp == nil {
		g.begin(1)
	}
	moved(&g.side, files, func(f *found) int64 { return int64(min(f.attrs.Size, math.MaxInt64)) }, g.receive)
	g.place(files)
	for _, f := range g.directories {
		if err := g.dress(f.local, f.attrs); err != nil {
			g.fail(f.remote, here(err))
		}
	}
	g.files, g.directories = nil, nil
}

// missing drops the files that are here already.
func (g *get) missing(files []*found) (missing []*found) {
	var alike []*found
	var list []checked
	for _, f := range files {
		info, err := g.root.Lstat(f.local)
		switch {
		case g.Scp != nil || err != nil || !info.Mode().IsRegular() || uint64(info.Size()) != f.attrs.Size:
			missing = append(missing, f)
		case !g.Compare && hasTime(info, f):
			g.isHere(f)
		case !g.Compare || !g.asks() || !g.sumHere(f):
			missing = append(missing, f)
		default:
			alike, list = append(alike, f), append(list, f.checked())
		}
	}
	same, _ := g.sums(list)
	for i, f := range alike {
		if same[i] {
			g.isHere(f)
		} else {
			missing = append(missing, f)
		}
	}
	return missing
}

// hasTime reports whether a file here has the time of the one on the host.
func hasTime(info fs.FileInfo, f *found) bool {
	return info.ModTime().Truncate(1e9).Equal(f.attrs.Modified())
}

// isHere counts a file that need not be copied, and gives it the mode and time that it has on the
// host. Parts of it from other runs are useless now.
func (g *get) isHere(f *found) {
	info, err := g.root.Lstat(f.local)
	if err == nil && (info.Mode().Perm() != f.attrs.Perm() || !hasTime(info, f)) {
		g.add(func(t *tally) { t.altered++ })
		if g.would("set mode or time of", f.local); !g.Dry {
			err = g.dress(f.local, f.attrs)
		}
	}
	if err != nil {
		g.fail(f.remote, here(err))
	} else {
		g.add(func(t *tally) { t.identical++ })
	}
	if g.Dry {
		return
	}
	own := g.partOf(f)
	for _, old := range g.left.take(own) {
		g.discard(own, old)
	}
}

// dress sets mode and times of a file or directory here.
func (g *get) dress(local string, a sftp.Attrs) error {
	if err := g.root.Chtimes(local, a.Modified(), a.Modified()); err != nil {
		return err
	}
	return g.root.Chmod(local, a.Perm())
}

// sumHere computes the checksum of the file that is here.
func (g *get) sumHere(f *found) bool {
	r, err := g.root.Open(f.local)
	if err != nil {
		return false
	}
	defer r.Close()
	f.sum, f.size, err = cksumOf(r)
	return err == nil
}

// maxUnsized is the most content of a file whose size the host reports as 0, like those of /proc.
const maxUnsized = 16 << 20

// receive fetches a file into a temporary one next to its place. A failure is counted.
func (g *get) receive(f *found) {
	if err := g.fetch(f); err != nil {
		f.part = ""
		g.fail(f.remote, err)
	}
}

func (g *get) fetch(f *found) error {
	if f.attrs.Has&sftp.HasSize == 0 || f.attrs.Size > 1<<62 {
		return errors.New("the host does not say how large it is")
	}
	out, err := g.create(f)
	if err != nil {
		return here(err)
	}
	err = g.content(f, out)
	if closed := out.Close(); err == nil && closed != nil {
		err = here(closed)
	}
	switch {
	case err == nil:
	case g.isOver(err):
		g.leave(f)
	default:
		g.root.Remove(f.part)
	}
	return err
}

// leave leaves a part at the end of the run, if it is worth resuming.
func (g *get) leave(f *found) {
	if f.attrs.Size < large {
		g.root.Remove(f.part)
	} else if g.ctx.Err() != nil {
		g.say(f.remote, "its part stays here; run the same fetch again to continue it")
	}
}

func (g *get) partOf(f *found) part {
	return newPart(g.host, f.local, f.attrs.Size, f.attrs.Mtime)
}

// create makes the part, or continues one of an earlier run. It is locked while it is written:
// parts of other running copies are not touched.
func (g *get) create(f *found) (out *os.File, err error) {
	f.from = 0
	f.part = g.left.claim(g.partOf(f), func(old, name string) bool {
		file := g.abandoned(old)
		if file == nil {
			return false
		}
		info, err := file.Stat()
		if err == nil && g.isResumable(f, info) && g.root.Rename(old, name) == nil {
			out, f.from = file, info.Size()
		} else {
			file.Close()
		}
		return out != nil
	}, g.discard)
	if out != nil {
		return out, nil
	}
	perm := fs.FileMode(0o600)
	if g.Scp != nil { // as far as the umask lets
		perm = f.attrs.Perm()
	}
	if out, err = g.root.OpenFile(f.part, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm); err == nil {
		lock(out) // where a file system has no locks, no part is continued either
	}
	return out, err
}

// isResumable reports whether a part may be continued: the result must be compared with the host in
// the end, because only that distinguishes contents of one size and time.
func (g *get) isResumable(f *found, info fs.FileInfo) bool {
	return f.attrs.Size >= large && uint64(info.Size()) <= f.attrs.Size && !g.NoVerify && g.asks()
}

// discard removes a part that nobody writes any more.
func (g *get) discard(_ part, old leftover) {
	if file := g.abandoned(old.name); file != nil {
		g.root.Remove(old.name)
		file.Close()
	}
}

// abandoned opens and locks a part that nobody writes any more, nil if somebody does.
func (g *get) abandoned(name string) *os.File {
	here, err := g.root.Lstat(name)
	if err != nil || !here.Mode().IsRegular() {
		return nil
	}
	file, err := g.root.OpenFile(name, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	opened, err := file.Stat()
	if err != nil || !os.SameFile(here, opened) || !isOwn(opened) || !lock(file) {
		file.Close()
		return nil
	}
	return file
}

// isOwn reports whether a file is ours, and has no other name: in a directory that others can write
// to, anybody may have put a file there under the name of a part.
func isOwn(info fs.FileInfo) bool {
	a, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(a.Uid) == os.Geteuid() && a.Nlink == 1
}

// lock reports whether a file is ours alone until it is closed (flock(2)).
func lock(file *os.File) bool {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// content writes the content that the host sends: as much as the file held when it was listed,
// although it may have become longer.
func (g *get) content(f *found, out *os.File) error {
	remote, err := g.open(g.client, f.remote, sftp.Read, 0)
	if err != nil {
		return err
	}
	defer func() { go remote.Close().Wait() }() // nothing depends on the answer
	sum := newCksum()
	if _, err := io.CopyN(sum, struct{ io.Reader }{out}, f.from); err != nil {
		return here(err)
	}
	write := func(p []byte, at int64) error {
		if g.max > 0 && g.came.Add(int64(len(p))) > g.max {
			return fmt.Errorf("the host sends more than --max-size %d allows", g.max)
		}
		sum.Write(p)
		if _, err := out.WriteAt(p, at); err != nil {
			return here(err)
		}
		return nil
	}
	if size := int64(f.attrs.Size); size == 0 {
		err = g.untilEnd(remote, write)
	} else {
		err = g.read(remote, f.from, size, write)
	}
	f.sum, f.size = sum.sum(), sum.size
	f.short = nil
	if short, ok := errors.AsType[*shortError](err); ok && !g.NoVerify && g.asks() {
		f.short, err = short, nil
	}
	return err
}

// untilEnd reads a file whose size is reported as 0.
func (s *side) untilEnd(remote *sftp.File, use func([]byte, int64) error) error {
	buf := buffers.Get().(*chunk)
	defer buffers.Put(buf)
	for at := int64(0); ; {
		n, err := remote.ReadAt(buf[:min(len(buf), s.client.Chunk())], at).Wait()
		switch {
		case errors.Is(err, io.EOF) && isStatus(err):
			return nil
		case err == nil:
			err = use(buf[:n], at)
		}
		if at += int64(n); err == nil && at > maxUnsized {
			err = fmt.Errorf("has no size and more than %d bytes", maxUnsized)
		}
		if err != nil {
			return err
		}
	}
}

// place compares parts with the originals and gives them their names.
func (g *get) place(files []*found) {
	parts := slices.DeleteFunc(slices.Clone(files), func(f *found) bool { return f.part == "" })
	right := g.compared(parts)
	for i, f := range parts {
		if g.over() {
			g.leave(f)
			continue
		}
		err := errChangedThere
		if right[i] {
			err = g.finish(f)
		}
		if errors.Is(err, errChangedThere) {
			err = g.again(f)
		}
		if err = g.untilOurs(err, func() error { return g.again(f) }); err != nil {
			g.fail(f.remote, err)
			continue
		}
		g.add(func(t *tally) { t.copied++; t.bytes += f.size - f.from })
	}
}

var errChangedThere = errors.New("changed on the host while it was being copied, or the copy differs from the file there")

// compared returns which parts equal the host's file, or its beginning.
func (g *get) compared(parts []*found) (right []bool) {
	right = make([]bool, len(parts))
	asked := !g.NoVerify && !g.over()
	for n, ask := range []func([]checked) ([]bool, bool){g.sums, g.beginnings} {
		var list []checked
		var at []int
		for i, f := range parts {
			if !right[i] && (n == 0 || f.short == nil) {
				list, at = append(list, f.checked()), append(at, i)
			}
		}
		if !asked || len(list) == 0 {
			break
		}
		var good []bool
		good, asked = ask(list)
		for n, i := range at {
			right[i] = good[n]
		}
	}
	for i, f := range parts { // without a comparison the file is accepted as received, with a note
		right[i] = right[i] || !asked && f.from == 0 && f.short == nil && !g.rewritten(f)
	}
	return right
}

// rewritten reports whether a large file that cannot be compared has another time than before, but
// no other size: the received one may be a mixture. A longer one may be a log.
func (g *get) rewritten(f *found) bool {
	if g.NoVerify || f.attrs.Size < large {
		return false
	}
	a, err := g.client.Stat(f.remote)
	return err == nil && a.Size == f.attrs.Size && a.Mtime != f.attrs.Mtime
}

// again fetches a file once more, with its present content.
func (g *get) again(f *found) error {
	g.root.Remove(f.part)
	a, err := g.client.Stat(f.remote)
	switch {
	case err != nil:
		return err
	case !a.IsRegular():
		return errChangedThere
	}
	f.attrs = a
	if err := g.fetch(f); err != nil {
		return err
	}
	if !g.compared([]*found{f})[0] {
		g.root.Remove(f.part)
		return cmp.Or(f.short, errChangedThere)
	}
	return g.finish(f)
}

// dressPart sets mode and times. As with scp, a new file has its mode already and a replaced one
// keeps its own.
func (g *get) dressPart(f *found) error {
	if g.Scp == nil || g.Scp.Preserve {
		return g.dress(f.part, f.attrs)
	}
	if info, err := g.root.Lstat(f.local); err == nil && info.Mode().IsRegular() {
		return g.root.Chmod(f.part, info.Mode().Perm())
	}
	return nil
}

// finish sets mode and times and the name.
func (g *get) finish(f *found) error {
	err := g.dressPart(f)
	if err == nil {
		err = g.root.Rename(f.part, f.local)
	}
	if err != nil {
		g.root.Remove(f.part)
		return here(err)
	}
	return nil
}
