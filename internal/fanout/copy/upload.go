package copy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sftp"
)

// Upload copies files of this machine to hosts.
type Upload struct {
	Options
	// Sources returns the files for a host, usually the same for all.
	Sources func(h host.Host) ([]*Source, error)
	Placing
	Deleting
	Dest string // a directory if it ends with a slash, exists as one, or there are many sources; with tokens
	Then string // a command for sh on hosts where something has changed; "" = none
}

// Dialogue copies to one host; see fleet.Dialogue.
func (u *Upload) Dialogue(ctx context.Context, h host.Host, ch fleet.Channel) error {
	sources, err := u.Sources(h)
	if err != nil {
		return fmt.Errorf("here: %w", err)
	}
	p := &put{Placing: u.Placing, Deleting: u.Deleting, has: map[string]bool{}, side: side{Options: u.Options, ctx: ctx, host: h.String(), ch: ch}, fresh: map[string]bool{}, there: map[string]bool{}, inside: map[string]sftp.Attrs{}, changed: map[string]bool{}, asked: map[string]func() (sftp.Attrs, error){}}
	closing, err := p.connect()
	if err != nil {
		return err
	}
	defer closing()
	named := u.Naming.of(u.Dest, h)
	dest, err := p.remote(named)
	if err == nil && u.Then != "" {
		if _, err = p.shell(query{program: ":"}); err != nil {
			err = fmt.Errorf("nothing is copied, because --then cannot run its command: %w", err)
		}
	}
	if err == nil {
		err = p.all(sources, dest)
	}
	p.tidy()
	switch {
	case err == nil:
		return p.conclude(u.Then)
	case p.isOver(err):
		return err
	}
	hint := fault.HintOf(err)
	if errors.Is(err, errNoDirectory) {
		hint = "make it first, or let --mkdir do it"
	}
	return fault.WithHint(fmt.Errorf("%s: %w", cmp.Or(named, "."), plain(err)), hint)
}

// put is the copy to one host.
type put struct {
	side
	Placing
	Deleting
	owner       *owner                // of files; nil: the account
	has         map[string]bool       // names that the sources have, true if they are copied
	directories []*placed             // parents before children
	fresh       map[string]bool       // directories that the host did not have: nothing of others is in them
	there       map[string]bool       // of those, the existing ones by now
	noTar       bool                  // the host has no tar that we can run
	noCat       bool                  // or cat did not work properly
	known       sync.Mutex            // guards the facts about directories, below
	inside      map[string]sftp.Attrs // directories of parts, memo
	changed     map[string]bool       // directories that are not as they were
	made        unplaced
	asked       map[string]func() (sftp.Attrs, error) // attributes of names, before they are needed
	listing     sync.WaitGroup                        // leftovers are looked for

	learning sync.Mutex
	learned  bool // how the host treats links
}

// placed is an item with its name on the host.
type placed struct {
	*item
	name string
	part string // where it was written, "" if it need not be put into place
	from int64  // offset at which it is continued
	kept int64  // how much of it was there before this copy
	had  had

	exists bool       // something has its name
	isLink bool       // which is a link by Lstat
	hidden bool       // a link has its name, which Lstat does not say
	begun  bool       // the part is there
	named  bool       // the directory that the user named: its content is copied, not the directory
	was    sftp.Attrs // of the file or directory that the host had
	poured bool       // it was compared when it had come
	opened bool       // it was opened for writing: the file with its name is ours

	ending func() error // waits for the last answers about what was written
}

func (p *put) all(sources []*Source, dest string) error {
	defer p.listing.Wait()
	if p.Owner != "" {
		if err := p.findOwner(); err != nil {
			return err
		}
	}
	if p.AsRoot {
		var err error
		if dest, err = p.settled(dest); err != nil {
			return err
		}
	}
	into, err := p.isDirectory(sources, dest)
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
		for _, name := range source.left {
			p.has[top+"/"+name] = false
		}
		for _, it := range source.items {
			to := &placed{item: it, name: top, named: into && it.rel == "" && source.base == "."}
			if it.rel != "" {
				to.name = top + "/" + it.rel
			}
			if p.Delete {
				p.has[to.name] = true
			}
			switch it.kind {
			case fs.ModeDir:
				p.directories = append(p.directories, to)
			case fs.ModeSymlink:
				links = append(links, to)
			default:
				files = append(files, to)
			}
		}
	}
	var roots map[string]string
	if p.Delete {
		if roots, err = p.rootsOf(); err != nil {
			return err
		}
	}
	if err := p.findDirectories(); err != nil {
		return err
	}
	needed := p.neededLinks(links)
	if p.Scp == nil {
		files = p.needed(files)
	}
	if p.Dry {
		p.forecast(files, needed)
	} else {
		p.bring(files, needed)
	}
	if p.Delete {
		p.delete(dest, roots)
	}
	p.finishDirectories()
	return nil
}

