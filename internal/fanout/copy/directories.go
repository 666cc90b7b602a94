package copy

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

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
	asked := p.client.AskStat(dest)
	p.askAhead(sources, dest)
	a, err := asked.Wait()
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
	if _, above := p.client.Stat(path.Dir(path.Clean(dest))); p.Dry && !p.Mkdir && above != nil {
		return false, errNoDirectory
	}
	if err = p.mkdir(dest); errors.Is(err, fs.ErrNotExist) {
		err = errNoDirectory
	}
	return true, err
}

// mkdir makes a directory, with the modes that the account's umask leaves.
func (p *put) mkdir(name string) error {
	err := p.client.Mkdir(name, 0o777).Wait()
	if a, failed := p.client.Stat(name); err != nil && failed == nil && a.IsDir() { // another copy was quicker
		err = nil
	}
	if err == nil {
		p.add(func(t *tally) { t.remade++ })
		p.would("make directory", name)
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

// askAhead asks about the names that sources may get, before it is known whether dest is a
// directory.
func (p *put) askAhead(sources []*Source, dest string) {
	ask := func(s *Source, name string) {
		switch {
		case len(s.items) == 0 || len(p.asked) >= leastAtOnce:
		case s.items[0].kind == fs.ModeDir:
			p.asked[name] = sync.OnceValues(p.examine(name).Wait)
		case s.items[0].kind == 0 && p.Scp == nil:
			p.asked[name] = sync.OnceValues(p.client.AskLstat(name).Wait)
		}
	}
	for _, s := range sources {
		ask(s, path.Join(dest, s.base))
	}
	if first := sources[0]; len(sources) == 1 && len(first.items) > 0 && !first.isNamedDirectory() {
		ask(first, path.Clean(dest))
	}
}

// lstat returns the attributes of a name, which may have been asked for before.
func (p *put) lstat(name string) (sftp.Attrs, error) {
	if asked := p.asked[name]; asked != nil {
		return asked()
	}
	return p.client.Lstat(name)
}

// examine begins to ask about a directory. Root follows no links.
func (p *put) examine(name string) sftp.PendingAttrs {
	if p.AsRoot {
		return p.client.AskLstat(name)
	}
	return p.client.AskStat(name)
}

// findDirectories finds the directories that the host has, those of a level at once. It does not
// ask about directories below a missing one. Root enters none that is not its own.
func (p *put) findDirectories() error {
	for left := p.directories; len(left) > 0; {
		var asked, later []*placed
		var answers []func() (sftp.Attrs, error)
		waits := map[string]bool{}
		for _, to := range left {
			switch above := path.Dir(to.name); {
			case p.fresh[above]:
				p.fresh[to.name] = true
			case waits[above]:
				later = append(later, to)
				waits[to.name] = true
			default:
				answer := p.asked[to.name]
				if answer == nil {
					answer = p.examine(to.name).Wait
				}
				asked, answers = append(asked, to), append(answers, answer)
				waits[to.name] = true
			}
		}
		for i, to := range asked {
			a, err := answers[i]()
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
		left = later
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
			p.add(func(t *tally) { t.remade++ })
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
			if to.was.IsDir() && to.was.Mode&0o7777 != a.Mode {
				p.add(func(t *tally) { t.remade++ })
			}
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
