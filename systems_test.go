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
	"sync"
	"testing"
)

// systems are those whose programs no test runs, of which one counts in 32 bits.
var systems = []string{"linux/arm", "darwin/arm64", "freebsd/amd64"}

// TestOtherSystems: the program has no fault of types on systems and processors that no test
// runs on. To compile it for them would take most of a minute each, and find no more; ./build
// does so for what is given to users.
func TestOtherSystems(t *testing.T) {
	for target, err := range checked().errors {
		if err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// source is a file of ours that is no test, with its types on a system that it is for.
type source struct {
	*types.Info
	pkg  string // below internal
	set  *token.FileSet
	file *ast.File
}

// program has each of our files once, whichever systems it is for.
type program struct {
	files  map[string]source // by path
	errors map[string]error  // by system
}

// checked is the program as the systems have it.
var checked = sync.OnceValue(func() program {
	all := program{map[string]source{}, map[string]error{}}
	var lock sync.Mutex
	var checks sync.WaitGroup
	for _, target := range systems {
		checks.Go(func() {
			files, err := check(target)
			lock.Lock()
			defer lock.Unlock()
			all.errors[target] = err
			for path, file := range files {
				all.files[path] = file
			}
		})
	}
	checks.Wait()
	return all
})

// check looks at the types of all that the program and its packages need on a system.
func check(target string) (map[string]source, error) {
	system, processor, _ := strings.Cut(target, "/")
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", ".", "./hub")
	if system == "linux" { // which all tests are for, and so their kits
		list.Args = append(list.Args, "./internal/...")
	}
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err == nil {
		err = list.Start()
	}
	if err != nil {
		return nil, err
	}
	known, ours := packages{"unsafe": types.Unsafe}, map[string]source{}
	for lines := json.NewDecoder(out); ; {
		var p listed
		if err := lines.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		if err := p.check(known, processor, ours); err != nil {
			return nil, err
		}
	}
	if known["sshpace"] == nil {
		return nil, errors.New("the program is not listed")
	}
	return ours, list.Wait()
}

// listed is a package as go list tells it, behind all that it imports.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct {
		Dir  string
		Main bool
	}
}

// check adds the package to the known ones, and the files of ours to those; of the others only
// what importers see is looked at.
func (p *listed) check(known packages, processor string, ours map[string]source) error {
	own := p.Module != nil && p.Module.Main
	set, info := token.NewFileSet(), (*types.Info)(nil)
	if own {
		info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		if own {
			path, _ = filepath.Rel(p.Module.Dir, path)
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
		if pkg, ok := strings.CutPrefix(p.ImportPath, "sshpace/internal/"); ok && own {
			ours[filepath.ToSlash(path)] = source{info, pkg, set, file}
		}
	}
	config := types.Config{Importer: mapped{known, p.ImportMap}, Sizes: types.SizesFor("gc", processor), IgnoreFuncBodies: !own}
	var err error
	known[p.ImportPath], err = config.Check(p.ImportPath, set, files, info)
	return err
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
