package hostlist

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlEndings are the names of YAML files; JSON is YAML.
var yamlEndings = []string{".yml", ".yaml", ".json"}

var (
	errVault  = errors.New("the file is encrypted with ansible-vault")
	errPlugin = errors.New("the file configures an inventory plugin of Ansible's")
	errBomb   = errors.New("aliases make more than a million entries of the file")
	errNoList = errors.New("want a list of names")
)

const (
	maxEntries = 1 << 20 // of a document, aliases written out
	maxNesting = 64      // of groups
)

// document is a YAML file whose aliases are followed with care.
type document struct {
	left    int
	listing bool // hosts and children of a group are lists of names, which are no patterns
}

// parseYAML reads a file; a nil node is an empty one.
func parseYAML(text string) (*document, *yaml.Node, error) {
	if strings.HasPrefix(text, "$ANSIBLE_VAULT;") {
		return nil, nil, errVault
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return nil, nil, err
	}
	if len(root.Content) == 0 {
		return &document{}, nil, nil
	}
	return &document{left: maxEntries}, root.Content[0], nil
}

// entry is a key with its value.
type entry struct {
	key   string
	value *yaml.Node
}

// isNull tells whether there is nothing.
func isNull(n *yaml.Node) bool { return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func (d *document) follow(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// entries lists a mapping, with merge keys (<<) written out; a scalar is a key
// without value, as Ansible takes it, and nothing is an empty mapping.
func (d *document) entries(n *yaml.Node) ([]entry, error) {
	switch n = d.follow(n); {
	case isNull(n):
		return nil, nil
	case n.Kind == yaml.ScalarNode:
		return []entry{{key: n.Value}}, nil
	case n.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("line %d: want names with a colon, not a list", n.Line)
	}
	var list, merged []entry
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], d.follow(n.Content[i+1])
		if d.left--; d.left < 0 {
			return nil, errBomb
		}
		if key.Tag == "!!merge" {
			more, err := d.merge(val)
			if err != nil {
				return nil, err
			}
			merged = append(merged, more...)
			continue
		}
		list = append(list, entry{d.follow(key).Value, val})
	}
	for _, m := range merged {
		if !slices.ContainsFunc(list, func(e entry) bool { return e.key == m.key }) {
			list = append(list, m)
		}
	}
	return list, nil
}

// merge lists what a merge key brings: a mapping or several.
func (d *document) merge(n *yaml.Node) ([]entry, error) {
	if n.Kind != yaml.SequenceNode {
		return d.entries(n)
	}
	var list []entry
	for _, one := range n.Content {
		more, err := d.entries(one)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// list is the texts of a list; nothing is an empty one.
func (d *document) list(n *yaml.Node) (texts []string, err error) {
	if n = d.follow(n); isNull(n) {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, errNoList
	}
	for _, one := range n.Content {
		if one = d.follow(one); one.Kind != yaml.ScalarNode {
			return nil, errNoList
		}
		if d.left--; d.left < 0 {
			return nil, errBomb
		}
		texts = append(texts, one.Value)
	}
	return texts, nil
}

// members are the hosts or the children of a group.
func (d *document) members(n *yaml.Node) (list []entry, err error) {
	if !d.listing {
		return d.entries(n)
	}
	names, err := d.list(n)
	for _, name := range names {
		list = append(list, entry{key: name})
	}
	return list, err
}

// valueOf is the value of a variable.
func (d *document) valueOf(n *yaml.Node) value {
	switch n = d.follow(n); {
	case isNull(n):
		return value{null: true}
	case n.Tag == "!vault":
		return value{problem: "is encrypted with ansible-vault"}
	case n.Kind != yaml.ScalarNode:
		return value{problem: "is no single value"}
	}
	return value{text: n.Value}
}

// parseVars reads a file of variables.
func parseVars(text string) (vars, error) {
	d, root, err := parseYAML(text)
	if err != nil {
		return nil, err
	}
	known := vars{}
	return known, d.varsInto(known, root)
}

func (d *document) varsInto(known vars, n *yaml.Node) error {
	list, err := d.entries(n)
	for _, e := range list {
		known.set(e.key, d.valueOf(e.value))
	}
	return err
}

// readYAML adds what a YAML inventory says; errors name the file.
func (v *Inventory) readYAML(name, text string) error {
	d, root, err := parseYAML(text)
	if err == nil {
		err = v.addGroups(d, root)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (v *Inventory) addGroups(d *document, root *yaml.Node) error {
	if isNull(root) {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		return errors.New("want groups, such as all: {hosts: {web1: {}}}")
	}
	list, err := d.entries(root)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(e entry) bool { return e.key == hostVars }) {
		return v.addListing(d, list)
	}
	for _, e := range list {
		if e.key == "plugin" && e.value != nil && e.value.Kind == yaml.ScalarNode {
			return errPlugin
		}
		if err := v.yamlGroup(d, e, 0); err != nil {
			return err
		}
	}
	return nil
}

func (v *Inventory) yamlGroup(d *document, e entry, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("groups are nested more than %d deep", maxNesting)
	}
	g := v.group(e.key)
	if n := d.follow(e.value); n != nil && n.Kind == yaml.ScalarNode && !isNull(n) {
		return fmt.Errorf("line %d: group %q: want hosts, children or vars", n.Line, e.key)
	} else if d.listing && n != nil && n.Kind == yaml.SequenceNode {
		return v.yamlPart(d, g, entry{"hosts", n}, depth)
	}
	parts, err := d.entries(e.value)
	for _, part := range parts {
		if err == nil {
			err = v.yamlPart(d, g, part, depth)
		}
	}
	return err
}

func (v *Inventory) yamlPart(d *document, g *group, part entry, depth int) error {
	switch part.key {
	case "vars":
		return d.varsInto(g.vars, part.value)
	case "hosts", "children":
	default:
		if !d.listing {
			v.warn("group %s: %q means nothing there", g.name, part.key)
		}
		return nil
	}
	list, err := d.members(part.value)
	if err != nil {
		return fmt.Errorf("%s of group %q: %w", part.key, g.name, err)
	}
	for _, e := range list {
		if part.key == "hosts" {
			err = v.yamlHosts(d, g, e)
		} else if err = v.addChild(g.name, e.key); err == nil {
			err = v.yamlGroup(d, e, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *Inventory) yamlHosts(d *document, g *group, e entry) error {
	known := vars{}
	if err := d.varsInto(known, e.value); err != nil {
		return err
	}
	if d.listing {
		_, err := v.addHost(g, e.key)
		return err
	}
	return v.addHosts(g, e.key, known)
}
