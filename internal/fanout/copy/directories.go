package copy

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sshpace/internal/ssh/sftp"
)

// errNoDirectory says that sources should go into a directory that the host does not have.
var errNoDirectory = errors.New("there is no such directory on the host")

// isDirectory reports whether the sources go into dest, not in its place: a directory always keeps
// its name there, so that a second copy has the same result as the first one. With scp it does so
// only if dest exists.
func (p *put) isDirectory(sources []*Source, dest string) (bool, error) {
	directory := p.Scp == nil && sources[0].isNamedDirectory()
	if p.Mkdir {
		above := dest
		if !directory && !strings.HasSuffix(dest, "/") && len(sources) == 1 {
			above = path.Dir(dest)
		}
		if err := p.makeAll(path.Clean(above)); err != nil {
			return false, err
		}
	}
	a, err := p.client.Stat(dest)
	switch {
	case err == nil && a.IsDir():
		return true, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	case !directory && !strings.HasSuffix(dest, "/") && len(sources) == 1:
		return false, nil
	case err == nil:
		return false, errors.New("is not a directory on the host")
	case !directory || strings.HasSuffix(dest, "/") || len(sources) > 1:
		return false, errNoDirectory
	}
	if err = p.mkdir(dest); errors.Is(err, fs.ErrNotExist) {
		err = errNoDirectory
	}
	return true, err
}

// mkdir makes a directory for all, as far as the account's umask lets.
func (p *put) mkdir(name string) error {
	err := p.client.Mkdir(name, 0o777).Wait()
	if a, failed := p.client.Stat(name); err != nil && failed == nil && a.IsDir() { // another copy was quicker
		err = nil
	}
	return err
}

// makeAll makes a directory and those above it, as far as they are missing.
func (p *put) makeAll(name string) error {
	if _, err := p.client.Stat(name); !errors.Is(err, fs.ErrNotExist) || name == path.Dir(name) {
		return err
	}
	if err := p.makeAll(path.Dir(name)); err != nil {
		return err
	}
	return p.mkdir(name)
}

// findDirectories finds the directories that the host has. It does not ask about directories below
// a missing one. Root enters none that is not its own.
func (p *put) findDirectories() error {
	for _, to := range p.directories {
		if p.fresh[path.Dir(to.name)] {
			p.fresh[to.name] = true
			continue
		}
		examine := p.client.Stat
		if p.AsRoot {
			examine = p.client.Lstat
		}
		a, err := examine(to.name)
		switch {
		case err != nil: // or it cannot be examined: making it shows that
			p.fresh[to.name] = true
		case p.AsRoot && p.guarded(to.name, a, false) != nil:
			return p.guarded(to.name, a, false)
		case !a.IsDir():
			p.fail(to.name, errors.New("is not a directory on the host"))
		default:
			to.was = a
			p.open(to)
		}
	}
	return nil
}

// open makes a directory of the host accessible whose mode excludes us, until finishDirectories
// sets its final mode.
func (p *put) open(to *placed) {
	if mode := to.was.Mode & 0o7777; mode&0o700 != 0o700 && !to.named && p.Scp == nil {
		p.client.Setstat(to.name, sftp.Attrs{Has: sftp.HasMode, Mode: mode | 0o700}).Wait() // or writing shows it
		p.changed[to.name] = true
	}
}

// unfinished is the mode of a new directory until it is complete, and for good if the host sets no
// modes: nobody else can put anything into it.
func unfinished(perm fs.FileMode) fs.FileMode { return perm&^0o022 | 0o700 }

// makeDirectories makes the directories that are still missing.
func (p *put) makeDirectories() {
	var missing []*placed
	var pending []sftp.Pending
	for _, to := range p.directories {
		if p.fresh[to.name] && !p.there[to.name] {
			perm := unfinished(to.perm)
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

// finishDirectories sets the modes of directories, and their times, which the copying has changed.
// The innermost come first. A directory of another user keeps its own.
func (p *put) finishDirectories() {
	if p.Scp != nil && !p.Scp.Preserve {
		return
	}
	var ours []*placed
	var pending []sftp.Pending
	for _, to := range slices.Backward(p.directories) {
		a := p.attrsOf(to.item)
		same := to.was.Mode&0o7777 == a.Mode && to.was.Mtime == a.Mtime && !p.changed[to.name]
		if p.there[to.name] || to.was.IsDir() && p.Scp == nil && !to.named && !same {
			ours, pending = append(ours, to), append(pending, p.client.Setstat(to.name, a))
		}
	}
	for i, wait := range pending {
		if err := p.dressed(fs.ModeDir, wait.Wait()); err != nil {
			p.fail(ours[i].name, err)
		}
	}
}

// change records that something is made in the directory of a name.
func (p *put) change(to *placed) {
	p.known.Lock()
	defer p.known.Unlock()
	p.changed[path.Dir(to.name)] = true
}

// isPrivate reports whether only the owner of a part can put something into its directory: in /tmp,
// or in the directory of another user, a part with our name may be somebody else's.
func (p *put) isPrivate(directory string, part sftp.Attrs) bool {
	p.known.Lock()
	defer p.known.Unlock()
	of, ok := p.inside[directory]
	if !ok {
		if a, err := p.client.Stat(directory); err == nil {
			of = a
		}
		p.inside[directory] = of
	}
	const needed = sftp.HasMode | sftp.HasOwner
	return of.Has&needed == needed && part.Has&sftp.HasOwner != 0 && of.Mode&0o022 == 0 && of.UID == part.UID
}
