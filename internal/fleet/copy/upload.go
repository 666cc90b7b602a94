package copy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sftp"
)

// Upload copies files of this machine to hosts.
type Upload struct {
	Options
	// Sources gives what a host gets, in general the same for all.
	Sources func(h host.Host) ([]*Source, error)
	Dest    string // a folder if it ends with a slash, exists as one, or there are many sources; %h is the host's name

	shelf shelf
}

// Dialogue copies to one host; see fleet.Dialogue.
func (u *Upload) Dialogue(ctx context.Context, h host.Host, ch fleet.Channel) error {
	sources, err := u.Sources(h)
	if err != nil {
		return err
	}
	p := &put{side: side{Options: u.Options, ctx: ctx, host: h.String(), ch: ch}, fresh: map[string]bool{}, there: map[string]bool{}, inside: map[string]sftp.Attrs{}, changed: map[string]bool{}, shelf: &u.shelf}
	closing, err := p.connect()
	if err != nil {
		return err
	}
	defer closing()
	named := ForHost(u.Dest, h.Name)
	dest, err := p.remote(named)
	if err == nil {
		err = p.all(sources, dest)
	}
	if err != nil {
		p.fail(named, err)
	}
	return p.verdict()
}

// put is the copy to one host.
type put struct {
	side
	folders []*placed       // those above before those below
	fresh   map[string]bool // folders that the host did not have: nothing of others is in them
	there   map[string]bool // of those, the ones that are there by now
	noTar   bool            // the host has no tar that we can run
	noCat   bool            // or cat did not do what it should
	shelf   *shelf
	mu2     sync.Mutex
	inside  map[string]sftp.Attrs // what folders of parts are, memo
	changed map[string]bool       // folders that are not as they were
}

// placed is an item with its name on the host.
type placed struct {
	*item
	name string
	part string // where it was written, "" if it need not be put into place
	from int64  // how much of it was there before
	had  had

	begun  bool       // the part is there
	named  bool       // the folder that the user named: what is in it is copied, not it
	was    sftp.Attrs // of a folder that the host had
	poured bool       // it was compared when it had come
}

// had is what a host has under the name of a file.
type had int

const (
	another had = iota // or nothing
	alike              // a file of the same size and time, or of the same size where checksums tell
	altered            // the same with another mode or time
	unknown            // which was said
)

func (p *put) all(sources []*Source, dest string) error {
	into, err := p.isFolder(sources, dest)
	if err != nil {
		return err
	}
	if p.Scp != nil && !p.Scp.Recursive {
		sources = slices.DeleteFunc(slices.Clone(sources), p.isNoFile)
	}
	var files, links []*placed
	for _, source := range sources {
		top := path.Clean(dest)
		if into {
			top = path.Join(dest, source.base)
		}
		p.add(func(t *tally) { t.skipped += len(source.Left) })
		for _, it := range source.items {
			to := &placed{item: it, name: top, named: into && it.rel == "" && source.base == "."}
			if it.rel != "" {
				to.name = top + "/" + it.rel
			}
			switch it.kind {
			case fs.ModeDir:
				p.folders = append(p.folders, to)
			case fs.ModeSymlink:
				links = append(links, to)
			default:
				files = append(files, to)
			}
		}
	}
	p.findFolders()
	if p.Scp == nil {
		files = p.needed(files)
		p.findLeftovers(files)
		files = p.packed(files)
	}
	p.makeFolders()
	for len(files) > 0 && !p.over() {
		n := min(len(files), batch)
		p.batch(files[:n])
		files = files[n:]
	}
	each(&p.side, atOnce, links, p.link)
	p.finishFolders()
	return nil
}

// isFolder tells whether the sources go into dest, not in its place.
func (p *put) isFolder(sources []*Source, dest string) (bool, error) {
	a, err := p.client.Stat(dest)
	switch {
	case err == nil && a.IsDir():
		return true, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	case strings.HasSuffix(dest, "/") || len(sources) > 1:
		if err == nil {
			return false, errors.New("is no directory on the host")
		}
		return false, errors.New("there is no such directory on the host")
	}
	return false, nil
}

