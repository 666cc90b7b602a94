package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// operation is something that is done with a server, in a directory of its name.
type operation struct {
	name string
	do   func(*visit) error
}

var operations = []operation{
	{"copy", copyTree},
	{"again", copyAgain},
	{"checksum", copyChecksum},
	{"backup", copyPlaced},
	{"links", copyLinks},
	{"large", copyLarge},
	{"many", copyMany},
	{"delete", copyDelete},
	{"fetch", fetchTree},
	{"trees", copyTrees},
	{"kill copy", killCopy},
	{"kill fetch", killFetch},
}

const largeSize = 20 << 20

// byScp copies a directory by scp -p, and is where that came to be.
func (v *visit) byScp(from string) func() (string, error) {
	return func() (string, error) {
		defer os.RemoveAll(filepath.Join(v.there, "scp"))
		return filepath.Join(v.there, "scp"), v.scp("-p", "-r", from, "there:"+v.name+"/scp")
	}
}

// tried is whether scp copies something.
func (v *visit) tried(from string) func() error {
	return func() error {
		err := v.scp("-r", from, "there:"+v.name+"/scp")
		os.RemoveAll(filepath.Join(v.there, "scp"))
		return err
	}
}

// copied copies a directory into one that is not there, and compares it.
func (v *visit) copied(from string) error {
	if err := v.does(v.tried(from), "copy", from+"/", ":"+v.name+"/new"); err != nil {
		return err
	}
	return v.same(from, filepath.Join(v.there, "new"), v.byScp(from))
}

func copyTree(v *visit) error {
	v.small(filepath.Join(v.here, "tree"))
	return v.copied(filepath.Join(v.here, "tree"))
}

func copyMany(v *visit) error {
	v.hundred(filepath.Join(v.here, "many"))
	return v.copied(filepath.Join(v.here, "many"))
}

// copyDelete deletes on the host what is not here, and nothing behind a link.
func copyDelete(v *visit) error {
	if err := copyTree(v); err != nil {
		return err
	}
	precious := v.random(100)
	v.write(filepath.Join(v.there, "outside", "precious"), precious, 0o644)
	v.write(filepath.Join(v.there, "new", "old", "deep", "f"), v.random(100), 0o644)
	if err := os.Symlink("../../outside", filepath.Join(v.there, "new", "old", "link")); err != nil {
		return err
	}
	own(v.t, v.there, ownerOf(v.root))
	from := filepath.Join(v.here, "tree")
	bySftp := func() error {
		old := v.name + "/new/old"
		return v.sftp("ls " + old + "\nrm " + old + "/deep/f\nrm " + old + "/link\nrmdir " + old + "/deep\nrmdir " + old)
	}
	err := v.does(bySftp, "copy", "--delete", from+"/", ":"+v.name+"/new")
	if err == nil {
		err = v.same(from, filepath.Join(v.there, "new"), v.byScp(from))
	}
	return errors.Join(err, holds(filepath.Join(v.there, "outside", "precious"), precious))
}

// holds says whether a file has one of some contents.
func holds(path string, contents ...[]byte) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("lost: %w", err)
	}
	for _, c := range contents {
		if string(data) == string(c) {
			return nil
		}
	}
	return fmt.Errorf("%s holds %d bytes of something else", filepath.Base(path), len(data))
}

// alone says that nothing but some names is in a directory.
func alone(dir string, names ...string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		known := false
		for _, name := range names {
			known = known || e.Name() == name
		}
		if !known {
			err = errors.Join(err, fmt.Errorf("left: %q", e.Name()))
		}
	}
	return err
}

// replaced copies a file over another one, which must not be lost if that cannot be.
func (v *visit) replaced(before, after []byte, flags ...string) error {
	from, there := filepath.Join(v.here, "f"), filepath.Join(v.there, "f")
	err := v.does(v.tried(from), append(append([]string{"copy"}, flags...), from, ":"+v.name+"/f")...)
	want := after
	if err != nil {
		want = before
	}
	return errors.Join(holds(there, want), alone(v.there, "f"), err)
}

func copyAgain(v *visit) error {
	before, after := v.random(3000), v.random(4000)
	v.put("f", before, time.Now().Add(-time.Hour))
	v.write(filepath.Join(v.here, "f"), after, 0o644)
	if err := v.replaced(before, after); err != nil {
		return err
	}
	return v.replaced(after, after)
}