// bring copies the missing files and links.
func (p *put) bring(files []*placed, needed []*link) {
	if p.Scp == nil {
		if len(files) > 0 && !p.NoVerify {
			p.begin(1)
		}
		p.openLanes(files)
		p.findLeftovers(files)
		files = p.packed(files)
	}
	p.makeDirectories()
	learned := p.learnLinks(needed)
	for len(files) > 0 && !p.over() {
		n := min(len(files), batch)
		p.batch(files[:n])
		files = files[n:]
	}
	p.listing.Wait()
	p.makeLinks(needed, learned)
}

// isNoFile reports whether a source is a directory, and counts it as failed.
func (p *put) isNoFile(s *Source) bool {
	directory := len(s.items) > 0 && s.items[0].kind == fs.ModeDir
	if directory {
		p.fail(s.items[0].local, errors.New("not a regular file"))
	}
	return directory
}

// maxListed is how many names of a directory of the host are checked for parts.
const maxListed = 1 << 17

// findLeftovers begins to list the directories of files that are to be written: it notes parts of
// earlier copies there, and links in the place of files.
func (p *put) findLeftovers(missing []*placed) {
	directories, files := map[string]bool{}, map[string]*placed{}
	for _, to := range missing {
		directories[p.nearest(to)] = true
		files[to.name] = to
	}
	p.listing.Go(func() {
		each(&p.side, p.atOnce(), slices.Collect(maps.Keys(directories)), func(directory string) {
			n := 0
			p.client.ReadDir(directory, func(e sftp.Entry) error { // a directory that cannot be listed has none
				if name := path.Join(directory, e.Name); !p.made.has(name) {
					p.left.add(directory, e.Name, e.Attrs.IsDir())
				}
				if e.Attrs.IsLink() {
					if to := files[path.Join(directory, e.Name)]; to != nil {
						to.hidden = !to.isLink
					}
				}
				if n++; n > maxListed {
					return errors.New("too many names")
				}
				return nil
			})
			own := p.stageIn(directory)
			for _, old := range p.left.takeDirectories(own) {
				p.clear(own, old.name)
			}
		})
	})
}

// batch copies files, compares them, and puts them into place.
func (p *put) batch(files []*placed) {
	moved(&p.side, files, func(to *placed) int64 { return to.size }, p.send)
	parts := p.verified(slices.DeleteFunc(slices.Clone(files), func(to *placed) bool { return to.part == "" }))
	parts = slices.DeleteFunc(parts, func(to *placed) bool {
		err := p.orDrop(to, to.part, to.ended())
		if err != nil {
			p.fail(to.name, err)
		}
		return err != nil
	})
	p.listing.Wait()
	for _, to := range files {
		own := newPart(p.host, to.name)
		for _, old := range p.left.take(own) {
			p.discard(own, old)
		}
	}
	p.place(parts)
}

// send copies one file next to its place.
func (p *put) send(to *placed) {
	if p.Scp != nil {
		if err := p.written(to, to.name, sftp.Write|sftp.Create|sftp.Trunc); err != nil {
			p.fail(to.name, err)
		} else {
			p.arrived(to)
		}
		return
	}
	if to.size >= large && !p.NoVerify {
		go to.cksum() // while it is sent
	}
	name, err := p.claim(to)
	switch {
	case err != nil:
	case !to.begun && to.size >= huge && p.wanted(to.size) == 1 && p.pour(to, name):
	default:
		err = p.writePart(to, name)
	}
	if to.part = name; to.size >= large { // another copy may take it before it is open
		err = p.untilOurs(err, func() error { return p.again(to) })
	}
	if err != nil {
		to.part = ""
		p.fail(to.name, err)
	}
}

// claim returns the name under which a file is written: that of a part of an earlier copy, which
// becomes ours by being renamed, or a new one. Other parts of the file are removed: their content
// differs.
func (p *put) claim(to *placed) (name string, err error) {
	p.change(to)
	own, err := p.partOf(to)
	if err != nil {
		return "", err
	}
	if to.size < large { // it is not continued: others are removed when it has come
		name = own.fresh()
		p.made.add(name, made{})
		return name, nil
	}
	p.listing.Wait()
	own.lanes = own.holed != "" && p.wanted(to.size) > 1
	name = p.left.claim(own, func(old, name string) bool {
		lacks := int64(0)
		if own.hasHoles(old) {
			lacks = mostAhead
		}
		if p.size(to, old) < 0 || p.client.Rename(old, name).Wait() != nil || !p.goOn(to, name, lacks) {
			return false
		}
		to.kept = to.from
		return true
	}, p.discard)
	p.made.add(name, made{keep: to.size >= large})
	return name, nil
}

