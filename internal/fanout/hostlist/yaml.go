package hostlist

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"go.yaml.in/yaml/v3"

	"sshpace/internal/base/sched"
)

// yamlEndings are the names of YAML files; JSON is YAML.
var yamlEndings = []string{".yml", ".yaml", ".json"}

var (
	errVault     = errors.New("the file is encrypted with ansible-vault")
	errPlugin    = errors.New("the file configures an inventory plugin of Ansible's")
	errBomb      = errors.New("aliases make more than a million entries of the file")
	errDocuments = errors.New("a second document begins after ---, and a file may hold one")
	errNoList    = errors.New("want a list of names")
)

const (
	maxEntries = 1 << 20 // of a document, aliases written out
	maxNesting = 64      // of groups
	maxDepth   = 1000    // of a document, aliases written out
)

// document is a YAML file whose aliases are followed with care.
type document struct {
	left    int
	listing bool     // hosts and children of a group are lists of names, not patterns
	named   []string // hosts of such groups
	json    bool
	warn    warner
}

// warner receives warnings about lines without an effect.
type warner func(format string, args ...any)

// in adds the name of the file to warnings.
func (w warner) in(file string) warner {
	return func(format string, args ...any) { w("%s: %s", file, fmt.Sprintf(format, args...)) }
}

// parseYAML reads a file; a nil node is an empty one, or together with an error not YAML at all.
func parseYAML(text string, warn warner) (*document, *yaml.Node, error) {
	d := &document{left: maxEntries, warn: warn}
	if strings.HasPrefix(text, "$ANSIBLE_VAULT;") {
		return nil, nil, errVault
	}
	if root, err := parseJSON(text); root != nil || err != nil {
		d.json = true
		return d, root, err
	}
	var root, second yaml.Node
	documents := yaml.NewDecoder(strings.NewReader(text))
	switch err := documents.Decode(&root); {
	case errors.Is(err, io.EOF):
		return d, nil, nil
	case err != nil:
		return nil, nil, err
	}
	if len(root.Content) == 0 {
		return d, nil, nil
	}
	_, err := depths{}.of(root.Content[0], 0)
	if after := documents.Decode(&second); !errors.Is(after, io.EOF) {
		err = cmp.Or(after, errDocuments)
	}
	return d, root.Content[0], err
}

// depths are those of nodes with others in them; 0 during the computation.
type depths map[*yaml.Node]int

// of computes the depth of a node, itself level levels below the top. An alias inside itself, which
// has no end, is an error, and so is a depth that no inventory has.
func (d depths) of(n *yaml.Node, level int) (depth int, err error) {
	depth, seen := d[n]
	switch {
	case n.Kind == yaml.ScalarNode:
		return 1, nil
	case seen && depth == 0:
		return 0, fmt.Errorf("line %d: an alias is inside its own anchor", n.Line)
	case level+depth > maxDepth:
		return 0, fmt.Errorf("line %d: nested more than %d deep", n.Line, maxDepth)
	case seen:
		return depth, nil
	}
	d[n] = 0
	inside := n.Content
	if n.Kind == yaml.AliasNode {
		inside = []*yaml.Node{n.Alias}
	}
	for _, child := range inside {
		below, err := d.of(child, level+1)
		if err != nil {
			return 0, err
		}
		depth = max(depth, below)
	}
	d[n] = depth + 1
	return depth + 1, nil
}

// entry is a key with its value.
type entry struct {
	key   string
	value *yaml.Node
}

func isNull(n *yaml.Node) bool { return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func (d *document) follow(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// entries lists a mapping, with merge keys (<<) expanded; a scalar is a key without value, as in
// Ansible, and an empty node is an empty mapping.
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
	place := map[string]int{} // in list
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
		e := entry{d.follow(key).Value, val}
		if at, twice := place[e.key]; twice {
			d.warn("line %d: %q occurs a second time, and only the last one counts", key.Line, e.key)
			list[at] = e
			continue
		}
		place[e.key] = len(list)
		list = append(list, e)
	}
	for _, m := range merged {
		if _, own := place[m.key]; !own {
			place[m.key] = len(list)
			list = append(list, m)
		}
	}
	return list, nil
}