func copyChecksum(v *visit) error {
	before, after := v.random(4000), v.random(4000)
	v.write(filepath.Join(v.here, "f"), after, 0o644)
	info, err := os.Stat(filepath.Join(v.here, "f"))
	if err != nil {
		return err
	}
	v.put("f", before, info.ModTime())
	decoy := filepath.Join(v.home, "work", v.name)
	if decoy != v.there { // where a start-up file leads commands to
		v.write(filepath.Join(decoy, "f"), after, 0o644)
		defer os.RemoveAll(decoy)
	}
	return v.replaced(before, after, "--checksum")
}

// copyPlaced keeps a replaced file beside the new one, in directories that are made for it. A mode
// that was asked for is there, or the old file is, and the reason is said.
func copyPlaced(v *visit) error {
	before, after := v.random(3000), v.random(4000)
	from, there := filepath.Join(v.here, "f"), filepath.Join(v.there, "deep", "er")
	v.write(from, before, 0o644)
	to := []string{"--mkdir", "--backup=.old", from, ":" + v.name + "/deep/er/"}
	bySftp := func() error { return errors.Join(v.tried(from)(), v.sftp("mkdir "+v.name+"/sftp")) }
	if err := v.does(bySftp, append([]string{"copy"}, to...)...); err != nil {
		return err
	}
	v.write(from, after, 0o644)
	if err := v.does(v.tried(from), append([]string{"copy"}, to...)...); err != nil {
		return errors.Join(err, holds(filepath.Join(there, "f"), before), alone(there, "f", "f.old"))
	}
	err := errors.Join(holds(filepath.Join(there, "f"), after), holds(filepath.Join(there, "f.old"), before), alone(there, "f", "f.old"))
	v.write(from, before, 0o644)
	want, refused := after, v.sshpace("copy", "--mode", "604", from, ":"+v.name+"/deep/er/")
	if refused == nil {
		want = before
		if info, missing := os.Stat(filepath.Join(there, "f")); missing != nil || info.Mode().Perm() != 0o604 {
			err = errors.Join(err, missing, errors.New("it has another mode than was asked for"))
		}
	} else if !strings.Contains(v.said, "owner and mode") {
		err = errors.Join(err, fmt.Errorf("copy fails: %s", lastLines(v.said)))
	}
	return errors.Join(err, holds(filepath.Join(there, "f"), want))
}

// linked is whether sftp makes a link.
func (v *visit) linked() error {
	link := filepath.Join(v.there, "sftp")
	defer os.Remove(link)
	err := v.sftp("symlink a " + v.name + "/sftp")
	if target, failed := os.Readlink(link); err == nil && (failed != nil || target != "a") {
		os.Remove(filepath.Join(v.root, "a")) // which a server made that takes the name first
		err = errors.New("sftp makes another link")
	}
	return err
}

func copyLinks(v *visit) error {
	from := filepath.Join(v.here, "tree")
	v.write(filepath.Join(from, "a"), v.random(100), 0o644)
	v.write(filepath.Join(from, "sub", "b"), v.random(100), 0o644)
	for name, target := range map[string]string{"link": "a", "sub/up": "../a", "dir": "sub", "dangling": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(from, name)); err != nil {
			return err
		}
	}
	reference := func() error {
		return errors.Join(v.tried(filepath.Join(from, "a"))(), v.tried(filepath.Join(from, "sub"))(), v.linked())
	}
	if err := v.does(reference, "copy", from+"/", ":"+v.name+"/new"); err != nil {
		return err
	}
	return v.same(from, filepath.Join(v.there, "new"), func() (string, error) { return "", errors.New("scp follows links") })
}

func copyLarge(v *visit) error {
	before, after := v.random(1000), v.random(largeSize)
	v.put("f", before, time.Now().Add(-time.Hour))
	v.write(filepath.Join(v.here, "f"), after, 0o644)
	began := time.Now()
	err := v.replaced(before, after)
	v.takes = time.Since(began)
	return err
}

