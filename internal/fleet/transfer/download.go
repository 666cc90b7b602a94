package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/ssh/sftp"
)

// Download copies files of hosts to this machine.
type Download struct {
	Options
	Sources []string // names on the hosts; %h is the host's name
	Dir     string   // each host has a folder of its own in it, unless Place says where
	// Place, where set, is where what a host sends goes: a folder, or the name of the
	// one source.
	Place   func(h host.Host) string
	MaxSize int64 // bytes of each host, 0 = any number
}

// Dialogue copies from one host; see fleet.Dialogue.
func (d *Download) Dialogue(ctx context.Context, h host.Host, ch fleet.Channel) error {
	root, name, err := d.open(h)
	if err != nil {
		return err
	}
	defer root.Close()
	c, err := sftp.NewClient(ch)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { ch.Close() })
	defer stop()
	g := &get{side: side{Options: d.Options, ctx: ctx, host: h.String(), client: c, ch: ch, received: true}, root: root, name: name, max: d.MaxSize, names: maxNames}
	for _, source := range d.Sources {
		g.source(ForHost(source, h.Name))
	}
	g.copy()
	return g.verdict()
}

// open opens the folder of a host. name is what the source is to be called in it,
// "" as on the host.
func (d *Download) open(h host.Host) (root *os.Root, name string, err error) {
	if d.Place == nil {
		dir := filepath.Join(d.Dir, output.FileName(h.String()))
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, "", err
		}
		root, err = os.OpenRoot(dir)
		return root, "", err
	}
	place := d.Place(h)
	if root, err = os.OpenRoot(place); err == nil {
		return root, "", nil
	}
	root, err = os.OpenRoot(filepath.Dir(place))
	return root, filepath.Base(place), err
}

// maxNames is how many names a host may have in all.
const maxNames = 1 << 20

// get is the copy from one host. All names on our side are below root, which
// nothing that a host says leads out of (os.Root).
type get struct {
	side
	root    *os.Root
	name    string // of the source here, "" as on the host
	max     int64
	names   int // that may still come
	came    atomic.Int64
	folders []*found
	files   []*found
}

// found is a file or folder of the host.
type found struct {
	remote, local string
	attrs         sftp.Attrs
	part          string
	from          int64 // how much of it was there before
	sum           uint32
	size          int64
}

// source looks at one name of the command line.
func (g *get) source(name string) {
	a, err := g.client.Stat(cmpDot(name))
	if err != nil {
		g.fail(cmpDot(name), err)
		return
	}
	local := path.Base(path.Clean("/" + name))
	if g.name != "" {
		local = g.name
	}
	switch {
	case g.Scp != nil && !g.Scp.Recursive && a.IsDir():
		g.fail(name, errors.New("not a regular file"))
	case local == "/" && a.IsDir():
		g.folder(cmpDot(name), ".", 0)
	default:
		g.look(cmpDot(name), local, a, 0)
	}
}

// look takes a name of the host down.
func (g *get) look(remote, local string, a sftp.Attrs, depth int) {
	f := &found{remote: remote, local: local, attrs: a}
	switch {
	case a.IsDir():
		perm := fs.FileMode(0o700)
		if g.Scp != nil {
			perm |= a.Perm()
		}
		if err := g.root.Mkdir(local, perm); err == nil {
			g.folders = append(g.folders, f)
		} else if info, failed := g.root.Lstat(local); failed != nil || !info.IsDir() {
			g.fail(remote, here(err))
			return
		}
		g.folder(remote, local, depth+1)
	case a.IsRegular():
		g.files = append(g.files, f)
	case a.IsLink() && g.Scp != nil:
		if end, err := g.client.Stat(remote); err != nil {
			g.fail(remote, err)
		} else {
			g.look(remote, local, end, depth+1)
		}
	case a.IsLink():
		g.link(f)
	default:
		g.add(func(t *tally) { t.skipped++ })
		g.say(remote, "is no file, folder or link, and left out")
	}
}

// here marks an error of our own side.
func here(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("here: %w", err)
}

