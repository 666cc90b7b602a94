package hostlist

import (
	"go.yaml.in/yaml/v3"
)

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
	about, err := d.entries(meta)
	for _, e := range about {
		if e.key == "hostvars" && err == nil {
			err = v.listedVars(d, e.value)
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
