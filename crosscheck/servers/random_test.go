package servers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// oddNames are what files may be called.
var oddNames = []string{"a", "b c", "-rf", "--", "new\nline", "\nfirst", "not-utf8-\xff\xfe", "ünï", "'quoted'", `"double"`, "$HOME", "`id`", `back\slash`, "*", "~", "~root", ".hidden", "...", "#x#",
	"tab\there", " leading", "trailing ", ":colon", "a:b", "%h", "[1-3]", "x.sshpace-0", "\x01\x7f", strings.Repeat("long", 50), "long" + strings.Repeat("y", 251)}

// copyTrees copies a random tree over another one, of which it replaces some, and fetches it. Some
// copies are ended before: no file is ever lost.
func copyTrees(v *visit) error {
	from, there := filepath.Join(v.here, "tree"), filepath.Join(v.there, "new")
	v.odd(from)
	after, err := treeOf(from)
	if err != nil {
		return err
	}
	v.earlier(after, there)
	before, err := treeOf(there)
	if err != nil {
		return err
	}
	flags := [][]string{nil, {"--checksum"}, {"--no-verify"}}[v.rng.IntN(3)]
	args := append(append([]string{"copy"}, flags...), from+"/", ":"+v.name+"/new")
	for range v.rng.IntN(3) {
		signal := ends[v.rng.IntN(len(ends))]
		if _, err := v.signaled(time.Duration(v.rng.IntN(400)+1)*time.Millisecond, signal, args...); errors.Is(err, errHangs) {
			return fmt.Errorf("copy hangs after %s", signal)
		}
		if err := before.isKept(there, after); err != nil {
			return fmt.Errorf("after %s: %w", signal, err)
		}
	}
	reference := func() error { return errors.Join(v.tried(from)(), v.linked()) }
	if err := v.does(reference, args...); err != nil {
		return errors.Join(before.isKept(there, after), left(there, before, after), err)
	}
	for name, f := range before { // what the tree does not have stays
		if _, replaced := after[name]; !replaced {
			after[name] = f
		}
	}
	if err := v.sameAs(after, there, v.byScp(from)); err != nil {
		return err
	}
	try := func() error { return v.scp("-r", "there:"+v.name+"/new", filepath.Join(v.here, "scp")) }
	if err := v.does(try, "fetch", ":"+v.name+"/new", filepath.Join(v.here, "got")); err != nil {
		return err
	}
	return v.same(there, filepath.Join(v.here, "got", "there", "new"), func() (string, error) { return "", errors.New("compared above") })
}

// odd makes a random tree.
func (v *visit) odd(root string) {
	v.t.Helper()
	directories, files := []string{root}, []string{}
	name := func() string {
		name := oddNames[v.rng.IntN(len(oddNames))]
		if v.rng.IntN(3) > 0 {
			name = fmt.Sprint(name[:min(len(name), 200)], v.rng.IntN(100))
		}
		return filepath.Join(directories[v.rng.IntN(len(directories))], name)
	}
	for range v.rng.IntN(6) {
		directories = append(directories, name()+".d")
	}
	several := v.rng.IntN(30)
	if v.rng.IntN(3) == 0 { // as many as are worth a pack
		several += 100
	}
	for range several {
		at := name()
		if _, err := os.Lstat(at); err == nil || len(filepath.Base(at)) > 255 || strings.HasSuffix(at, ".d") {
			continue
		}
		size := []int{0, 1, v.rng.IntN(100), v.rng.IntN(3000), v.rng.IntN(70_000), 1 << 16, 1 << 20, v.rng.IntN(4 << 20), 16<<20 + v.rng.IntN(100)}[min(v.rng.IntN(9), v.rng.IntN(9), v.rng.IntN(9))]
		v.write(at, v.random(size), fs.FileMode(v.rng.IntN(0o1000))|0o400)
		files = append(files, at)
	}
	for i := range files { // scp follows links: none leads elsewhere
		if at := name(); v.rng.IntN(8) == 0 && len(filepath.Base(at)) <= 255 {
			os.Symlink(filepath.Base(files[i]), filepath.Join(filepath.Dir(files[i]), filepath.Base(at)))
		}
	}
	v.write(filepath.Join(root, "last"), nil, 0o644)
}

// earlier makes a directory on the server with some of a tree, the same or in another state.
func (v *visit) earlier(tree tree, root string) {
	v.t.Helper()
	v.write(filepath.Join(root, "precious"), v.random(3000), 0o644)
	for name, f := range tree {
		at := filepath.Join(root, name)
		if f.mode.IsDir() || v.rng.IntN(2) == 0 {
			continue
		}
		switch v.rng.IntN(6) {
		case 0:
			os.MkdirAll(filepath.Dir(at), 0o755)
			os.Symlink("precious", at)
		case 1:
			if f.mode.IsRegular() {
				v.write(at, []byte(f.content), f.mode.Perm())
			}
		default:
			v.write(at, v.random(v.rng.IntN(5000)), 0o644)
		}
	}
	own(v.t, v.there, ownerOf(v.root))
}

// left says that nothing is in a directory but what is in one of two trees.
func left(root string, trees ...tree) error {
	now, err := treeOf(root)
	for name := range now {
		if !slices.ContainsFunc(trees, func(t tree) bool { _, known := t[name]; return known }) {
			err = errors.Join(err, fmt.Errorf("left: %q", name))
		}
	}
	return err
}

// isKept says that each file of a tree is in a directory, as it was or as it is in another tree.
func (t tree) isKept(root string, after tree) error {
	now, err := treeOf(root)
	for name, was := range t {
		is, there := now[name]
		switch {
		case !there:
			err = errors.Join(err, fmt.Errorf("lost: %q", name))
		case is.mode.IsDir(), is.mode.Type() == was.mode.Type() && is.content == was.content, is.content == after[name].content && is.mode.Type() == after[name].mode.Type():
		default:
			err = errors.Join(err, fmt.Errorf("%q holds %d bytes of something else", name, len(is.content)))
		}
	}
	return fewer(err)
}
