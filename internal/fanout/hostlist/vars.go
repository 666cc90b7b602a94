package hostlist

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout/expand"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/sys/file"
)

// vars are variables of a group or host by name.
type vars map[string]value

// value is the text of a variable, or the reason why it is unreadable. null is a variable that
// counts as missing, unlike an empty text.
type value struct {
	text, problem string
	null          bool
}

// Variables with the same meaning; a later one wins, as in Ansible's connection plugin "ssh".
var (
	addressVars   = []string{"ansible_host", "ansible_ssh_host"}
	portVars      = []string{"ansible_port", "ansible_ssh_port"}
	userVars      = []string{"ansible_user", "ansible_ssh_user"}
	priorityVar   = "ansible_group_priority"
	connectionVar = "ansible_connection"
	executableVar = "ansible_ssh_executable"
)

func (v vars) set(name string, val value) {
	switch {
	case strings.Contains(val.text, "{{"):
		val = value{problem: "is a template"}
	case len(val.text) > expand.MaxValue: // nobody can use it: it is not kept
		val = value{problem: "is longer than 100 KiB"}
	}
	v[name] = val
}

// last returns the value of the last of the names that has one.
func (v vars) last(names []string) (string, error) {
	for _, name := range slices.Backward(names) {
		val, ok := v[name]
		if !ok || val.null {
			continue
		}
		if val.problem != "" {
			return "", fmt.Errorf("%s %s, which only Ansible can read; ansible-inventory --list --yaml writes its value", name, val.problem)
		}
		return val.text, nil
	}
	return "", nil
}

// Variables looks up variables of a host: the result has the known ones.
func (v *Inventory) Variables(h host.Host, names []string) (map[string]string, error) {
	if v.hosts[h.Name] == nil {
		return nil, nil
	}
	known, err := v.effective(h.Name)
	found := map[string]string{}
	for _, name := range names {
		if val, has := known[name]; has && !val.null && err == nil {
			found[name], err = known.last([]string{name})
		}
	}
	return found, err
}

// complete sets the address of h, and the user and the port where h has none, from the inventory's
// variables. A host named with its address gets the settings alone.
func (v vars) complete(h *host.Host, a *arguments) (err error) {
	address, err := v.last(addressVars)
	if err != nil {
		return err
	}
	if h.Address != "" {
		if h.Address == cmp.Or(address, h.Name) {
			h.Settings = strings.Join(a.settings, "\n")
		}
		return nil
	}
	h.Settings = strings.Join(a.settings, "\n")
	if address != h.Name {
		h.Address = address
	}
	if h.User == "" {
		h.User = a.user
		if h.Known = h.User != "" && h.Port == 0; h.Known {
			h.Address = cmp.Or(h.Address, h.Name) // the name implies the user, too
		}
	}
	if h.Port == 0 && a.port != "" {
		h.Port, err = host.ParsePort(a.port)
		h.Address = cmp.Or(h.Address, h.Name) // the name implies the port, too
	}
	return cmp.Or(err, h.Check())
}

// overSSH are the connection plugins of Ansible's that go to sshd.
var overSSH = []string{"", "ssh", "smart", "paramiko", "paramiko_ssh"}

// connection returns an error for a host that is not reached by ssh; it is left out.
func (v *Inventory) connection(name string, known vars) error {
	c, err := known.last([]string{connectionVar})
	if err != nil || slices.Contains(overSSH, strings.TrimPrefix(c, "ansible.builtin.")) {
		return err
	}
	v.others[c] = append(v.others[c], name)
	return hostset.ErrLeftOut
}

// effective returns the variables that apply to a host: those of the inventory's groups, then those
// of group_vars, then the host's own, then those of host_vars. A group wins over the groups above
// it.
func (v *Inventory) effective(name string) (vars, error) {
	groups := v.groupsOf(name)
	all := vars{}
	for _, g := range groups {
		maps.Copy(all, v.groups[g].vars)
	}
	if err := v.adjacentInto(all, "group_vars", allGroup); err != nil {
		return nil, err
	}
	if err := v.adjacentInto(all, "group_vars", groups[1:]...); err != nil {
		return nil, err
	}
	maps.Copy(all, v.hosts[name].vars)
	return all, v.adjacentInto(all, "host_vars", name)
}