func fetchTree(v *visit) error {
	from := filepath.Join(v.there, "tree")
	v.small(from)
	v.hundred(filepath.Join(from, "many"))
	v.write(filepath.Join(from, "large"), v.random(5<<20), 0o644)
	own(v.t, v.there, ownerOf(v.root))
	try := func() error { return v.scp("-r", "there:"+v.name+"/tree", filepath.Join(v.here, "scp")) }
	if err := v.does(try, "fetch", ":"+v.name+"/tree", filepath.Join(v.here, "got")); err != nil {
		return err
	}
	err := v.same(from, filepath.Join(v.here, "got", "there", "tree"), func() (string, error) {
		return filepath.Join(v.here, "scp-p"), v.scp("-p", "-r", "there:"+v.name+"/tree", filepath.Join(v.here, "scp-p"))
	})
	return errors.Join(err, v.fetchLinks())
}

// fetchLinks fetches links: those that come, where a server shows them, lead to the same.
func (v *visit) fetchLinks() error {
	links := map[string]string{"link": "a", "sub/link": "b", "sub/up": "../a"}
	v.write(filepath.Join(v.there, "links", "a"), nil, 0o644)
	v.write(filepath.Join(v.there, "links", "sub", "b"), nil, 0o644)
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(v.there, "links", name)); err != nil {
			return err
		}
	}
	own(v.t, v.there, ownerOf(v.root))
	err := v.sshpace("fetch", ":"+v.name+"/links", filepath.Join(v.here, "got"))
	said := v.said
	for name, target := range links {
		if is, missing := os.Readlink(filepath.Join(v.here, "got", "there", "links", name)); missing == nil && is != target {
			err = errors.Join(err, fmt.Errorf("%s leads to %q, not to %q", name, is, target))
		}
	}
	if err != nil {
		err = fmt.Errorf("fetch fails: %w; %s", err, lastLines(said))
	}
	return err
}

// moment is when to end what takes as long as a large file.
func (v *visit) moment() time.Duration {
	takes := v.takes
	if takes == 0 || takes > patience/2 {
		takes = time.Second
	}
	return time.Duration(float64(takes) * (0.1 + 0.9*v.rng.Float64()))
}

var ends = []os.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGHUP}

// killCopy ends copies in the middle: what was there stays or is new, and what is done once more is
// whole and leaves nothing.
func killCopy(v *visit) error {
	before, after := v.random(1000), v.random(largeSize)
	v.put("f", before, time.Now().Add(-time.Hour))
	from := filepath.Join(v.here, "all")
	v.write(filepath.Join(from, "f"), after, 0o644)
	v.hundred(filepath.Join(from, "many"))
	for _, signal := range ends {
		if _, err := v.signaled(v.moment(), signal, "copy", from+"/", ":"+v.name); errors.Is(err, errHangs) {
			return fmt.Errorf("copy hangs after %s", signal)
		}
		if err := holds(filepath.Join(v.there, "f"), before, after); err != nil {
			return fmt.Errorf("after %s: %w", signal, err)
		}
	}
	if err := v.does(v.tried(from), "copy", from+"/", ":"+v.name); err != nil {
		return errors.Join(err, unless(holds(filepath.Join(v.there, "f"), before, after), nil))
	}
	return v.same(from, v.there, v.byScp(from))
}

// killFetch is the same with what is fetched.
func killFetch(v *visit) error {
	from := filepath.Join(v.there, "all")
	v.write(filepath.Join(from, "f"), v.random(largeSize), 0o644)
	v.hundred(filepath.Join(from, "many"))
	own(v.t, v.there, ownerOf(v.root))
	to := filepath.Join(v.here, "got")
	for _, signal := range ends {
		if _, err := v.signaled(v.moment(), signal, "fetch", ":"+v.name+"/all", to); errors.Is(err, errHangs) {
			return fmt.Errorf("fetch hangs after %s", signal)
		}
	}
	try := func() error { return v.scp("-r", "there:"+v.name+"/all", filepath.Join(v.here, "scp")) }
	if err := v.does(try, "fetch", ":"+v.name+"/all", to); err != nil {
		return err
	}
	return v.same(from, filepath.Join(to, "there", "all"), func() (string, error) {
		return filepath.Join(v.here, "scp-p"), v.scp("-p", "-r", "there:"+v.name+"/all", filepath.Join(v.here, "scp-p"))
	})
}
