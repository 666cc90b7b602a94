package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"sshpace/internal/history"
	"sshpace/internal/host"
	"sshpace/internal/hostset"
)

// hostFlags say which hosts a command is for. The letters are those of clush
// and pdsh.
type hostFlags struct {
	sets    []string
	exclude []string
	files   []string
	labels  []string
	groups  string
	rerun   string
}

func (f *hostFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.sets, "hosts", "w", nil, "hosts: web[1-9], a,b!c, @group, @last:failed, web*; - reads a hosts file from stdin; repeatable")
	flags.StringArrayVarP(&f.exclude, "exclude", "x", nil, "hosts to leave out, written as for -w; repeatable")
	flags.StringArrayVar(&f.files, "hosts-file", nil, "file with hosts, one set a line, %label begins a section; - is stdin; repeatable")
	flags.StringArrayVar(&f.labels, "label", nil, "only hosts under this %label of the hosts files; repeatable")
	flags.StringVar(&f.groups, "groups", "", "file with lines of `group: set` (default sshpace/groups in the configuration folder)")
	flags.StringVar(&f.rerun, "rerun", "", "hosts of the last run: failed, unreachable, unknown, unfinished, not-started, ok or all")
}

// readsStdin reports whether the hosts come from standard input.
func (f *hostFlags) readsStdin() bool {
	for _, list := range [][]string{f.sets, f.files} {
		for _, name := range list {
			if name == "-" {
				return true
			}
		}
	}
	return false
}

// hosts returns the hosts that the flags name. known lists the names that
// * and ? choose from, such as those of ssh_config; nil leaves only groups.
func (f *hostFlags) hosts(sys System, store *history.Store, known func() ([]string, error)) ([]host.Host, error) {
	groups, err := f.readGroups(sys)
	if err != nil {
		return nil, usageError("see FILES in the manual for the format", "%s", err)
	}
	sel := hostset.Selection{Exclude: f.exclude, Labels: f.labels, Options: hostset.Options{
		Groups: hostset.Sources{"": groups, "last": history.LastRun{Store: store}}, Known: known,
	}}
	names := f.files
	for _, set := range f.sets {
		if set == "-" {
			names = append(names, set)
			continue
		}
		sel.Sets = append(sel.Sets, set)
	}
	if f.rerun != "" {
		sel.Sets = append(sel.Sets, "@last:"+f.rerun)
	}
	if sel.Files, err = readHostsFiles(sys, names); err != nil {
		return nil, usageError("name a file with one host a line", "%s", err)
	}
	hosts, err := sel.Hosts()
	if err != nil {
		return nil, usageError("see sshpace run --help for how hosts are written", "%s", err)
	}
	return hosts, nil
}

// readGroups reads the file that was named, or the usual one if it exists.
func (f *hostFlags) readGroups(sys System) (hostset.Groups, error) {
	path := f.groups
	if path == "" {
		path = filepath.Join(configDir(sys.Getenv), "groups")
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && f.groups == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return hostset.ReadGroups(file, path)
}

// configDir is sshpace in $XDG_CONFIG_HOME, which is ~/.config by default.
func configDir(getenv func(string) string) string {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(getenv("HOME"), ".config")
	}
	return filepath.Join(dir, "sshpace")
}

func readHostsFiles(sys System, names []string) ([]*hostset.HostsFile, error) {
	var files []*hostset.HostsFile
	for _, name := range names {
		f, err := readHostsFile(sys.Stdin, name)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func readHostsFile(stdin io.Reader, name string) (*hostset.HostsFile, error) {
	if name == "-" {
		return hostset.ReadHosts(stdin, "stdin")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return hostset.ReadHosts(file, name)
}
