package apply

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/safedir"
)

// dropIn is the name of our file in a directory that a configuration includes: it sorts first,
// because the first value wins.
const dropIn = "00-sshpace.conf"

// defaultServerConfig is the usual place of sshd's configuration.
const defaultServerConfig = "/etc/ssh/sshd_config"

// explain suggests a remedy for a file that cannot be written.
func explain(err error) error {
	if _, ok := errors.AsType[*safedir.UntrustedError](err); ok {
		return fault.WithHint(err, "make the directory and the file yours alone, such as with chmod go-w, then try again")
	}
	for cause, hint := range map[error]string{
		file.ErrChanged: "try again",
		file.ErrEdited:  "move your own lines out of the marks and try again, or remove the block by hand",
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
	for _, s := range a.sides() {
		if a.Sides == s.name || a.Sides == "both" {
			if err := a.write(ctx, s); err != nil {
				return explain(err)
			}
		}
	}
	return nil
}

// block returns the advice as a part of a configuration.
func (a *Advised) block(s *side) file.Block {
	if s == a.sshd {
		return file.Block{Name: s.block(""), Text: a.Advice.ServerConfig()}
	}
	pattern := cmp.Or(a.Pattern, "*") // lines for hosts of the user's choice are tried for all
	block := file.Block{Name: s.block(pattern), Text: a.Advice.ClientConfig(pattern), After: "Host *"}
	if pattern == "*" { // settings of single hosts win
		block.After, block.Last = "", true
	}
	return block
}

// write shows and makes the change of a configuration, or of a drop-in file that it includes.
func (a *Advised) write(ctx context.Context, s *side) error {
	config, base, err := s.file()
	if err != nil {
		return err
	}
	if s == a.ssh && s.named == "" {
		if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
			return err
		}
	}
	whole := func() error { return a.follows(ctx, s, config) }
	if _, err := os.Stat(config); err == nil && whole() == nil {
		fmt.Fprintf(a.Out, "# already in %s: nothing to change\n", cmp.Or(a.Applied, config))
		return nil
	}
	target, block := config, a.block(s)
	if directory := includedBy(config, base).directory(); directory != "" && !block.Last {
		target, block.After = filepath.Join(directory, dropIn), ""
	}
	c, err := file.Open(ctx, target)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Mode = s.mode
	if c.New, err = block.Into(c.Old); err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	fmt.Fprint(a.Out, "\n", c.Diff())
	backup, err := c.Apply(time.Now(), func(candidate string) error { return a.candidate(ctx, s, candidate, config) }, whole)
	if _, ok := errors.AsType[syscall.Errno](err); ok || fault.HintOf(err) != "" {
		return err
	}
	if err != nil {
		return fault.WithHint(err, "an earlier line of the configuration may win; this shows which: "+s.look)
	}
	fmt.Fprintf(a.Out, "# written: %s\n", c.Path)
	if backup != "" {
		fmt.Fprintf(a.Out, "# the old file: %s\n", backup)
	}
	fmt.Fprintln(a.Out, "# undo: "+s.undo(a.Pattern))
	if s.after != "" {
		fmt.Fprintln(a.Out, s.after)
	}
	return nil
}

// candidate checks a new file before it replaces the old one: that of config, or of a drop-in file,
// which takes precedence over config.
func (a *Advised) candidate(ctx context.Context, s *side, candidate, config string) error {
	if err := a.follows(ctx, s, candidate); err != nil || s != a.ssh {
		return err
	}
	if strings.HasPrefix(candidate, config+".") {
		return a.stillReached(ctx, candidate)
	}
	return a.stillReached(ctx, candidate, config)
}

// inclusion is the line of a configuration that includes a directory of drop-in files for all
// hosts, and their pattern; empty if there is none.
type inclusion struct{ line, pattern string }

// includedBy finds the inclusion of a configuration. Relative names start from the directory base.
// A pattern that would also match our backup files does not count.
func includedBy(config, base string) (none inclusion) {
	text, err := file.ReadFile(config, file.Config)
	if err != nil {
		return none
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch strings.ToLower(words[0]) {
		case "host", "match":
			return none // from here on inclusions are for some hosts only
		case "include":
			if len(words) != 2 {
				continue
			}
			if pattern := dropInPattern(base, strings.Trim(words[1], `"`)); pattern != "" {
				return inclusion{line, pattern}
			}
		}
	}
	return none
}

// directory returns the directory of the files; "" if there is none.
func (x inclusion) directory() string {
	if x.pattern == "" {
		return ""
	}
	return filepath.Dir(x.pattern)
}

// files returns the included files in the order in which ssh reads them.
func (x inclusion) files() []string {
	names, _ := filepath.Glob(x.pattern)
	return names
}

// instead makes a configuration include other files.
func (x inclusion) instead(config []byte, others map[string]string) []byte {
	if len(others) == 0 {
		return config
	}
	line := "Include"
	for _, name := range x.files() {
		line += ` "` + others[name] + `"`
	}
	return bytes.Replace(config, []byte(x.line), []byte(line+"\n"), 1)
}

// dropInPattern returns a pattern that matches our file, as a whole path; otherwise "".
func dropInPattern(base, pattern string) string {
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
	return pattern
}