// folder takes down what is in a folder. Names are checked: nothing but a plain
// name is one.
func (g *get) folder(remote, local string, depth int) {
	if depth > maxDepth {
		g.fail(remote, fmt.Errorf("folders are more than %d deep", maxDepth))
		return
	}
	entries, err := g.client.ReadDir(remote, g.names)
	if err != nil {
		g.fail(remote, err)
		return
	}
	g.names -= len(entries)
	slices.SortFunc(entries, func(a, b sftp.Entry) int { return strings.Compare(a.Name, b.Name) })
	before := ""
	for _, e := range entries {
		if e.Name == "." || e.Name == ".." || g.over() {
			continue
		}
		if !isName(e.Name) || e.Name == before {
			g.fail(remote, fmt.Errorf("the host names %q there, which is no name of a file or stands there twice", clip(e.Name)))
			continue
		}
		before = e.Name
		g.look(path.Join(remote, e.Name), path.Join(local, e.Name), e.Attrs, depth)
	}
}

func clip(name string) string { return name[:min(len(name), 100)] }

// isName tells whether a text is the name of a file in a folder.
func isName(name string) bool {
	return name != "" && len(name) <= 255 && !strings.ContainsAny(name, "/\x00") && filepath.IsLocal(name)
}

// link copies a symbolic link that stays inside.
func (g *get) link(f *found) {
	target, err := g.client.Readlink(f.remote)
	if err != nil {
		g.fail(f.remote, err)
		return
	}
	if !filepath.IsLocal(filepath.Join(filepath.Dir(f.local), target)) || filepath.IsAbs(target) {
		g.add(func(t *tally) { t.skipped++ })
		g.say(f.remote, "leads out of the folder, to %s, and is left out", target)
		return
	}
	if now, err := g.root.Readlink(f.local); err == nil && now == target {
		g.add(func(t *tally) { t.identical++ })
		return
	}
	part := partName(g.host, f.local, int64(len(target)), f.attrs.Modified())
	g.root.Remove(part)
	if err = g.root.Symlink(target, part); err == nil {
		err = g.root.Rename(part, f.local)
	}
	if err != nil {
		g.fail(f.remote, here(err))
		return
	}
	g.add(func(t *tally) { t.copied++ })
}

// copy copies the files, and then gives folders their modes and times.
func (g *get) copy() {
	for files := g.files; len(files) > 0 && !g.over(); {
		n := min(len(files), batch)
		var small, big []*found
		for _, f := range files[:n] {
			if f.attrs.Size < large {
				small = append(small, f)
			} else {
				big = append(big, f)
			}
		}
		each(&g.side, atOnce, small, g.file)
		each(&g.side, 1, big, g.file)
		g.place(files[:n])
		files = files[n:]
	}
	for _, f := range slices.Backward(g.folders) {
		if g.Scp != nil && !g.Scp.Preserve {
			break
		}
		err := g.root.Chtimes(f.local, f.attrs.Modified(), f.attrs.Modified())
		if err == nil {
			err = g.root.Chmod(f.local, f.attrs.Perm()|0o700)
		}
		if err != nil {
			g.fail(f.remote, here(err))
		}
	}
}

// file copies one file beside its place, unless it is there already.
func (g *get) file(f *found) {
	if info, err := g.root.Lstat(f.local); g.Scp == nil && err == nil && info.Mode().IsRegular() && uint64(info.Size()) == f.attrs.Size && g.isSame(f, info) {
		g.add(func(t *tally) { t.identical++ })
		return
	}
	if err := g.fetch(f); err != nil {
		f.part = ""
		g.fail(f.remote, err)
	}
}

func (g *get) isSame(f *found, info fs.FileInfo) bool {
	if !g.Compare {
		return info.ModTime().Truncate(1e9).Equal(f.attrs.Modified())
	}
	r, err := g.root.Open(f.local)
	if err != nil {
		return false
	}
	defer r.Close()
	sum, size, err := cksumOf(r)
	return err == nil && g.asHost([]checked{{f.remote, sum, size}})
}

// maxUnsized is what a file may hold whose size the host says is 0, as those of
// /proc.
const maxUnsized = 16 << 20

