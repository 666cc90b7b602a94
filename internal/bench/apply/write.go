package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/sys/file"

	"sshpace/internal/sys/safedir"
)

// dropIn is the name of a file of ours in a folder that a configuration
// includes: it sorts first, because the first value wins.
const dropIn = "00-sshpace.conf"

// defaultServerConfig is where sshd looks where it was built as usual.
const defaultServerConfig = "/etc/ssh/sshd_config"

// reloadSSHD is said of each change of sshd_config.
const reloadSSHD = "# sshd reads it after systemctl reload ssh; keep a session open until a new login works"

// explain says what to do about a file that cannot be written.
func explain(err error) error {
	if _, ok := errors.AsType[*safedir.UntrustedError](err); ok {
		return fault.WithHint(err, "make the directory and the file yours alone, such as with chmod go-w, then try again")
	}
	for cause, hint := range map[error]string{
		file.ErrChanged: "try again",
		syscall.EACCES:  "you may not write there: run it as the owner of the file, or copy the lines by hand",
		syscall.EPERM:   "the file or its directory is protected, such as with chattr +i (see lsattr): lift that, or copy the lines by hand",
		syscall.EROFS:   "the file system is read-only: copy the lines by hand",
		syscall.ENOSPC:  "make room on that file system, then try again; nothing was changed",
		syscall.EDQUOT:  "make room in your quota, then try again; nothing was changed",
	} {
		if errors.Is(err, cause) {
			return fault.WithHint(err, hint)
		}
	}
	return err
}

// Write writes the lines for one side, client or server, or for both.
func (a *Advised) Write(ctx context.Context) error {
	switch {
	case a.Sides == "":
		return nil
	case a.Sides != "client" && !a.HasServer():
		return fault.Usage("use --write client; copy the lines for sshd to the server, and check them there with sshd -t",
			"the server is not this machine: nothing was written")
	case !a.Advice.Changes():
		fmt.Fprintln(a.Out, "# nothing to change: nothing is written")
		return nil
	}
	if a.Sides != "server" {
		if err := explain(a.writeClient(ctx)); err != nil {
			return err
		}
	}
	if a.Sides == "client" {
		return nil
	}
	return explain(a.writeServer(ctx))
}

// writeClient writes into the user's ssh_config, or into a folder that it
// includes.
func (a *Advised) writeClient(ctx context.Context) error {
	config, base, err := a.clientFile()
	if err != nil {
		return err
	}
	if a.Flags.Config == "" {
		if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
			return err
		}
	}
	whole := func() error { return a.checkClient(ctx, config) }
	return a.put(config, base, a.clientBlock(), 0o600, func(candidate string) error { return a.checkCandidate(ctx, candidate, config) }, whole, a.explain(), undoCommand("client", "-F", a.Flags.Config))
}

// explain is the command that shows which line of the user's ssh_config decides.
func (a *Advised) explain() string {
	words := []string{"sshpace", "config"}
	if config := a.Flags.Config; config != "" {
		words = append(words, "-F", config)
	}
	return shell.Line(append(words, probe(a.Pattern))...)
}

// clientBlock is the advice as a part of the user's ssh_config.
func (a *Advised) clientBlock() file.Block {
	pattern := cmp.Or(a.Pattern, "*") // what is printed for hosts of the user's choice is tried for all
	block := file.Block{Name: "advise " + pattern, Text: a.Advice.ClientConfig(pattern), After: "Host *"}
	if pattern == "*" { // what is said of single hosts wins
		block.After, block.Last = "", true
	}
	return block
}

// checkCandidate checks a new file before it takes its place: that of config, or
// of a drop-in file, which wins over config.
func (a *Advised) checkCandidate(ctx context.Context, candidate, config string) error {
	if err := a.checkClient(ctx, candidate); err != nil {
		return err
	}
	if strings.HasPrefix(candidate, config+".") {
		return a.stillReached(ctx, candidate)
	}
	return a.stillReached(ctx, candidate, config)
}

