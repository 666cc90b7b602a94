package copy

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sshpace/internal/ssh/sftp"
)

const (
	// maxNames is how many names a host may have in all.
	maxNames = 1 << 20
	// maxHeld bounds the memory for the names of directories that are being read: 600,000 names of
	// 20 bytes.
	maxHeld = 24 << 20
	// maxPath is the longest name with all directories, here and on the host (PATH_MAX).
	maxPath = 4096
)

// source examines one name of the command line. With a slash at its end it means the content of the
// directory, as in rsync(1).
func (g *get) source(raw string) {
	name, err := g.remote(raw)
	var a sftp.Attrs
	if err == nil {
		a, err = g.client.Stat(name)
	}
	if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(raw, "*?[") {
		err = fmt.Errorf("%w; patterns are not expanded on hosts: name each file, or their directory", err)
	}
	if err != nil {
		g.fail(raw, err)
		return
	}
	local := path.Base(path.Clean("/" + name))
	if g.name != "" {
		local = g.name
	}
	last := name[strings.LastIndexByte(name, '/')+1:]
	inside := last == "." || last == ".." || last == "" && g.Scp == nil || local == "/"
	g.findLeftovers(path.Dir(local))
	switch {
	case g.Scp != nil && !g.Scp.Recursive && a.IsDir():
		g.fail(name, errors.New("not a regular file"))
	case inside && a.IsDir() && (g.name == "" || g.Scp == nil):
		g.findLeftovers(".")
		g.directory(&found{remote: name, local: "."}, 0)
	default:
		g.look(&found{remote: strings.TrimRight(name, "/"), local: local, attrs: a}, 0)
	}
}

// look lists a name of the host.
func (g *get) look(f *found, depth int) {
	switch a := f.attrs; {
	case g.Exclude.Match(f.local, a.IsDir()):
	case a.IsDir():
		if err := g.enter(f); err != nil {
			g.fail(f.remote, here(err))
			return
		}
		g.directory(f, depth+1)
	case a.IsRegular():
		g.files = append(g.files, f)
	case a.IsLink() && g.Scp != nil:
		end, err := g.client.Stat(f.remote)
		if err != nil {
			g.fail(f.remote, err)
			return
		}
		f.attrs = end
		g.look(f, depth+1)
	case a.IsLink():
		g.link(f)
	default:
		g.skip(f.remote, "skipped: it is not a file, directory or link")
	}
	if len(g.files) >= batch || len(g.directories) >= batch {
		g.copy()
	}
}

// enter makes a directory, or makes an existing one writable until it gets the mode that it has on
// the host.
func (g *get) enter(f *found) error {
	if g.Dry {
		return g.foresee(f)
	}
	perm := fs.FileMode(0o700)
	if g.Scp != nil {
		perm |= f.attrs.Perm()
	}
	err := g.root.Mkdir(f.local, perm)
	if err == nil {
		return nil
	}
	info, failed := g.root.Lstat(f.local)
	if failed != nil || !info.IsDir() {
		return err
	}
	if g.Scp == nil && info.Mode().Perm()&0o700 != 0o700 {
		if err := g.root.Chmod(f.local, info.Mode().Perm()|0o700); err != nil {
			return err
		}
	}
	g.findLeftovers(f.local)
	return nil
}

// findLeftovers looks for leftovers of earlier runs in a directory.
func (g *get) findLeftovers(local string) {
	if g.Scp != nil {
		return
	}
	directory, err := g.root.Open(local)
	if err != nil {
		return
	}
	defer directory.Close()
	for {
		names, err := directory.Readdirnames(batch)
		for _, name := range names {
			g.left.add(local, name, false)
		}
		if err != nil {
			return
		}
	}
}

// directory lists a directory. It checks names: only plain names are accepted.
func (g *get) directory(f *found, depth int) {
	if depth > maxDepth {
		g.fail(f.remote, fmt.Errorf("directories are more than %d deep", maxDepth))
		return
	}
	names, err := g.list(f.remote)
	if err != nil {
		g.fail(f.remote, err)
	}
	g.held += names.size
	for e := range names.all() {
		if g.over() {
			break
		}
		switch {
		case !isName(e.Name):
			g.fail(f.remote, fmt.Errorf("the host names %q there, which is not a file name", clip(e.Name)))
		case len(f.remote)+len(e.Name)+1 > maxPath || len(f.local)+len(e.Name)+1 > maxPath:
			g.fail(f.remote, fmt.Errorf("names in it have more than %d bytes", maxPath))
		default:
			g.look(&found{remote: inDirectory(f.remote, e.Name), local: path.Join(f.local, e.Name), attrs: e.Attrs}, depth)
		}
	}
	g.held -= names.size
	if f.local != "." && (g.Scp == nil || g.Scp.Preserve) {
		g.directories = append(g.directories, f)
	}
}

// list returns the content of a directory, or nothing if there is no room for all.
func (g *get) list(remote string) (all names, err error) {
	err = g.client.ReadDir(remote, func(e sftp.Entry) error {
		if e.Name == "." || e.Name == ".." {
			return nil
		}
		all.add(e)
		g.names--
		switch {
		case len(e.Name) > maxPath:
			return fmt.Errorf("the host names a file of %d bytes there", len(e.Name))
		case g.names < 0:
			return fmt.Errorf("the host has more than %d names", maxNames)
		case g.held+all.size > maxHeld:
			return fmt.Errorf("the names take more than %d MiB", maxHeld>>20)
		}
		return nil
	})
	if err != nil {
		return names{}, err
	}
	return all, nil
}

// inDirectory returns a name in a directory of the host. It is not cleaned: links decide the
// meaning of .. there.
func inDirectory(directory, name string) string {
	if directory == "." {
		return name
	}
	return strings.TrimSuffix(directory, "/") + "/" + name
}

func clip(name string) string { return name[:min(len(name), 100)] }

// maxName is the longest name of a file in its directory (NAME_MAX).
const maxName = 255

// isName reports whether a text is the name of a file in a directory.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsAny(name, "/\x00") && filepath.IsLocal(name)
}

// staysInside reports whether a link in a directory, whose name holds no links, leads to nothing
// outside the root, with any links that are there or come. .. at the beginning climbs real
// directories; after a name, .. is the parent of that name's target.
func staysInside(directory, target string) bool {
	depth := 0
	if directory != "." {
		depth = strings.Count(directory, "/") + 1
	}
	named := false
	for name := range strings.SplitSeq(target, "/") {
		switch name {
		case "", ".":
		case "..":
			if depth--; depth < 0 || named {
				return false
			}
		default:
			named = true
		}
	}
	return target != "" && !strings.HasPrefix(target, "/")
}
