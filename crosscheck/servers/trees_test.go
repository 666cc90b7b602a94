package servers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tree is a directory: what its names stand for.
type tree map[string]file

// file is a file, a directory or a link.
type file struct {
	mode    fs.FileMode
	changed int64
	content string // of a link: where it leads
}

// treeOf reads a directory.
func treeOf(root string) (tree, error) {
	t := tree{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := file{mode: info.Mode(), changed: info.ModTime().Unix()}
		switch {
		case f.mode&fs.ModeSymlink != 0:
			f.content, err = os.Readlink(path)
		case f.mode.IsRegular():
			var data []byte
			data, err = os.ReadFile(path)
			f.content = string(data)
		}
		name, _ := filepath.Rel(root, path)
		t[name] = f
		return err
	})
	return t, err
}

// differs says what is not the same in another tree but for modes and times; bare has what of the
// two is not.
func (t tree) differs(is tree) (err, bare error) {
	for name, want := range t {
		got, there := is[name]
		switch {
		case !there:
			err = errors.Join(err, fmt.Errorf("%q is missing", name))
		case got.mode.Type() != want.mode.Type() || got.content != want.content:
			err = errors.Join(err, fmt.Errorf("%q has another content: %s, %d bytes %.40q", name, got.mode, len(got.content), got.content))
		case name != "." && want.mode&fs.ModeSymlink == 0 && (got.mode != want.mode || got.changed != want.changed):
			bare = errors.Join(bare, fmt.Errorf("%q has mode %s and time %d, not %s and %d", name, got.mode, got.changed, want.mode, want.changed))
		}
	}
	for name := range is {
		if _, known := t[name]; !known {
			err = errors.Join(err, fmt.Errorf("%q is too much", name))
		}
	}
	return err, bare
}

// fewer is an error with the first of its lines.
func fewer(err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	return errors.New(strings.Join(lines[:min(len(lines), 4)], "\n"))
}

// write makes a file in the past, with directories above it.
func (v *visit) write(path string, content []byte, mode fs.FileMode) {
	v.t.Helper()
	then := time.Now().Add(-time.Duration(1+v.rng.IntN(1e6)) * time.Second)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, mode), os.Chmod(path, mode), os.Chtimes(path, then, then)); err != nil {
		v.t.Fatal(err)
	}
}

// random are bytes, of which as many as are told in a lump are the same.
func (v *visit) random(size int) []byte {
	lump := make([]byte, 0, 64<<10)
	for len(lump) < min(size, cap(lump)) {
		lump = append(lump, byte(v.rng.Uint32()))
	}
	return bytes.Repeat(lump, 1+size/max(1, len(lump)))[:size]
}

// small makes a tree of some files of all kinds of names, modes and sizes.
func (v *visit) small(root string) {
	v.t.Helper()
	names := []string{"a", "empty", "with space", "-dash", "it's", `q"uote`, "$x", "*", "ünï", ".hidden", "sub/b", "sub/deep/c", "sub/deep/more/d", "other/e"}
	for _, name := range names {
		size := v.rng.IntN(5000)
		if name == "empty" {
			size = 0
		}
		mode := []fs.FileMode{0o644, 0o600, 0o755, 0o640}[v.rng.IntN(4)]
		v.write(filepath.Join(root, name), v.random(size), mode)
	}
}

// hundred makes a tree of a hundred small files.
func (v *visit) hundred(root string) {
	v.t.Helper()
	for i := range 100 {
		v.write(filepath.Join(root, fmt.Sprintf("dir%d/f%d", i%3, i)), v.random(v.rng.IntN(2000)), 0o644)
	}
}

// put makes a file on the server.
func (v *visit) put(name string, content []byte, when time.Time) {
	v.t.Helper()
	path := filepath.Join(v.there, name)
	v.write(path, content, 0o644)
	if err := errors.Join(os.Chtimes(path, when, when), os.Chown(path, ownerOf(v.root), -1), os.Chown(filepath.Dir(path), ownerOf(v.root), -1)); err != nil {
		v.t.Fatal(err)
	}
}

// same compares a directory with another, in which modes and times have to be right where the
// reference, such as scp -p, makes them so in a third.
func (v *visit) same(want, is string, reference func() (string, error)) error {
	expected, err := treeOf(want)
	if err != nil {
		return err
	}
	return v.sameAs(expected, is, reference)
}

func (v *visit) sameAs(expected tree, is string, reference func() (string, error)) error {
	came, err := treeOf(is)
	if err != nil {
		return err
	}
	err, bare := expected.differs(came)
	if err != nil || bare == nil {
		return fewer(err)
	}
	third, failed := reference()
	if failed != nil {
		return nil
	}
	if byOthers, err := treeOf(third); err == nil {
		if err, others := expected.differs(byOthers); err == nil && others == nil {
			return fewer(bare)
		}
	}
	return nil
}
