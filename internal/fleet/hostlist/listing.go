package hostlist

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// hostVars is the name under which programs that answer for inventories, among
// them ansible-inventory --list, write the variables of all hosts.
const hostVars = "_meta"

// addListing adds what such a program wrote: groups with lists of hosts and of
// groups, and what is known of each host. Names are no patterns there.
func (v *Inventory) addListing(d *document, groups []entry) error {
	var meta *yaml.Node
	for _, e := range groups {
		if e.key == hostVars {
			meta = e.value
		} else if err := v.listedGroup(d, e); err != nil {
			return fmt.Errorf("group %q: %w", e.key, err)
		}
	}
	about, err := d.entries(meta)
	for _, e := range about {
		if e.key == "hostvars" && err == nil {
			err = v.listedVars(d, e.value)
		}
	}
	return err
}

// listedGroup adds one group: a mapping, or only the list of its hosts.
func (v *Inventory) listedGroup(d *document, e entry) error {
	g := v.group(e.key)
	parts := []entry{{"hosts", e.value}}
	if n := d.follow(e.value); n == nil || n.Kind != yaml.SequenceNode {
		var err error
		if parts, err = d.entries(n); err != nil {
			return err
		}
	}
	for _, part := range parts {
		if err := v.listedPart(d, g, part); err != nil {
			return fmt.Errorf("%s: %w", part.key, err)
		}
	}
	return nil
}

func (v *Inventory) listedPart(d *document, g *group, part entry) error {
	add := map[string]func(name string) error{
		"hosts":    func(name string) error { _, err := v.addHost(g, name); return err },
		"children": func(name string) error { return v.addChild(g.name, name) },
	}[part.key]
	switch {
	case part.key == "vars":
		return d.varsInto(g.vars, part.value)
	case add == nil:
		return nil
	}
	names, err := d.list(part.value)
	for _, name := range names {
		if err == nil {
			err = add(name)
		}
	}
	return err
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
