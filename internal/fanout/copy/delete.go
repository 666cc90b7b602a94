package copy

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/unit"
	"sshpace/internal/ssh/sftp"
)

// Deleting sets which names a copy removes from the directories that it copies to a host.
type Deleting struct {
	Delete    bool // names that the sources lack
	MaxDelete int  // names of a host; if there are more, none is deleted
}

// removal removes names that the sources lack from a host, after everything else was copied.
type removal struct {
	*put
	dest   string            // names are compared with patterns from here on
	roots  map[string]string // copied directories, with their names without links
	mounts map[string]bool   // directories in which something is mounted; nil: unknown
	copied map[string]int    // how many names of a directory were copied

	mu     sync.Mutex
	doomed map[string]bool // names, and whether they are directories
}

// rootsOf returns the directories in which something may be deleted, and refuses links, and
// directories that hold home directories.
func (p *put) rootsOf() (map[string]string, error) {
	roots := map[string]string{}
	for _, to := range p.directories {
		if to.rel != "" {
			continue
		}
		a, err := p.client.Lstat(to.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		real, failed := p.client.RealPath(to.name).Wait()
		above, home := path.Dir(real), p.home()
		switch {
		case err != nil || failed != nil || home == "":
			return nil, errors.New("the host does not say which directory it is: --delete needs that")
		case a.IsLink() || p.isLink(to.name):
			return nil, fault.WithHint(errors.New("--delete does not delete in a link to a directory, or where the host does not say what is one"), "name the directory itself: "+real)
		case strings.HasPrefix(home+"/", strings.TrimSuffix(real, "/")+"/") || above == "/home" || above == "/Users" || real == "/root":
			return nil, fault.WithHint(fmt.Errorf("%s is a home directory or holds one: --delete does not delete there", real), "copy into a directory of its own, or SRC without / at its end")
		}
		roots[to.name] = real
	}
	if !slices.ContainsFunc(p.directories, func(to *placed) bool { return to.rel == "" }) {
		return nil, fault.WithHint(errors.New("--delete needs a directory to compare with"), "name a directory as SRC, or leave --delete out")
	}
	return roots, nil
}

// isLink reports whether a name is a link, or may be one: at some hosts Lstat follows links.
func (p *put) isLink(name string) bool {
	_, err := p.client.Readlink(name)
	if errors.Is(err, errors.ErrUnsupported) { // which ProFTPD says of a name that is no link, but of no other
		_, missing := p.client.Readlink(newPart(p.host, name).fresh())
		return !errors.Is(missing, fs.ErrNotExist)
	}
	return err == nil || !isStatus(err) || errors.Is(err, fs.ErrPermission)
}

// delete removes names that the sources lack from their directories on the host, once everything
// else is there.
func (p *put) delete(dest string, roots map[string]string) {
	d := &removal{put: p, dest: path.Clean(dest), roots: roots, copied: map[string]int{}, doomed: map[string]bool{}}
	if p.failures() == 0 {
		d.findMounts()
		d.find()
	}
	switch n := len(d.doomed); {
	case p.over():
		return
	case p.failures() > 0:
		p.say(d.dest, "nothing is deleted in it, because something failed")
		return
	case n > p.MaxDelete:
		p.fail(d.dest, fmt.Errorf("%[1]s to delete, and --max-delete allows %[2]d: nothing is deleted; look with --dry-run, and go on with --max-delete %[3]d", unit.Count(n, "name"), p.MaxDelete, n))
	}
	var files, directories []string
	for name, isDirectory := range d.doomed {
		if isDirectory {
			directories = append(directories, name)
		} else {
			files = append(files, name)
		}
	}
	switch {
	case p.Dry:
		if len(d.doomed) <= p.MaxDelete {
			p.add(func(t *tally) { t.deleted += len(d.doomed) })
		}
		for _, name := range append(files, directories...) {
			p.would("delete", name)
		}
	case len(d.doomed) <= p.MaxDelete:
		each(&p.side, p.atOnce(), files, func(name string) { d.removed(name, p.client.Remove(name)) })
		slices.SortFunc(directories, func(a, b string) int { return len(b) - len(a) }) // the innermost first
		each(&p.side, 1, directories, func(name string) { d.removed(name, p.client.Rmdir(name)) })
	}
}

// removed records the outcome for a name, which another run may have removed.
func (d *removal) removed(name string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		d.fail(name, fmt.Errorf("is not deleted: %w", plain(err)))
	default:
		d.change(&placed{name: name})
		d.add(func(t *tally) { t.deleted++ })
	}
}

// find lists the copied directories that the host had before, except those behind links and mount
// points.
func (d *removal) find() {
	for name, copied := range d.has {
		if copied {
			d.copied[path.Dir(name)]++
		}
	}
	locals := map[string][]string{}
	for _, to := range d.directories {
		if !d.fresh[to.name] {
			locals[to.name] = append(locals[to.name], to.local)
		}
	}
	names := slices.Sorted(maps.Keys(locals))
	closed := make([]bool, len(names))
	sched.Do(d.atOnce(), len(names), func(i int) { closed[i] = d.roots[names[i]] == "" && d.isClosed(names[i]) })
	var open []string
	behind := map[string]bool{}
	for i, name := range names { // parents come before their children
		if behind[name] = closed[i] || behind[path.Dir(name)]; !behind[name] {
			open = append(open, name)
		}
	}
	each(&d.side, d.atOnce(), open, func(name string) { d.look(name, locals[name], 0) })
}