// merge lists the entries of a merge key: a mapping or several.
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

// list returns the texts of a list; an empty node is an empty one.
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

// members returns the hosts or the children of a group.
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

func (d *document) valueOf(n *yaml.Node) value {
	switch n = d.follow(n); {
	case isNull(n):
		return value{null: true}
	case n.Tag == "!vault" || n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "__ansible_vault":
		return value{problem: "is encrypted with ansible-vault"}
	case n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "__ansible_unsafe":
		return d.valueOf(n.Content[1]) // so ansible-inventory writes texts that are no templates
	case n.Kind != yaml.ScalarNode:
		return value{problem: "is not a single value"}
	}
	if number := 0; n.Tag == "!!int" && n.Decode(&number) == nil { // such as 0x16, or 0026 for 22
		return value{text: strconv.Itoa(number)}
	}
	return value{text: n.Value}
}

// parseVars reads a file of variables.
func parseVars(text string, warn warner) (vars, error) {
	d, root, err := parseYAML(text, warn)
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

// readYAML adds the content of a YAML inventory; errors name the file.
func (v *Inventory) readYAML(name, text string) error {
	d, root, err := parseYAML(text, warner(v.warn).in(name))
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
	if slices.ContainsFunc(list, d.listed) {
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

// listed reports whether an entry is one of the listings of programs: the variables of all hosts,
// or a list of hosts in JSON.
func (d *document) listed(e entry) bool {
	isList := func(n *yaml.Node) bool { return n != nil && n.Kind == yaml.SequenceNode }
	if e.key == hostVars || !d.json || e.value.Kind != yaml.MappingNode {
		return e.key == hostVars || d.json && isList(e.value)
	}
	parts, _ := d.entries(e.value)
	return slices.ContainsFunc(parts, func(part entry) bool { return part.key != "vars" && isList(part.value) })
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
		d.named = append(d.named, e.key)
		_, err := v.addHost(g, e.key)
		return err
	}
	return v.addHosts(g, e.key, known)
}

// hostVars is the key under which programs that answer for inventories, among them
// ansible-inventory --list, write the variables of all hosts.
const hostVars = "_meta"

// addListing adds the output of such a program: groups with lists of hosts and of groups, and the
// variables of each host.
func (v *Inventory) addListing(d *document, groups []entry) error {
	d.listing = true
	var meta *yaml.Node
	for _, e := range groups {
		if e.key == hostVars {
			meta = e.value
		} else if err := v.yamlGroup(d, e, 0); err != nil {
			return err
		}
	}
	if meta == nil && v.perHost != nil {
		return v.askHosts(d)
	}
	if meta == nil {
		d.warn("no %s: the hosts have no variables of their own", hostVars)
	}
	about, err := d.entries(meta)
	for _, e := range about {
		if e.key == "hostvars" && err == nil {
			err = v.listedVars(d, e.value)
		}
	}
	return err
}

// scriptsAtOnce bounds how many hosts a script is asked about at the same time.
const scriptsAtOnce = 8

// askHosts asks a script about each host that it has listed: older ones write no hostVars.
func (v *Inventory) askHosts(d *document) error {
	slices.Sort(d.named)
	names := slices.Compact(d.named)
	answers, errs := make([]string, len(names)), make([]error, len(names))
	var failed atomic.Bool
	sched.Do(scriptsAtOnce, len(names), func(i int) {
		if !failed.Load() {
			answers[i], errs[i] = v.perHost(names[i])
			failed.CompareAndSwap(false, errs[i] != nil)
		}
	})
	for i, name := range names {
		about, n, err := (*document)(nil), (*yaml.Node)(nil), errs[i]
		if err == nil {
			about, n, err = parseYAML(answers[i], d.warn)
		}
		if err == nil {
			err = about.varsInto(v.hosts[name].vars, n)
		}
		if err != nil {
			return fmt.Errorf("--host %s: %w", name, err)
		}
	}
	return nil
}

func (v *Inventory) listedVars(d *document, n *yaml.Node) error {
	known, err := d.entries(n)
	for _, e := range known {
		if m := v.hosts[e.key]; m != nil && err == nil {
			err = d.varsInto(m.vars, e.value)
		}
	}
	return err
}