// goOn continues a part with its name, of whose end pieces may lack, or removes it.
func (p *put) goOn(to *placed, name string, lacks int64) bool {
	size := p.size(to, name)
	from := max(0, size-lacks)
	// A complete part has its final mode, which may forbid writing. A refusal shows when it is
	// opened.
	change := sftp.Attrs{Has: sftp.HasMode, Mode: uint32(to.partPerm())}
	if lacks > 0 { // its size is to say again how much of it is there
		change.Has, change.Size = change.Has|sftp.HasSize, uint64(from)
	}
	if size < 0 || p.client.Setstat(name, change).Wait() != nil && lacks > 0 {
		p.client.Remove(name)
		return false
	}
	to.begun, to.from = true, from
	return true
}

// partOf returns the part of a file. The name of one that is worth resuming identifies the content
// exactly, so that two contents are never mixed: nobody can set the last change of the inode.
func (p *put) partOf(to *placed) (part, error) {
	if to.size < large {
		return newPart(p.host, to.name), nil
	}
	id, err := to.identity()
	own := newPart(p.host, to.name, id)
	own.holed = contentOf(id, "lanes")
	return own, err
}

// size returns the size of a part that can be ours alone, -1 if it cannot.
func (p *put) size(to *placed, name string) int64 {
	a, err := p.client.Lstat(name)
	if err != nil || to.size < large || !a.IsRegular() || a.Size > uint64(to.size) || !p.isPrivate(path.Dir(name), a) {
		return -1
	}
	return int64(a.Size)
}

// writePart writes a file under the name of its part, from the end of an earlier copy on.
func (p *put) writePart(to *placed, name string) error {
	how := uint32(sftp.Write | sftp.Create | sftp.Excl)
	if to.begun {
		how = sftp.Write
	}
	p.made.add(name, made{keep: to.size >= large})
	return p.orDrop(to, name, p.write(to, name, how))
}

// orDrop removes the part of a file that cannot be written, and explains why.
func (p *put) orDrop(to *placed, name string, err error) error {
	if err != nil && !(to.size >= large && p.ctx.Err() != nil) && !p.isOver(err) {
		err = p.explain(err, path.Dir(to.name), to.size)
		p.drop(name)
	}
	return err
}

// partPerm is the mode of a new part, which cksum has to read: if the host sets no modes, the file
// keeps it, as scp's keeps its first mode.
func (to *placed) partPerm() fs.FileMode { return to.perm | 0o600 }

// written writes a file, and waits for all answers.
func (p *put) written(to *placed, name string, how uint32) error {
	return cmp.Or(p.write(to, name, how), to.ended())
}

// ended waits for the outstanding answers to writes.
func (to *placed) ended() error {
	ending := to.ending
	if to.ending = nil; ending == nil {
		return nil
	}
	return ending()
}

// write writes a file, opened with these flags. The content is on the host then; ended says whether
// the rest is.
func (p *put) write(to *placed, name string, how uint32) error {
	r, done, err := to.open()
	if err != nil {
		return err
	}
	defer done()
	perm := to.perm
	if p.Scp == nil {
		perm = to.partPerm()
	}
	client := p.client
	if to.size < large {
		client = p.turn()
	}
	f, err := p.side.open(client, name, how, perm)
	switch {
	case errors.Is(err, fs.ErrPermission) && how&sftp.Excl != 0:
		return fmt.Errorf("%w: the directory %s must be writable, where a file is written before it gets its name", err, path.Dir(name))
	case errors.Is(err, fs.ErrNotExist) && how&sftp.Excl != 0:
		return fmt.Errorf("%w: its directory is not there; make it first, or let --mkdir do it", err)
	case err != nil:
		return err
	}
	to.opened = true
	modes := p.attrsOf(to.item)
	if p.Scp == nil && to.perm&0o400 == 0 { // cksum has to read it
		modes.Has &^= sftp.HasMode
	}
	var set, closed sftp.Pending
	dress := p.Scp == nil && name != to.name || p.Scp != nil && p.Scp.Preserve // or inPlace does it
	beside, err := p.stream(f, name, r, to, func() {
		if dress {
			set = f.Setstat(modes)
		}
		closed = f.Close()
		client.Flush()
	})
	to.ending = func() error {
		beside()
		if !dress {
			return closed.Wait()
		}
		refused, err := set.Wait(), closed.Wait()
		if isStatus(refused) { // some know only the other request
			refused = p.client.Setstat(name, modes).Wait()
		}
		return cmp.Or(err, p.dressed(0, refused))
	}
	if err != nil {
		to.ended()
	}
	return err
}

// explain describes a failure for which the protocol has no name.
func (p *put) explain(err error, directory string, size int64) error {
	if isFailure(err) {
		if free, known := p.client.Free(directory); known && free < uint64(size) {
			return fmt.Errorf("no space left on the host: %d bytes are free", free)
		}
	}
	return err
}

// arrived counts a file that has its name.
func (p *put) arrived(to *placed) {
	p.add(func(t *tally) { t.copied++; t.bytes += to.size - to.kept })
}