// groupsOf lists the groups of a host and those above them, in the order in which their variables
// are merged: by depth, priority and name, "all" first.
func (v *Inventory) groupsOf(name string) []string {
	chosen := v.hosts[name].chosen()
	if len(chosen) == 0 {
		chosen = []string{ungrouped}
	}
	in := v.upwards(append(chosen, allGroup))
	v.measureDepths()
	return slices.SortedFunc(maps.Keys(in), func(a, b string) int {
		return cmp.Or(cmp.Compare(v.depth[a], v.depth[b]), cmp.Compare(v.groups[a].priority(), v.groups[b].priority()), cmp.Compare(a, b))
	})
}

// measureDepths finds out how many groups are above each group, on the longest path from all.
func (v *Inventory) measureDepths() {
	if v.depth != nil {
		return
	}
	v.depth = map[string]int{allGroup: 0}
	for name := range v.groups {
		v.depthOf(name)
	}
}

func (v *Inventory) depthOf(name string) int {
	d, known := v.depth[name]
	if !known {
		d = 1
		for _, parent := range v.groups[name].parents {
			d = max(d, v.depthOf(parent)+1)
		}
		v.depth[name] = d
	}
	return d
}

// priority returns Ansible's ansible_group_priority, 1 if it is not set.
func (g *group) priority() int {
	if n, err := strconv.Atoi(g.vars[priorityVar].text); err == nil {
		return n
	}
	return 1
}

// adjacentInto merges the variables of a directory such as group_vars for some names into known,
// one inventory's after the other's.
func (v *Inventory) adjacentInto(known vars, directory string, names ...string) error {
	for _, a := range v.adjacent {
		for _, name := range names {
			found, err := v.adjacentVars(a, directory, name)
			if err != nil {
				return err
			}
			maps.Copy(known, found)
		}
	}
	return nil
}

// adjacentVars reads the first of NAME, NAME.yml, NAME.yaml and NAME.json that exists; of a
// directory it reads all files, in order. A name that leads out of the directory, such as "..", has
// none.
func (v *Inventory) adjacentVars(a adjacentVars, directory, name string) (vars, error) {
	if name == "." || !fs.ValidPath(name) {
		return nil, nil
	}
	name = path.Join(directory, name)
	if known, ok := a.read[name]; ok {
		return known, nil
	}
	found := vars{}
	a.read[name] = found
	for _, ending := range []string{"", ".yml", ".yaml", ".json"} {
		info, err := fs.Stat(a.dir, name+ending)
		switch {
		case err != nil:
			continue
		case info.IsDir():
			return found, v.varsDirectory(a.dir, name+ending, found)
		}
		return found, v.varsFile(a.dir, name+ending, found)
	}
	return found, nil
}

func (v *Inventory) varsDirectory(dir fs.FS, name string, into vars) error {
	return fs.WalkDir(dir, name, func(file string, d fs.DirEntry, err error) error {
		base := path.Base(file)
		ending := path.Ext(base)
		hidden := strings.HasPrefix(base, ".") || strings.HasSuffix(base, "~")
		switch {
		case err != nil || file == name:
			return err
		case d.IsDir() && (hidden || ending != ""):
			return fs.SkipDir
		case d.IsDir() || hidden || ending != "" && !slices.Contains(yamlEndings, ending):
			return nil
		}
		return v.varsFile(dir, file, into)
	})
}

func (v *Inventory) varsFile(dir fs.FS, name string, into vars) error {
	text, err := readFile(dir, name)
	if err != nil {
		return err
	}
	read, err := parseVars(text, warner(v.warn).in(name))
	switch {
	case errors.Is(err, errVault):
		v.warn("%s is encrypted with ansible-vault and not read", name)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	maps.Copy(into, read)
	return nil
}

func readFile(dir fs.FS, name string) (string, error) {
	f, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := file.ReadAll(f, name, file.Config)
	if err != nil {
		return "", err
	}
	return plain(text, name)
}

// plain returns a text without the mark that editors of Windows put before it.
func plain(text []byte, name string) (string, error) {
	return strings.TrimPrefix(string(text), hostset.ByteOrderMark), file.Wide(text, name)
}