// isClosed reports whether nothing may be deleted in a directory, and says why.
func (d *removal) isClosed(name string) bool {
	why := ""
	switch root := d.rootOf(name); {
	case d.isLink(name):
		why = "a link, or the host does not say"
	case d.mounts[inDirectory(d.roots[root], below(root, name))]:
		why = "a mount point"
	case d.AsRoot:
		if a, err := d.client.Lstat(name); err != nil || d.guarded(name, a, false) != nil {
			why = "a directory that others than root can change"
		}
	}
	if why != "" {
		d.skip(name, "is %s: nothing is deleted in it", why)
	}
	return why != ""
}

// rootOf returns the copied directory that a name is in.
func (d *removal) rootOf(name string) string {
	for d.roots[name] == "" && name != path.Dir(name) {
		name = path.Dir(name)
	}
	return name
}

// look marks the names to delete in a directory, whose counterparts here are locals, and reports
// whether nothing else is in it.
func (d *removal) look(directory string, locals []string, depth int) (all bool) {
	var lacking []sftp.Entry
	copied, kept := 0, 0
	err := d.client.ReadDir(directory, func(e sftp.Entry) error {
		name := path.Join(directory, e.Name)
		switch isCopied, known := d.has[name]; {
		case e.Name == "." || e.Name == "..":
		case !isName(e.Name):
			return fmt.Errorf("the host names %q there, which is not a file name", clip(e.Name))
		case isCopied:
			copied++
		case known || partNames().MatchString(e.Name) || d.isBackup(name) || d.Exclude.Match(below(d.dest, name), e.Attrs.IsDir()):
			kept++
		default:
			lacking = append(lacking, e)
		}
		if len(lacking) > maxListed || depth > maxDepth {
			return errors.New("the host has too many names there")
		}
		return nil
	})
	if err == nil && copied < d.copied[directory] && !d.Dry {
		err = errors.New("the host lists files there under other names than they have here")
	}
	if err != nil {
		d.fail(directory, err)
		return false
	}
	if len(lacking) > 0 && !d.reaches(directory) {
		d.skip(directory, "may be on another file system: nothing is deleted in it")
		return false
	}
	all = kept == 0
	for _, e := range lacking {
		all = d.doom(path.Join(directory, e.Name), e.Attrs.IsDir(), locals, depth) && all
	}
	return all
}

// isBackup reports whether a name is the backup of a copied file.
func (d *removal) isBackup(name string) bool {
	of, ok := strings.CutSuffix(name, d.Backup)
	return ok && d.has[of]
}

// doom marks a name to be deleted, and reports whether it will be gone. A name that came here after
// the source was read stays.
func (d *removal) doom(name string, isDirectory bool, above []string, depth int) bool {
	var locals []string
	for _, directory := range above {
		local := filepath.Join(directory, path.Base(name))
		if _, err := os.Lstat(local); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		locals = append(locals, local)
	}
	if isDirectory && (d.isClosed(name) || !d.look(name, locals, depth+1)) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doomed[name] = isDirectory
	return true
}

// findMounts reads the mount points of a Linux host, if the names of the copied directories have no
// links there.
func (d *removal) findMounts() {
	f, err := d.client.Open("/proc/self/mountinfo", sftp.Read, 0)
	if err != nil {
		return
	}
	defer func() { f.Close().Wait() }()
	var text strings.Builder
	if d.untilEnd(f, func(p []byte, _ int64) error { text.Write(p); return nil }) != nil {
		return
	}
	mounts := map[string]bool{}
	unescaped := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(text.String()) {
		if fields := strings.Fields(line); len(fields) > 4 { // proc_pid_mountinfo(5)
			mounts[unescaped.Replace(fields[4])] = true
		}
	}
	for _, real := range d.roots {
		for ; real != "/"; real = path.Dir(real) {
			if !path.IsAbs(real) || d.isLink(real) {
				return
			}
		}
	}
	if mounts["/"] { // without it, others may be missing, too
		d.mounts = mounts
	}
}

// reaches reports whether a directory is on the mount of the copied one. Where the host does not
// show its mount points, a new directory is renamed from one to the other, which the kernel refuses
// between two mounts, even of one file system.
func (d *removal) reaches(directory string) bool {
	root := d.rootOf(directory)
	if d.mounts != nil || d.Dry || directory == root {
		return true
	}
	from, to := newPart(d.host, path.Join(directory, "mount")).fresh(), newPart(d.host, path.Join(root, "mount")).fresh()
	for _, name := range []string{from, to} {
		d.made.add(name, made{directory: true})
		d.change(&placed{name: name})
	}
	unmade := d.client.Mkdir(from, 0o700).Wait()
	if unmade == nil && d.client.Rename(from, to).Wait() == nil {
		d.made.done(from)
		d.removeDirectory(to)
		return true
	}
	d.made.done(to)
	if d.made.done(from); unmade == nil {
		d.removeDirectory(from)
	}
	return false
}
