package hostlist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
)

// Add reads an inventory: a file, or a directory of files as Ansible reads it; or a list with a
// comma in it, such as "web1,web2:2222". group_vars and host_vars next to a file apply, too. A
// program is run, and writes the inventory.
func (v *Inventory) Add(ctx context.Context, name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) && strings.Contains(name, ",") {
		v.files = append(v.files, name)
		return v.addList(name)
	}
	if err != nil {
		return err
	}
	v.files = append(v.files, name)
	beside := filepath.Dir(name)
	if info.IsDir() {
		beside = name
	}
	v.adjacent = append(v.adjacent, adjacentVars{os.DirFS(beside), map[string]vars{}})
	if program, err := isProgram(name, info); program || err != nil {
		return cmp.Or(err, v.addScript(ctx, name))
	}
	if !info.IsDir() {
		return v.addFile(os.DirFS(beside), filepath.Base(name), name, info)
	}
	return v.addDirectory(name, 0)
}

// addList adds the hosts of a list. There are no ranges in it, as in Ansible's plugin "host_list".
func (v *Inventory) addList(list string) error {
	for text := range strings.SplitSeq(list, ",") {
		name, port := splitPort(strings.TrimSpace(text))
		if name == "" {
			continue
		}
		if err := v.addNamed(v.group(ungrouped), name, port, nil); err != nil {
			return err
		}
	}
	return nil
}

// addDirectory reads all files of a directory and of its subdirectories.
func (v *Inventory) addDirectory(name string, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("%s: directories are nested more than %d deep", name, maxNesting)
	}
	dir := os.DirFS(name)
	entries, err := fs.ReadDir(dir, ".")
	for _, e := range entries {
		if err != nil || ignored(e.Name()) {
			continue
		}
		var info fs.FileInfo
		switch info, err = fs.Stat(dir, e.Name()); {
		case err != nil:
		case info.IsDir():
			err = v.addDirectory(filepath.Join(name, e.Name()), depth+1)
		default:
			err = v.addFile(dir, e.Name(), filepath.Join(name, e.Name()), info)
		}
	}
	return err
}

// ignoredNames and ignoredEndings are skipped by Ansible in a directory (inventory/manager.py;
// INVENTORY_IGNORE_EXTS, which since ansible-core 2.19 has no ".ini" any more).
var (
	ignoredNames   = []string{"group_vars", "host_vars", "vars_plugins"}
	ignoredEndings = []string{".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry"}
)

func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || slices.Contains(ignoredNames, name) ||
		slices.ContainsFunc(ignoredEndings, func(ending string) bool { return strings.HasSuffix(name, ending) })
}

const expandHint = "let Ansible write it out: ansible-inventory -i FILE --list --yaml >hosts.yml, and give that file"

// addFile reads one file; shown is its name for messages.
func (v *Inventory) addFile(dir fs.FS, name, shown string, info fs.FileInfo) error {
	text, err := readFile(dir, name)
	if err != nil {
		return err
	}
	if strings.HasPrefix(text, "#!") {
		if info.Mode()&0o111 == 0 {
			return fault.Usage("make it executable with chmod +x, or drop the line #! if it is none", "%s begins as a program and is not executable", shown)
		}
		return fault.Usage("name it by itself: --inventory "+shell.Word(shown), "%s is a program, and programs in a directory are not run", shown)
	}
	if path.Ext(name) == ".toml" {
		return fault.Usage(expandHint, "%s: inventories in TOML are not read", shown)
	}
	err = v.parse(name, shown, text)
	switch {
	case errors.Is(err, errPlugin):
		return fault.WithHint(err, expandHint)
	case errors.Is(err, errVault):
		return fault.WithHint(err, "ansible-vault view shows it")
	}
	return err
}

// parse distinguishes YAML from INI by the name, or else by the content.
func (v *Inventory) parse(name, shown, text string) error {
	ending := path.Ext(name)
	if slices.Contains(yamlEndings, ending) || strings.HasPrefix(text, "$ANSIBLE_VAULT;") {
		return v.readYAML(shown, text)
	}
	if looksJSON(text) {
		return v.readYAML(shown, text)
	}
	if _, root, _ := parseYAML(text, nil); ending == "" && root != nil && root.Kind == yaml.MappingNode {
		return v.readYAML(shown, text)
	}
	return v.readINI(shown, text)
}