// fetch writes a part.
func (g *get) fetch(f *found) error {
	if f.attrs.Has&sftp.HasSize == 0 || f.attrs.Size > 1<<62 {
		return errors.New("the host does not say how large it is")
	}
	f.part = partName(g.host, f.local, int64(f.attrs.Size), f.attrs.Modified())
	out, from, err := g.create(f)
	if err != nil {
		return here(err)
	}
	err = g.receive(f, out, from)
	if closed := out.Close(); err == nil && closed != nil {
		err = here(closed)
	}
	keep := f.attrs.Size >= large && (g.ctx.Err() != nil || g.isOver(err))
	if err != nil && !keep {
		g.root.Remove(f.part)
	}
	return err
}

// create makes the part, or goes on with one.
func (g *get) create(f *found) (out *os.File, from int64, err error) {
	if info, err := g.root.Lstat(f.part); err == nil {
		if info.Mode().IsRegular() && f.attrs.Size >= large && uint64(info.Size()) <= f.attrs.Size {
			out, err = g.root.OpenFile(f.part, os.O_RDWR, 0o600)
			return out, info.Size(), err
		}
		g.root.Remove(f.part)
	}
	perm := fs.FileMode(0o600)
	if g.Scp != nil { // as far as the umask lets
		perm = f.attrs.Perm()
	}
	out, err = g.root.OpenFile(f.part, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	return out, 0, err
}

func (g *get) receive(f *found, out *os.File, from int64) error {
	remote, err := g.client.Open(f.remote, sftp.Read, 0)
	if err != nil {
		return err
	}
	defer func() { remote.Close().Wait() }()
	sum := newCksum()
	if _, err := io.CopyN(sum, struct{ io.Reader }{out}, from); err != nil {
		return here(err)
	}
	f.from = from
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
	size := int64(f.attrs.Size)
	if size == 0 {
		err = g.untilEnd(remote, write)
	} else {
		err = g.read(remote, from, size, write)
	}
	f.sum, f.size = sum.sum(), sum.size
	g.add(func(t *tally) { t.bytes += sum.size - from })
	return err
}

// untilEnd reads a file that is said to be empty.
func (g *get) untilEnd(remote *sftp.File, use func([]byte, int64) error) error {
	buf := buffers.Get().(*[255 << 10]byte)
	defer buffers.Put(buf)
	for at := int64(0); ; {
		n, err := remote.ReadAt(buf[:min(len(buf), g.client.Chunk())], at).Wait()
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
	var parts []*found
	var list []checked
	for _, f := range files {
		if f.part != "" {
			parts, list = append(parts, f), append(list, checked{f.remote, f.sum, f.size})
		}
	}
	if len(parts) == 0 || g.over() {
		return
	}
	good := g.NoVerify || g.asHost(list) || g.noExec
	for i, f := range parts {
		if g.over() {
			return
		}
		err := error(nil)
		if !good && !g.asHost(list[i:i+1]) && !g.noExec {
			err = g.anew(f)
		}
		if err == nil {
			err = g.finish(f)
		}
		if err != nil {
			g.fail(f.remote, err)
			continue
		}
		g.add(func(t *tally) { t.copied++ })
	}
}

// anew fetches a file that differs once more, if a part of it was from an
// earlier run.
func (g *get) anew(f *found) error {
	g.root.Remove(f.part)
	if f.from > 0 {
		if err := g.fetch(f); err != nil {
			return err
		}
		if g.asHost([]checked{{f.remote, f.sum, f.size}}) {
			return nil
		}
		g.root.Remove(f.part)
	}
	return errors.New("changed on the host while it was being copied, or what has arrived is not what it has")
}

// dress sets mode and times. As scp does it, a new file has its mode already and one
// that is replaced keeps its own.
func (g *get) dress(f *found) error {
	if g.Scp == nil || g.Scp.Preserve {
		if err := g.root.Chmod(f.part, f.attrs.Perm()); err != nil {
			return err
		}
		return g.root.Chtimes(f.part, f.attrs.Modified(), f.attrs.Modified())
	}
	if info, err := g.root.Lstat(f.local); err == nil && info.Mode().IsRegular() {
		return g.root.Chmod(f.part, info.Mode().Perm())
	}
	return nil
}

// finish sets mode and times and the name.
func (g *get) finish(f *found) error {
	err := g.dress(f)
	if err == nil {
		err = g.root.Rename(f.part, f.local)
	}
	if err != nil {
		g.root.Remove(f.part)
		return here(err)
	}
	return nil
}