// isNoFile says that a folder is left out.
func (p *put) isNoFile(s *Source) bool {
	folder := len(s.items) > 0 && s.items[0].kind == fs.ModeDir
	if folder {
		p.fail(s.items[0].local, errors.New("not a regular file"))
	}
	return folder
}

// findFolders finds out which folders the host has. It is not asked about what is below
// one that it has not.
func (p *put) findFolders() {
	for _, to := range p.folders {
		if p.fresh[path.Dir(to.name)] {
			p.fresh[to.name] = true
			continue
		}
		a, err := p.client.Stat(to.name)
		switch {
		case err != nil: // or it cannot be looked at, which making it tells
			p.fresh[to.name] = true
		case !a.IsDir():
			p.fail(to.name, errors.New("is no directory on the host"))
		default:
			to.was = a
			p.open(to)
		}
	}
}

// open lets us into a folder that the host had and whose mode does not, until
// finishFolders gives it the mode that it is to have.
func (p *put) open(to *placed) {
	if mode := to.was.Mode & 0o7777; mode&0o700 != 0o700 && !to.named && p.Scp == nil {
		p.client.Setstat(to.name, sftp.Attrs{Has: sftp.HasMode, Mode: mode | 0o700}).Wait() // or writing tells
		p.changed[to.name] = true
	}
}

// maxListed is how many names of a folder of the host are looked at for parts.
const maxListed = 1 << 17

// findLeftovers looks for what earlier copies have left in the folders of files.
func (p *put) findLeftovers(files []*placed) {
	folders := map[string]bool{}
	for _, to := range files {
		folders[p.nearest(to)] = true
	}
	each(&p.side, atOnce, slices.Collect(maps.Keys(folders)), func(folder string) {
		n := 0
		p.client.ReadDir(folder, func(e sftp.Entry) error { // a folder that cannot be listed has none
			p.left.add(folder, e.Name, e.Attrs.IsDir())
			if n++; n > maxListed {
				return errors.New("too many names")
			}
			return nil
		})
	})
}

// makeFolders makes the folders that are still missing.
func (p *put) makeFolders() {
	var missing []*placed
	var pending []sftp.Pending
	for _, to := range p.folders {
		if p.fresh[to.name] && !p.there[to.name] {
			perm := fs.FileMode(0o700)
			if p.Scp != nil {
				perm |= to.perm
			}
			missing, pending = append(missing, to), append(pending, p.client.Mkdir(to.name, perm))
		}
	}
	for i, to := range missing {
		p.change(to)
		err := pending[i].Wait()
		if err == nil {
			p.there[to.name] = true
			continue
		}
		delete(p.fresh, to.name)
		if a, failed := p.client.Stat(to.name); failed == nil && a.IsDir() { // another copy was quicker
			continue
		}
		p.fail(to.name, err)
	}
}

// finishFolders gives folders their modes, and their times, which the copying has
// changed. The innermost come first. A folder of another user that the host had keeps
// its own.
func (p *put) finishFolders() {
	if p.Scp != nil && !p.Scp.Preserve {
		return
	}
	var ours []*placed
	var pending []sftp.Pending
	for _, to := range slices.Backward(p.folders) {
		a := attrsOf(to.item)
		same := to.was.Mode&0o7777 == a.Mode && to.was.Mtime == a.Mtime && !p.changed[to.name]
		if p.there[to.name] || to.was.IsDir() && p.Scp == nil && !to.named && !same {
			ours, pending = append(ours, to), append(pending, p.client.Setstat(to.name, a))
		}
	}
	for i, wait := range pending {
		switch err := wait.Wait(); {
		case err == nil:
		case ours[i].was.IsDir() && errors.Is(err, fs.ErrPermission):
			p.add(func(t *tally) { t.foreign++ })
		default:
			p.fail(ours[i].name, err)
		}
	}
}

func attrsOf(it *item) sftp.Attrs {
	at := uint32(it.modified.Unix())
	return sftp.Attrs{Has: sftp.HasMode | sftp.HasTimes, Mode: it.mode(), Atime: at, Mtime: at}
}

