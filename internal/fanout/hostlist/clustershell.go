package hostlist

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sshpace/internal/fleet/hostset"
	"sshpace/internal/sys/file"
)

// GroupFiles are ClusterShell's group files: lines of `name: set`, YAML with a source of groups
// under every name (groups.d/*.yaml), and directories of both.
type GroupFiles struct {
	plain   *hostset.GroupFile // groups without a source
	sources map[string]*hostset.GroupFile
	warn    warner
}

// NewGroupFiles returns an empty collection.
func NewGroupFiles(warn warner) *GroupFiles {
	return &GroupFiles{sources: map[string]*hostset.GroupFile{}, warn: warn}
}

// Add reads a file or a directory.
func (f *GroupFiles) Add(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.file(name)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ending := filepath.Ext(e.Name()); ending == ".cfg" || slices.Contains(yamlEndings, ending) {
			if err := f.file(filepath.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *GroupFiles) file(name string) error {
	data, err := file.ReadFile(name, file.Config)
	if err == nil {
		err = file.Wide(data, name)
	}
	if err != nil {
		return err
	}
	if slices.Contains(yamlEndings, filepath.Ext(name)) {
		return f.yaml(name, string(data))
	}
	read, err := hostset.ReadGroups(strings.NewReader(string(data)), name)
	if err != nil {
		return err
	}
	f.plain = f.plain.Join(read)
	return nil
}

func (f *GroupFiles) yaml(name, text string) error {
	d, root, err := parseYAML(text, f.warn.in(name))
	if err == nil && !isNull(root) && root.Kind != yaml.MappingNode {
		err = errors.New("want sources of groups, such as roles: {web: 'web[1-9]'}")
	}
	if err == nil {
		err = f.yamlSources(d, root, name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (f *GroupFiles) yamlSources(d *document, root *yaml.Node, name string) error {
	sources, err := d.entries(root)
	if err != nil {
		return err
	}
	for _, source := range sources {
		if isNull(source.value) || source.value.Kind != yaml.MappingNode {
			return fmt.Errorf("source %q: want groups, such as %s: {web: 'web[1-9]'}", source.key, source.key)
		}
		groups, err := d.entries(source.value)
		if err != nil {
			return err
		}
		table := hostset.NewGroupFile(name)
		for _, g := range groups {
			sets, err := d.sets(g.value)
			if err != nil {
				return fmt.Errorf("group @%s:%s: %w", source.key, g.key, err)
			}
			for _, set := range sets {
				table.Add(g.key, set)
			}
		}
		f.sources[source.key] = f.sources[source.key].Join(table)
	}
	return nil
}

// sets returns the texts of a group: one, or a list of them.
func (d *document) sets(n *yaml.Node) ([]string, error) {
	n = d.follow(n)
	switch {
	case isNull(n):
		return []string{""}, nil
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, nil
	}
	list, err := d.list(n)
	if errors.Is(err, errNoList) {
		err = errors.New("want a set such as 'web[1-9]', or a list of sets")
	}
	return list, err
}

// Into adds the sources to those that answer @source:group, calls add for those that answer plain
// @group, and returns the names of the former. If only one source has a name, plain @group asks it,
// too.
func (f *GroupFiles) Into(s hostset.Sources, add func(source string, g hostset.Groups)) []string {
	for name, source := range f.sources {
		s[name] = source
		if f.plain == nil && len(f.sources) == 1 || name == "default" {
			add("", source)
		}
	}
	if f.plain != nil {
		add("", f.plain)
	}
	return sortedKeys(f.sources)
}
