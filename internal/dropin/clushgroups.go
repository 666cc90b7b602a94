package dropin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/shell"
	"sshpace/internal/fanout/hostlist"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/sys/file"
)

// clushConf is clush.conf or groups.conf as Python's configparser reads it: values by section and
// key, and the directory of the file as CFGDIR.
type clushConf map[string]map[string]string

// readClushConf reads the named file, or those in the usual places, of which later ones win, and
// then the files of confdir.
func readClushConf(env Env, named, usual string) clushConf {
	c, names := clushConf{"Main": {}}, []string{named}
	if named == "" {
		config := cmp.Or(env.Getenv("XDG_CONFIG_HOME"), env.Home+"/.config") + "/clustershell"
		names = nil
		for _, dir := range []string{"/etc/clustershell", env.Home + "/.local/etc/clustershell", "/usr/etc/clustershell", config, cmp.Or(env.Getenv("CLUSTERSHELL_CFGDIR"), config)} {
			names = append(names, filepath.Join(dir, usual))
		}
	}
	for _, name := range names {
		if c.read(name) {
			c["Main"]["CFGDIR"] = filepath.Dir(name)
		}
	}
	for _, values := range c {
		values["CFGDIR"] = c["Main"]["CFGDIR"]
	}
	for _, name := range c.files("confdir", "*.conf") {
		c.read(name)
	}
	return c
}

// read adds a file, if it can be read, as in the original.
func (c clushConf) read(name string) bool {
	data, err := file.ReadFile(name, file.Config)
	section, key := "Main", ""
	for line := range strings.Lines(string(data)) {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#' || text[0] == ';':
		case line[0] != text[0]: // an indented line continues the value
			c[section][key] += "\n" + text
		case text[0] == '[':
			if section, key = strings.Trim(text, "[]"), ""; c[section] == nil {
				c[section] = map[string]string{"CFGDIR": filepath.Dir(name)}
			}
		default:
			at := strings.IndexAny(text+":", ":=")
			key = strings.TrimSpace(text[:at])
			c[section][key] = strings.TrimSpace((text + " ")[at+1:])
		}
	}
	return err == nil
}

// files returns those that match in the directories of a setting.
func (c clushConf) files(key, pattern string) (names []string) {
	dirs, _ := shell.Split(c.fill("Main", c["Main"][key], ""))
	for _, dir := range dirs {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is right
		names = append(names, slices.DeleteFunc(found, func(name string) bool { return slices.Contains(names, name) })...)
	}
	return names
}

// fill replaces $CFGDIR, $SOURCE and $GROUP, also in braces, and $$.
func (c clushConf) fill(source, text, group string) string {
	pairs := []string{"$$", "$"}
	for name, value := range map[string]string{"CFGDIR": c[source]["CFGDIR"], "SOURCE": source, "GROUP": group} {
		pairs = append(pairs, "$"+name, value, "${"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// groups returns the sources of groups: YAML files in autodir, and commands; -s answers plain
// @group, or the default.
func (c *clush) groups(ctx context.Context, env Env) (hostset.Sources, error) {
	conf, sources := readClushConf(env, c.GroupsConf, "groups.conf"), hostset.Sources{}
	files := hostlist.NewGroupFiles(func(format string, args ...any) { fmt.Fprintf(env.Stderr, "clush: "+format+"\n", args...) })
	for _, name := range conf.files("autodir", "*.yaml") {
		if err := files.Add(name); err != nil {
			return nil, err
		}
	}
	files.Into(sources, func(string, hostset.Groups) {})
	for name, groups := range sources {
		sources[name] = clushFile{groups}
	}
	for section, values := range conf {
		for name := range strings.SplitSeq(section, ",") {
			conf[name] = values
			sources[name] = hostlist.NewUpcalls(ctx, func(group string) string { return conf.upcall(name, group) })
		}
	}
	delete(sources, "Main")
	source := cmp.Or(c.Source, conf["Main"]["default"])
	if all := slices.Sorted(maps.Keys(sources)); source == "" && len(all) > 0 {
		source = all[0]
	}
	if sources[""] = sources[source]; source != "" && sources[""] == nil {
		return nil, &errUsage{fmt.Sprintf("Unknown group source: \"%s\"", source)}
	}
	return sources, nil
}

// upcall returns the command line that prints the nodes of a group, for * all nodes, and for "" the
// names of the groups. A name becomes part of the line: one with characters of a shell is refused.
func (c clushConf) upcall(source, group string) string {
	line := c[source]["map"]
	switch all := c[source]["all"]; {
	case group == "*":
		line = all
	case group == "" && all != "":
		return "echo '*'"
	case group == "":
		line = cmp.Or(c[source]["list"], "echo the source has neither all nor list >&2; exit 1")
	case strings.ContainsAny(group, "'\"`$\\;|&<>(){}~*?#! \t\n"):
		return "echo the name has a character of the shell >&2; exit 1"
	}
	return "cd " + shell.Quote(c[source]["CFGDIR"]) + " || exit\n" + c.fill(source, line, group)
}

// clushFile is a source in a YAML file, whose group all has all nodes, if it exists.
type clushFile struct{ hostset.Groups }

// Names returns the groups that have all nodes.
func (f clushFile) Names(source string) ([]string, error) {
	names, err := f.Groups.Names(source)
	if slices.Contains(names, "all") {
		names = []string{"all"}
	}
	return names, err
}