// batch copies files, compares them, and puts them into place.
func (p *put) batch(files []*placed) {
	var small, big []*placed
	for _, to := range files {
		if to.size < large {
			small = append(small, to)
		} else {
			big = append(big, to)
		}
	}
	each(&p.side, atOnce, small, p.send)
	each(&p.side, 1, big, p.send)
	var parts []*placed
	for _, to := range files {
		if to.part != "" {
			parts = append(parts, to)
		}
	}
	p.place(p.verified(parts))
}

// send copies one file beside its place.
func (p *put) send(to *placed) {
	if p.Scp != nil {
		if err := p.overwrite(to); err != nil {
			p.fail(to.name, err)
		} else {
			p.arrived(to)
		}
		return
	}
	name, err := p.claim(to)
	switch {
	case err != nil:
	case !to.begun && to.size >= huge && p.pour(to, name):
	default:
		err = p.write(to, name)
	}
	if err != nil {
		p.fail(to.name, err)
		return
	}
	to.part = name
}

// claim is the name under which a file is written: that of a part of an earlier copy,
// which is ours alone by being renamed, or a new one. Other parts of the file are
// removed: its content was another.
func (p *put) claim(to *placed) (name string, err error) {
	p.change(to)
	own, err := p.partOf(to)
	if err != nil {
		return "", err
	}
	name = own.fresh()
	for _, old := range p.left.take(own) {
		switch {
		case old.folder:
			p.clear(own, old.name)
		case !to.begun && old.same && p.beginning(to, old.name) >= 0 && p.client.Rename(old.name, name).Wait() == nil:
			p.goOn(to, name)
		default:
			p.client.Remove(old.name)
		}
	}
	return name, nil
}

// goOn goes on with a part that has its name, or removes it.
func (p *put) goOn(to *placed, name string) {
	if from := p.beginning(to, name); from >= 0 {
		to.begun, to.from = true, from
	} else {
		p.client.Remove(name)
	}
}

// change says that something is made in the folder of a name.
func (p *put) change(to *placed) {
	p.mu2.Lock()
	defer p.mu2.Unlock()
	p.changed[path.Dir(to.name)] = true
}

// partOf is the part of a file. One of a file that is worth going on with says exactly
// what the content is, so that two contents are never mixed: the last change of the
// inode is nobody's to set.
func (p *put) partOf(to *placed) (part, error) {
	if to.size < large {
		return newPart(p.host, to.name), nil
	}
	id, err := to.identity()
	return newPart(p.host, to.name, id), err
}

// beginning is how much of the file a part is that can be ours alone, -1 if it is none.
func (p *put) beginning(to *placed, name string) int64 {
	a, err := p.client.Lstat(name)
	if err != nil || to.size < large || !a.IsRegular() || a.Size > uint64(to.size) || !p.isPrivate(path.Dir(name), a) {
		return -1
	}
	return int64(a.Size)
}

// needed leaves out the files that the host has already.
func (p *put) needed(files []*placed) (missing []*placed) {
	each(&p.side, atOnce, files, func(to *placed) {
		var err error
		if to.had, err = p.look(to); err != nil {
			p.fail(to.name, err)
		}
	})
	var same []*placed
	for _, to := range files {
		switch to.had {
		case another:
			missing = append(missing, to)
		case alike, altered:
			same = append(same, to)
		}
	}
	if p.Compare {
		var differ []*placed
		same, differ = p.compared(same)
		missing = append(missing, differ...)
	}
	each(&p.side, atOnce, same, func(to *placed) {
		if to.had == altered {
			if err := p.client.Setstat(to.name, attrsOf(to.item)).Wait(); err != nil {
				p.fail(to.name, err)
				return
			}
		}
		p.add(func(t *tally) { t.identical++ })
	})
	return missing
}

// look finds out what the host has under the name of a file.
func (p *put) look(to *placed) (had, error) {
	if p.fresh[path.Dir(to.name)] {
		return another, nil
	}
	a, err := p.client.Lstat(to.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return another, nil
	case err != nil:
		return unknown, err
	case a.IsDir():
		return unknown, errors.New("is a directory on the host")
	case !a.IsRegular() || a.Size != uint64(to.size):
		return another, nil
	}
	sameTime := a.Modified().Equal(to.modified)
	switch {
	case sameTime && a.Perm() == to.perm:
		return alike, nil
	case sameTime || p.Compare:
		return altered, nil
	}
	return another, nil
}