// clientFile is the user's ssh_config, and the directory of relative names in Include, whatever -F says
// (ssh_config(5)). ssh asks the user database for it, not HOME.
func (p Params) clientFile() (config, base string, err error) {
	me, err := user.Current()
	if err != nil {
		return "", "", err
	}
	base = filepath.Join(me.HomeDir, ".ssh")
	return cmp.Or(p.Flags.Config, filepath.Join(base, "config")), base, nil
}

// writeServer writes into sshd_config, or into a folder that it includes.
// Nothing is restarted.
func (a *Advised) writeServer(ctx context.Context) error {
	config := cmp.Or(a.SSHDConfig, defaultServerConfig)
	block := file.Block{Name: "advise", Text: a.Advice.ServerConfig()}
	whole := func() error { return a.checkServer(ctx, config) }
	err := a.put(config, filepath.Dir(defaultServerConfig), block, 0o644, func(candidate string) error { return a.checkServer(ctx, candidate) }, whole, "sshd -T", undoCommand("server", "--sshd-config", a.SSHDConfig))
	if err == nil {
		fmt.Fprintln(a.Out, reloadSSHD)
	}
	return err
}

// undoCommand takes out what was written for a side; file is named by the flag, "" is
// the usual one.
func undoCommand(side, flag, file string) string {
	words := []string{"sshpace", "advise", "--undo", side}
	if file != "" {
		words = append(words, flag, file)
	}
	return shell.Line(words...)
}

// put shows and makes one change. look is the command that shows which line decides, undo
// the one that takes the change back.
func (a *Advised) put(config, base string, block file.Block, mode os.FileMode, before func(string) error, after func() error, look, undo string) error {
	if _, err := os.Stat(config); err == nil && after() == nil {
		fmt.Fprintf(a.Out, "# %s already follows the advice: nothing is written\n", config)
		return nil
	}
	target := config
	if folder := includedFolder(config, base); folder != "" && !block.Last {
		target, block.After = filepath.Join(folder, dropIn), ""
	}
	c, err := file.Open(target)
	if err != nil {
		return err
	}
	c.Mode = mode
	if c.New, err = block.Into(c.Old); err != nil {
		return err
	}
	fmt.Fprint(a.Out, "\n", c.Diff())
	backup, err := c.Apply(time.Now(), before, after)
	if _, ok := errors.AsType[syscall.Errno](err); ok || fault.HintOf(err) != "" {
		return err
	}
	if err != nil {
		return fault.WithHint(err, "an earlier line of the configuration may win; this shows which: "+look)
	}
	fmt.Fprintf(a.Out, "# written: %s\n", c.Path)
	if backup != "" {
		fmt.Fprintf(a.Out, "# the old file: %s\n", backup)
	}
	fmt.Fprintf(a.Out, "# undo: %s\n", undo)
	return nil
}

// includedFolder is the folder of drop-in files that a configuration includes
// for all hosts; "" if there is none. Relative names stand in the folder base. A pattern that would take our backup files
// for configuration, too, does not count.
func includedFolder(config, base string) string {
	text, err := file.ReadFile(config, file.Config)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch strings.ToLower(words[0]) {
		case "host", "match":
			return "" // what is included from here on is for some only
		case "include":
			if len(words) != 2 {
				continue
			}
			if folder := dropInFolder(base, strings.Trim(words[1], `"`)); folder != "" {
				return folder
			}
		}
	}
	return ""
}

// dropInFolder is the folder of a pattern that takes our file.
func dropInFolder(base, pattern string) string {
	if strings.HasPrefix(pattern, "~") || strings.ContainsAny(filepath.Dir(pattern), "*?[%$") {
		return ""
	}
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(base, pattern)
	}
	takes := func(name string) bool { ok, err := path.Match(filepath.Base(pattern), name); return ok && err == nil }
	if !takes(dropIn) || takes(dropIn+".sshpace-1") || takes(dropIn+".sshpace-new-1") {
		return ""
	}
	if info, err := os.Stat(filepath.Dir(pattern)); err != nil || !info.IsDir() {
		return ""
	}
	return filepath.Dir(pattern)
}
