package copy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"sshpace/internal/base/sched"
	"sshpace/internal/ssh/sftp"
)

// place gives complete files their names.
func (p *put) place(parts []*placed) {
	parts = p.prepared(parts)
	pending := make([]sftp.Pending, 0, len(parts))
	for _, to := range parts {
		if p.over() {
			return
		}
		if to.hidden { // a rename would go where the link leads
			pending = append(pending, sftp.Failed(&sftp.StatusError{Code: sftp.Failure}))
			continue
		}
		pending = append(pending, p.client.Replace(to.part, to.name))
	}
	for i, wait := range pending {
		to := parts[i]
		err := p.untilOurs(wait.Wait(), func() error {
			if err := p.anew(to); err != nil {
				return err
			}
			return p.client.Replace(to.part, to.name).Wait()
		})
		if err = p.otherwise(to, err); err != nil {
			p.fail(to.name, err)
		} else {
			p.arrived(to)
		}
	}
}

// prepared makes complete files ready for their names.
func (p *put) prepared(parts []*placed) []*placed {
	ready := make([]bool, len(parts))
	sched.Do(p.atOnce(), len(parts), func(i int) {
		to := parts[i]
		if p.over() {
			return
		}
		err := p.untilOurs(p.prepare(to), func() error { return p.anew(to) })
		if ready[i] = err == nil; !ready[i] {
			if !p.isOver(err) {
				p.drop(to.part)
			}
			p.fail(to.name, err)
		}
	})
	var list []*placed
	for i, to := range parts {
		if ready[i] {
			list = append(list, to)
		}
	}
	return list
}

// prepare gives a complete file its final attributes, and keeps the file in its place.
func (p *put) prepare(to *placed) error {
	if to.perm&0o400 == 0 { // so far cksum had to read it
		if err := p.dressed(0, p.client.Setstat(to.part, p.attrsOf(to.item)).Wait()); err != nil {
			return err
		}
	}
	if err := p.confirm(to, to.part); err != nil {
		return err
	}
	return p.backup(to.name)
}

// anew writes a file again, and makes it ready.
func (p *put) anew(to *placed) error {
	if err := p.again(to); err != nil {
		return err
	}
	return p.prepare(to)
}

// otherwise puts a complete part into place if the host does not rename it onto an existing file,
// or not at all.
func (p *put) otherwise(to *placed, refused error) error {
	if refused == nil {
		p.made.done(to.part)
	}
	if !isStatus(refused) {
		return refused
	}
	now, err := p.client.Lstat(to.name)
	isNew := errors.Is(err, fs.ErrNotExist) && !to.hidden
	written := func() error {
		err := p.client.Rename(to.part, to.name).Wait()
		if err == nil {
			p.made.done(to.part)
		} else if isStatus(err) {
			err = p.inPlace(to, true)
		}
		return err
	}
	switch {
	case errors.Is(refused, fs.ErrNotExist):
	case isNew:
		return p.inPlace(to, true)
	case p.instead(to.name, written) == nil:
		return nil
	case p.isOurs(to, now):
		return p.inPlace(to, false)
	}
	p.drop(to.part)
	if isFailure(refused) {
		return errors.New("the host does not replace it and gives no reason; it may be a mount point")
	}
	return fmt.Errorf("the host does not replace it: %w", refused)
}

// instead puts something in the place of a file or link, at a host that renames nothing onto one:
// that goes aside, and comes back if nothing can take its place.
func (p *put) instead(name string, put func() error) error {
	own := newPart(p.host, name)
	was, err := p.client.Readlink(name) // at some hosts Lstat follows links
	isLink := err == nil
	var back func() error
	if isLink {
		if err = p.learnIn(own); err == nil {
			err = p.client.Remove(name)
		}
		back = func() error { return p.client.Symlink(was, name) }
	} else if now, failed := p.client.Lstat(name); failed != nil || !now.IsRegular() {
		err = cmp.Or(failed, errSpecial)
	} else {
		was = own.aside().fresh()
		err = p.client.Rename(name, was).Wait()
		back = func() error { return p.client.Rename(was, name).Wait() }
	}
	if err != nil {
		return err
	}
	if err = put(); err != nil {
		if failed := back(); failed != nil {
			err = fmt.Errorf("%w; the old file, %s, cannot be put back: %w", err, was, failed)
		}
		return err
	}
	if !isLink {
		p.made.add(was, made{})
		p.drop(was)
	}
	return nil
}

// isOurs reports whether nobody else can have replaced the file.
func (p *put) isOurs(to *placed, now sftp.Attrs) bool {
	part, err := p.client.Lstat(to.part)
	return err == nil && now.IsRegular() && now.Has&sftp.HasOwner != 0 && now.UID == part.UID && p.isPrivate(path.Dir(to.name), part)
}

// inPlace overwrites a file, as scp does: if the host cannot rename, or another file system is
// mounted there. The part is complete, and stays until the file is, too. Only then the file gets
// its time: otherwise the next copy would consider it equal, and not look for the part.
func (p *put) inPlace(to *placed, isNew bool) error {
	how := uint32(sftp.Write | sftp.Trunc)
	if isNew {
		how = sftp.Write | sftp.Create | sftp.Excl
	}
	to.from, to.opened = 0, false
	err := p.written(to, to.name, how)
	if err == nil && !p.NoVerify {
		err = p.readBack(to.checked(to.name))
	}
	switch {
	case err != nil && !to.opened:
		return err
	case err != nil && isNew:
		p.client.Remove(to.name)
		return err
	case err != nil:
		p.made.done(to.part)
		return fmt.Errorf("%w; it could only be written in place, and is complete as %s", err, to.part)
	}
	p.add(func(t *tally) { t.inPlace++ })
	p.drop(to.part)
	return p.dressed(0, p.client.Setstat(to.name, p.attrsOf(to.item)).Wait())
}
