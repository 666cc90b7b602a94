package hostlist

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet/hostset"
)

// Inventory is an Ansible inventory, or several together. Its groups are @all, @ungrouped and the
// named ones.
type Inventory struct {
	groups   map[string]*group
	order    []string            // of groups, as they were first named
	hosts    map[string]*member  // by the name that the inventory gives them
	names    []string            // of hosts, as they were first named
	files    []string            // for messages
	adjacent []adjacentVars      // group_vars and host_vars
	depth    map[string]int      // of groups, memo
	others   map[string][]string // hosts that were left out, by their kind of connection
	warnings []string
	seen     map[[2]string]bool // warnings, and what stands in which group

	perHost func(host string) (string, error) // asks the script that is read about one host; nil: none is
}

var _ hostset.Groups = (*Inventory)(nil)

// group is one group; all other groups are below "all".
type group struct {
	name     string
	hosts    []string
	children []string
	parents  []string
	vars     vars
}

type member struct {
	groups []string // that name it directly
	vars   vars
}

const (
	allGroup  = "all"
	ungrouped = "ungrouped"

	maxAbove = 1000 // groups above one
)

// New returns an inventory without hosts.
func New() *Inventory {
	v := &Inventory{groups: map[string]*group{}, hosts: map[string]*member{}, others: map[string][]string{}, seen: map[[2]string]bool{}}
	v.group(allGroup)
	v.group(ungrouped)
	return v
}

// Warnings lists the lines of the files that have no effect here, and the hosts that are left out.
func (v *Inventory) Warnings() []string {
	all := slices.Clone(v.warnings)
	for _, kind := range sortedKeys(v.others) {
		all = append(all, fmt.Sprintf("left out, as ansible_connection is %s and not ssh: %s", kind, hostset.Fold(v.others[kind])))
	}
	return all
}

func (v *Inventory) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !v.seen[[2]string{text}] {
		v.seen[[2]string{text}] = true
		v.warnings = append(v.warnings, text)
	}
}

// group finds a group, and makes it if necessary.
func (v *Inventory) group(name string) *group {
	g := v.groups[name]
	if g == nil {
		g = &group{name: name, vars: vars{}}
		v.groups[name] = g
		v.order = append(v.order, name)
	}
	return g
}

// addHost makes a host a member of a group.
func (v *Inventory) addHost(g *group, name string) (*member, error) {
	if err := host.CheckName(name); err != nil {
		return nil, fmt.Errorf("host %q: %w", name, err)
	}
	m := v.hosts[name]
	if m == nil {
		m = &member{vars: vars{}}
		v.hosts[name] = m
		v.names = append(v.names, name)
	}
	if in := [2]string{g.name, name}; !v.seen[in] {
		v.seen[in] = true
		m.groups = append(m.groups, g.name)
		g.hosts = append(g.hosts, name)
	}
	return m, nil
}

// addChild puts a group below another. Groups in a circle are an error.
func (v *Inventory) addChild(parent, child string) error {
	p, c := v.group(parent), v.group(child)
	switch above := v.upwards([]string{parent}); {
	case above[child]:
		return fmt.Errorf("group %q is below itself", child)
	case len(above) > maxAbove:
		return fmt.Errorf("group %q is below more than %d others", child, maxAbove)
	}
	if in := [2]string{parent, "@" + child}; !v.seen[in] {
		v.seen[in] = true
		p.children, c.parents, v.depth = append(p.children, child), append(c.parents, parent), nil
	}
	return nil
}

// upwards returns groups and all groups above them.
func (v *Inventory) upwards(groups []string) map[string]bool {
	in := map[string]bool{}
	for open := slices.Clone(groups); len(open) > 0; {
		name := open[len(open)-1]
		open = open[:len(open)-1]
		if !in[name] {
			in[name] = true
			open = append(open, v.groups[name].parents...)
		}
	}
	return in
}

// Names lists the groups.
func (v *Inventory) Names(source string) ([]string, error) {
	if source != "" {
		return nil, fmt.Errorf("an inventory has no groups of source %q", source)
	}
	return slices.Clone(v.order), nil
}

// Group lists the hosts of a group and of the groups below it.
func (v *Inventory) Group(source, name string) ([]string, error) {
	if source != "" || v.groups[name] == nil {
		return nil, &hostset.UnknownGroupError{Group: name, Where: strings.Join(v.files, ", "), Known: v.order}
	}
	if name == allGroup {
		return slices.Clone(v.names), nil
	}
	seen := map[string]bool{}
	var hosts []string
	v.collect(name, func(h string) {
		if !seen[h] {
			seen[h] = true
			hosts = append(hosts, h)
		}
	}, map[string]bool{})
	return hosts, nil
}

func (v *Inventory) collect(name string, add func(string), visited map[string]bool) {
	if visited[name] {
		return
	}
	visited[name] = true
	g := v.groups[name]
	for _, h := range v.members(g) {
		add(h)
	}
	for _, child := range g.children {
		v.collect(child, add, visited)
	}
}

// members returns the hosts of a group itself. In "ungrouped" are those that no other group names
// but "all", wherever they stand in the files.
func (v *Inventory) members(g *group) []string {
	if g.name != ungrouped {
		return g.hosts
	}
	return slices.DeleteFunc(slices.Clone(v.names), func(name string) bool { return len(v.hosts[name].chosen()) > 0 })
}

// chosen returns the informative groups of a host: neither "all" nor "ungrouped".
func (m *member) chosen() []string {
	return slices.DeleteFunc(slices.Clone(m.groups), func(g string) bool { return g == allGroup || g == ungrouped })
}

// isGroup reports whether a name is that of a group and of no host.
func (v *Inventory) isGroup(name string) bool {
	return len(v.files) > 0 && v.groups[name] != nil && v.hosts[name] == nil
}

// Hosts lists all hosts in the order of the files.
func (v *Inventory) Hosts() []string { return slices.Clone(v.names) }

// Complete fills in address, user, port and settings of a host of the inventory, unless h has them.
func (v *Inventory) Complete(h *host.Host) error {
	if v.hosts[h.Name] == nil {
		return nil
	}
	known, err := v.effective(h.Name)
	if err != nil {
		return err
	}
	err = v.connection(h.Name, known)
	if errors.Is(err, hostset.ErrLeftOut) {
		return err
	}
	a := &arguments{}
	if err == nil {
		a, err = known.arguments(h)
	}
	if err == nil {
		err = known.complete(h, a)
	}
	if err != nil {
		return fault.WithHint(fmt.Errorf("%s in %s: %w", h.Name, strings.Join(v.files, ", "), err), "correct that host in the inventory")
	}
	if _, ok := known[executableVar]; ok {
		a.unused = append(a.unused, executableVar)
	}
	for _, word := range a.unused {
		v.warn("%s is not used from an inventory; ssh_config can have it", word)
	}
	return nil
}

// Named leaves out the hosts that Complete leaves out, and fills in nothing.
func (v *Inventory) Named(h *host.Host) error {
	if v.hosts[h.Name] == nil {
		return nil
	}
	known, err := v.effective(h.Name)
	if err == nil && errors.Is(v.connection(h.Name, known), hostset.ErrLeftOut) {
		return hostset.ErrLeftOut
	}
	return nil
}

// adjacentVars are the directories group_vars and host_vars next to an inventory.
type adjacentVars struct {
	dir  fs.FS
	read map[string]vars // by path below dir, memo
}

// sortedKeys lists the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
