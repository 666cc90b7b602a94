package copy

import (
	"cmp"
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

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sftp"
)

// Upload copies files of this machine to hosts.
type Upload struct {
	Options
	// Sources gives what a host gets, in general the same for all.
	Sources func(h host.Host) ([]*Source, error)
	// Again begins a command line that runs a command on the same hosts; "" where none is known.
	Again string
	Dest  string // a folder if it ends with a slash, exists as one, or there are many sources; %h is the host's name
}

// Dialogue copies to one host; see fleet.Dialogue.
func (u *Upload) Dialogue(ctx context.Context, h host.Host, ch fleet.Channel) error {
	sources, err := u.Sources(h)
	if err != nil {
		return fmt.Errorf("here: %w", err)
	}
	p := &put{side: side{Options: u.Options, ctx: ctx, host: h.String(), ch: ch}, fresh: map[string]bool{}, there: map[string]bool{}, inside: map[string]sftp.Attrs{}, changed: map[string]bool{}}
	closing, err := p.connect()
	if err != nil {
		return err
	}
	defer closing()
	named := fleet.ForHost(u.Dest, h.Name)
	dest, err := p.remote(named)
	if err == nil {
		err = p.all(sources, dest)
	}
	switch {
	case err == nil:
		return p.verdict()
	case p.isOver(err):
		return err
	}
	hint := fault.HintOf(err)
	if errors.Is(err, errNoFolder) {
		hint = u.makeFolder(named != u.Dest)
	}
	return fault.WithHint(fmt.Errorf("%s: %w", named, plain(err)), hint)
}

// makeFolder says how the hosts get the folder that they have not, the same for all of them.
func (u *Upload) makeFolder(perHost bool) string {
	if u.Again == "" || strings.HasPrefix(u.Dest, "~") && !strings.HasPrefix(u.Dest, "~/") {
		return "make it first, with mkdir -p"
	}
	line := u.Again
	if perHost {
		line += " --per-host"
	}
	return "make it first: " + line + " -- mkdir -p " + shell.Word(strings.TrimPrefix(u.Dest, "~/"))
}

// put is the copy to one host.
type put struct {
	side
	folders []*placed             // those above before those below
	fresh   map[string]bool       // folders that the host did not have: nothing of others is in them
	there   map[string]bool       // of those, the ones that are there by now
	noTar   bool                  // the host has no tar that we can run
	noCat   bool                  // or cat did not do what it should
	known   sync.Mutex            // of what is known of folders, which follows
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

// isNoFile says that a folder is left out.
func (p *put) isNoFile(s *Source) bool {
	folder := len(s.items) > 0 && s.items[0].kind == fs.ModeDir
	if folder {
		p.fail(s.items[0].local, errors.New("not a regular file"))
	}
	return folder
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

func attrsOf(it *item) sftp.Attrs {
	at := uint32(it.modified.Unix())
	return sftp.Attrs{Has: sftp.HasMode | sftp.HasTimes, Mode: it.mode(), Atime: at, Mtime: at}
}

// batch copies files, compares them, and puts them into place.
func (p *put) batch(files []*placed) {
	moved(&p.side, files, func(to *placed) int64 { return to.size }, p.send)
	p.place(p.verified(slices.DeleteFunc(slices.Clone(files), func(to *placed) bool { return to.part == "" })))
}

// send copies one file beside its place.
func (p *put) send(to *placed) {
	if p.Scp != nil {
		if err := p.write(to, to.name); err != nil {
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
	return p.left.claim(own, func(old, name string) bool {
		return p.beginning(to, old) >= 0 && p.client.Rename(old, name).Wait() == nil && p.goOn(to, name)
	}, p.discard), nil
}

// goOn goes on with a part that has its name, or removes it.
func (p *put) goOn(to *placed, name string) bool {
	from := p.beginning(to, name)
	if from < 0 {
		p.client.Remove(name)
		return false
	}
	to.begun, to.from = true, from
	return true
}

// discard removes what is of no use any more.
func (p *put) discard(own part, old leftover) {
	if old.folder {
		p.clear(own, old.name)
	} else {
		p.client.Remove(old.name)
	}
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

// write writes a file: as scp does it where it stands, else under the name of its part,
// from where an earlier copy ended.
func (p *put) write(to *placed, name string) error {
	r, done, err := to.open()
	if err != nil {
		return err
	}
	defer done()
	how, perm := uint32(sftp.Write|sftp.Create|sftp.Excl), fs.FileMode(0o600)
	switch {
	case p.Scp != nil:
		how, perm = sftp.Write|sftp.Create|sftp.Trunc, to.perm
	case to.begun:
		how = sftp.Write
	}
	f, err := p.client.Open(name, how, perm)
	if err != nil {
		return err
	}
	err = p.stream(f, r, to)
	modes := attrsOf(to.item)
	if p.Scp == nil && to.perm&0o400 == 0 { // cksum has to read it
		modes.Has &^= sftp.HasMode
	}
	var ends []sftp.Pending
	if p.Scp == nil || p.Scp.Preserve {
		ends = append(ends, f.Setstat(modes))
	}
	for _, end := range append(ends, f.Close()) {
		err = cmp.Or(err, end.Wait())
	}
	if p.Scp == nil && err != nil && !(to.size >= large && p.ctx.Err() != nil) && !p.isOver(err) {
		err = p.explain(err, path.Dir(to.name), to.size)
		p.client.Remove(name)
	}
	return err
}

// stream sends the content, with many requests ahead of their replies.
func (p *put) stream(f *sftp.File, r io.ReaderAt, to *placed) error {
	buf := buffers.Get().(*chunk)
	defer buffers.Put(buf)
	var pending []sftp.Pending
	var failed error
	offset := to.from
	for failed == nil && offset < to.size && p.ctx.Err() == nil {
		n := int(min(to.size-offset, int64(p.Limit.piece(min(p.client.Chunk(), len(buf))))))
		if got, err := (limited{r, &p.side}).ReadAt(buf[:n], offset); got < n {
			failed = errChanged
			if err != nil && !errors.Is(err, io.EOF) {
				failed = err
			}
			break
		}
		if len(pending) == ahead {
			failed = pending[0].Wait()
			pending = pending[1:]
		}
		pending = append(pending, f.WriteAt(buf[:n], offset))
		offset += int64(n)
	}
	for _, wait := range pending {
		failed = cmp.Or(failed, wait.Wait())
	}
	return cmp.Or(failed, context.Cause(p.ctx))
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
		err := p.untilOurs(wait.Wait(), func() error {
			if err := p.again(to); err != nil {
				return err
			}
			return p.client.Replace(to.part, to.name).Wait()
		})
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
	part := p.left.claim(newPart(p.host, to.name), nil, p.discard)
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
