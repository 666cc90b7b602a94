package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtherSystems: the program has no fault of types on systems and processors that no test
// runs on, of which one counts in 32 bits. To compile it for them would take most of a minute
// each, and find no more; ./build does so for what is given to users.
func TestOtherSystems(t *testing.T) {
	for _, target := range []string{"linux/arm", "darwin/arm64", "freebsd/amd64"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			system, processor, _ := strings.Cut(target, "/")
			list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", ".")
			list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
			list.Stderr = os.Stderr
			out, err := list.StdoutPipe()
			if err == nil {
				err = list.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			known := packages{"unsafe": types.Unsafe}
			for lines := json.NewDecoder(out); ; {
				var p listed
				if err := lines.Decode(&p); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if p.ImportPath != "unsafe" {
					p.check(t, known, processor)
				}
			}
			if err := list.Wait(); err != nil || known["sshpace"] == nil {
				t.Errorf("%d packages of %s: %v", len(known), target, err)
			}
		})
	}
}

// listed is a package as go list tells it, behind all that it imports.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

// check adds the package to the known ones; of those that are not ours only what others see
// is looked at.
func (p *listed) check(t *testing.T, known packages, processor string) {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	ours := p.Module != nil && p.Module.Main
	config := types.Config{Importer: mapped{known, p.ImportMap}, Sizes: types.SizesFor("gc", processor), IgnoreFuncBodies: !ours}
	var err error
	if known[p.ImportPath], err = config.Check(p.ImportPath, set, files, nil); err != nil {
		t.Fatal(err)
	}
}

// packages are those that were checked, by path.
type packages map[string]*types.Package

// mapped finds them by what a package calls them.
type mapped struct {
	packages
	names map[string]string
}

func (m mapped) Import(path string) (*types.Package, error) {
	if full := m.names[path]; full != "" {
		path = full
	}
	if p := m.packages[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("not listed: " + path)
}