// compared tells by checksums which files are the same on the host.
func (p *put) compared(files []*placed) (same, differ []*placed) {
	list := make([]checked, len(files))
	for i, to := range files {
		list[i] = to.checked(to.name)
	}
	good, asked := p.sums(list)
	if !asked {
		var numbers []int
		for i := range list {
			numbers = append(numbers, i)
		}
		each(&p.side, ahead, numbers, func(i int) { good[i] = p.readBack(list[i]) == nil })
	}
	for i, to := range files {
		if good[i] {
			same = append(same, to)
		} else {
			differ = append(differ, to)
		}
	}
	return same, differ
}

// checked is what the file should be under a name on the host.
func (to *placed) checked(name string) checked {
	sum, err := to.cksum()
	if err != nil { // it changed: no comparison may hold
		sum++
	}
	return checked{name, sum, to.size}
}

// write writes a file under the name of its part, from where an earlier copy ended.
func (p *put) write(to *placed, part string) error {
	r, done, err := to.open()
	if err != nil {
		return err
	}
	defer done()
	how := uint32(sftp.Write | sftp.Create | sftp.Excl)
	if to.begun {
		how = sftp.Write
	}
	f, err := p.client.Open(part, how, 0o600)
	if err != nil {
		return err
	}
	err = p.stream(f, r, to)
	modes := attrsOf(to.item)
	if to.perm&0o400 == 0 { // cksum has to read it
		modes.Has &^= sftp.HasMode
	}
	set, closed := f.Setstat(modes), f.Close()
	err = firstError(err, set.Wait(), closed.Wait())
	if err != nil && !(to.size >= large && p.ctx.Err() != nil) && !p.isOver(err) {
		err = p.explain(err, path.Dir(to.name), to.size)
		p.client.Remove(part)
	}
	return err
}

// overwrite writes a file where it stands.
func (p *put) overwrite(to *placed) (failed error) {
	r, done, err := to.open()
	if err != nil {
		return err
	}
	defer done()
	f, err := p.client.Open(to.name, sftp.Write|sftp.Create|sftp.Trunc, to.perm)
	if err != nil {
		return err
	}
	err = p.stream(f, r, to)
	if p.Scp.Preserve {
		set := f.Setstat(attrsOf(to.item))
		defer func() { failed = firstError(failed, set.Wait()) }()
	}
	return firstError(err, f.Close().Wait())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// isPrivate tells whether only who owns a part can put something into its folder: in /tmp,
// or in the folder of another user, a part with our name may be somebody else's.
func (p *put) isPrivate(folder string, part sftp.Attrs) bool {
	p.mu2.Lock()
	defer p.mu2.Unlock()
	of, ok := p.inside[folder]
	if !ok {
		if a, err := p.client.Stat(folder); err == nil {
			of = a
		}
		p.inside[folder] = of
	}
	const needed = sftp.HasMode | sftp.HasOwner
	return of.Has&needed == needed && part.Has&sftp.HasOwner != 0 && of.Mode&0o022 == 0 && of.UID == part.UID
}

// stream sends the content, with many requests ahead of their replies.
func (p *put) stream(f *sftp.File, r io.ReaderAt, to *placed) error {
	buf := buffers.Get().(*chunk)
	defer buffers.Put(buf)
	var pending []sftp.Pending
	var failed error
	offset := to.from
	for failed == nil && offset < to.size && p.ctx.Err() == nil {
		n := int(min(to.size-offset, int64(min(p.client.Chunk(), len(buf)))))
		if got, err := r.ReadAt(buf[:n], offset); got < n {
			failed = errChanged
			if err != nil && !errors.Is(err, io.EOF) {
				failed = err
			}
			break
		}
		p.Limit.wait(p.ctx, n)
		if len(pending) == ahead {
			failed = pending[0].Wait()
			pending = pending[1:]
		}
		pending = append(pending, f.WriteAt(buf[:n], offset))
		offset += int64(n)
	}
	for _, wait := range pending {
		failed = firstError(failed, wait.Wait())
	}
	return firstError(failed, context.Cause(p.ctx))
}

// explain says what a failure means that the protocol has no name for.
func (p *put) explain(err error, folder string, size int64) error {
	if status, ok := errors.AsType[*sftp.StatusError](err); ok && status.Code == sftp.Failure {
		if free, known := p.client.Free(folder); known && free < uint64(size) {
			return fmt.Errorf("no space left on the host: %d bytes are free", free)
		}
	}
	return err
}

// verified compares the parts with the originals, and copies those once more that were
// gone on with and differ, or that are gone.
func (p *put) verified(parts []*placed) (good []*placed) {
	if p.NoVerify {
		return parts
	}
	var unsure []*placed
	var list []checked
	for _, to := range parts {
		if to.poured {
			good = append(good, to)
		} else {
			unsure, list = append(unsure, to), append(list, to.checked(to.part))
		}
	}
	if len(list) == 0 || p.over() {
		return good
	}
	right, _ := p.sums(list)
	for i, to := range unsure {
		var err error
		if !right[i] {
			err = p.readBack(list[i])
		}
		if err != nil && (to.begun || errors.Is(err, fs.ErrNotExist)) && !p.isOver(err) {
			err = p.again(to)
		}
		if err == nil {
			good = append(good, to)
			continue
		}
		if !p.isOver(err) {
			p.client.Remove(to.part)
		}
		p.fail(to.name, firstError(to.err, err))
	}
	return good
}

// again writes a file once more, from its beginning, and compares it.
func (p *put) again(to *placed) error {
	p.client.Remove(to.part)
	own, err := p.partOf(to)
	if err != nil {
		return err
	}
	to.part, to.begun, to.from = own.fresh(), false, 0
	if err := p.write(to, to.part); err != nil || p.NoVerify {
		return err
	}
	return p.readBack(to.checked(to.part))
}

// readBack compares a file on the host by reading it.
func (s *side) readBack(c checked) error {
	f, err := s.client.Open(c.name, sftp.Read, 0)
	if err != nil {
		return err
	}
	defer func() { f.Close().Wait() }()
	s.add(func(t *tally) { t.reread++ })
	sum := newCksum()
	if err := s.read(f, 0, c.size, func(p []byte, _ int64) error { _, err := sum.Write(p); return err }); err != nil {
		return err
	}
	if sum.sum() != c.sum {
		return errors.New("what has arrived is not what was sent")
	}
	return nil
}

// place gives complete files their names.
func (p *put) place(parts []*placed) {
	pending := make([]sftp.Pending, 0, len(parts))
	for _, to := range parts {
		if p.over() {
			return
		}
		if to.perm&0o400 == 0 {
			if err := p.client.Setstat(to.part, attrsOf(to.item)).Wait(); err != nil {
				pending = append(pending, sftp.Failed(err))
				continue
			}
		}
		pending = append(pending, p.client.Replace(to.part, to.name))
	}
	for i, wait := range pending {
		to := parts[i]
		err := wait.Wait()
		if errors.Is(err, fs.ErrNotExist) { // another copy of the same took the part
			if err = p.again(to); err == nil {
				err = p.client.Replace(to.part, to.name).Wait()
			}
		}
		if err != nil {
			p.fail(to.name, err)
			if !p.isOver(err) {
				p.client.Remove(to.part)
			}
			continue
		}
		p.arrived(to)
	}
}

// arrived counts a file that has its name.
func (p *put) arrived(to *placed) {
	p.add(func(t *tally) { t.copied++; t.bytes += to.size - to.from })
}

// link makes a symbolic link, in one step where something has its name.
func (p *put) link(to *placed) {
	if now, err := p.client.Readlink(to.name); err == nil && now == to.target {
		p.add(func(t *tally) { t.identical++ })
		return
	}
	p.change(to)
	own := newPart(p.host, to.name)
	for _, old := range p.left.take(own) {
		p.client.Remove(old.name)
	}
	part := own.fresh()
	err := p.client.Symlink(to.target, part)
	if err == nil {
		if err = p.client.Replace(part, to.name).Wait(); err != nil && !p.isOver(err) {
			p.client.Remove(part)
		}
	}
	if err != nil {
		p.fail(to.name, err)
		return
	}
	p.add(func(t *tally) { t.copied++ })
}
