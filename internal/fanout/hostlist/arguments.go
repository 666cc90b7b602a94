package hostlist

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// Variables that hold words for ssh.
const (
	argsVar       = "ansible_ssh_args"
	commonArgsVar = "ansible_ssh_common_args"
	extraArgsVar  = "ansible_ssh_extra_args"
)

var keyVars = []string{"ansible_private_key_file", "ansible_ssh_private_key_file"}

// arguments are the words for ssh that an inventory has for a host. As in ssh, the first of a kind
// wins.
type arguments struct {
	settings   []string
	user, port string
	forward    string   // the argument of -W
	rest       []string // words that are no options
	unused     []string // options that have no effect here
}

// meant are the keywords that an inventory may set: they say how a host is reached. None of them
// runs a program here, or loosens the check of host keys.
var meant = []conf.Keyword{
	conf.AddressFamily, conf.BindAddress, conf.BindInterface, conf.CertificateFile, conf.Ciphers, conf.ConnectionAttempts, conf.ConnectTimeout,
	conf.GSSAPIAuthentication, conf.HostKeyAlgorithms, conf.HostKeyAlias, conf.IdentitiesOnly, conf.IdentityAgent, conf.IdentityFile,
	conf.KbdInteractiveAuthentication, conf.KexAlgorithms, conf.MACs, conf.PasswordAuthentication, conf.PreferredAuthentications,
	conf.ProxyJump, conf.PubkeyAcceptedAlgorithms, conf.PubkeyAuthentication, conf.ServerAliveCountMax, conf.ServerAliveInterval,
}

// moot are those that only make a login cheaper, or that change nothing about a command: they are
// usual in inventories, and nobody misses them.
var moot = []conf.Keyword{conf.BatchMode, conf.Compression, conf.ControlMaster, conf.ControlPath, conf.ControlPersist, conf.LogLevel, conf.RequestTTY}

const mootOptions = "CTanqtvx"

// The options that have a keyword.
const withKeyword = "bciJlmp"

var keywords = [len(withKeyword)]conf.Keyword{conf.BindAddress, conf.Ciphers, conf.IdentityFile, conf.ProxyJump, conf.User, conf.MACs, conf.Port}

// arguments reads the variables about ssh, in the order in which Ansible gives them to ssh. It
// looks at no user and port if h has them. A key that only Ansible can name is not used.
func (v vars) arguments(h *host.Host) (*arguments, error) {
	a := &arguments{user: h.User}
	if h.Port != 0 {
		a.port = strconv.Itoa(int(h.Port))
	}
	for _, part := range []struct {
		names []string
		given bool
		take  func(text string) error
	}{
		{[]string{argsVar}, false, a.line},
		{portVars, h.Port != 0, func(port string) error { return a.option('p', port) }},
		{keyVars, false, func(key string) error { return a.option('i', key) }},
		{userVars, h.User != "", func(user string) error { return a.option('l', user) }},
		{[]string{commonArgsVar}, false, a.line},
		{[]string{extraArgsVar}, false, a.line},
	} {
		if part.given {
			continue
		}
		text, err := v.last(part.names)
		if err != nil && part.names[0] == keyVars[0] {
			a.unused, err = append(a.unused, err.Error()), nil
		}
		if err == nil && text != "" {
			if err = part.take(text); err != nil {
				err = fmt.Errorf("%s: %w", part.names[0], err)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

// line adds the words of a variable.
func (a *arguments) line(text string) error {
	words, err := shell.Split(text)
	if err == nil {
		err = a.words(words)
	}
	switch {
	case err != nil:
		return err
	case len(a.rest) > 0:
		return fmt.Errorf("%q is not an option of ssh", a.rest[0])
	case a.forward != "":
		return fmt.Errorf("-W %s leads elsewhere", a.forward)
	}
	return nil
}

func (a *arguments) words(words []string) (err error) {
	for len(words) > 0 && err == nil {
		word := words[0]
		words = words[1:]
		if len(word) < 2 || word[0] != '-' {
			a.rest = append(a.rest, word)
			continue
		}
		for _, option := range openssh.SplitOptions(word, openssh.WithValue) {
			value := ""
			if strings.Contains(openssh.WithValue, option[1:2]) {
				if value = option[2:]; value == "" && len(words) > 0 {
					value, words = words[0], words[1:]
				}
				if value == "" {
					return fmt.Errorf("%s needs a value", option)
				}
			}
			if err = a.option(option[1], value); err != nil {
				break
			}
		}
	}
	return err
}

func (a *arguments) option(letter byte, value string) error {
	if strings.ContainsFunc(value, unicode.IsControl) || !utf8.ValidString(value) {
		return fmt.Errorf("-%c %q has a control character, or is not UTF-8", letter, value)
	}
	if i := strings.IndexByte(withKeyword, letter); i >= 0 {
		k := keywords[i]
		if k == conf.IdentityFile {
			value = conf.Quote(value)
		}
		return a.set(k, value)
	}
	switch letter {
	case 'o':
		name, text := conf.SplitSetting(value)
		k, ok := conf.KeywordOf(name)
		if !ok {
			return fmt.Errorf("%q is not a setting of ssh_config that sshpace knows", value)
		}
		return a.set(k, text)
	case '4':
		return a.set(conf.AddressFamily, "inet")
	case '6':
		return a.set(conf.AddressFamily, "inet6")
	case 'F':
		return fmt.Errorf("-F %s cannot count for some hosts only; give it to sshpace", value)
	case 'W':
		a.forward = value
	default:
		if strings.IndexByte(mootOptions, letter) < 0 {
			a.unused = append(a.unused, strings.TrimSpace(fmt.Sprintf("-%c %s", letter, value)))
		}
	}
	return nil
}

// set adds a setting, or says why it must not count.
func (a *arguments) set(k conf.Keyword, text string) error {
	switch {
	case k == conf.User:
		a.user = cmp.Or(a.user, text)
	case k == conf.Port:
		a.port = cmp.Or(a.port, text)
	case k == conf.ProxyCommand:
		jump, err := a.jumpOf(text)
		if err != nil {
			return err
		}
		return a.set(conf.ProxyJump, jump)
	case k == conf.HostName:
		return fmt.Errorf("HostName %s leads elsewhere; write it as ansible_host", text)
	case k == conf.ProxyJump && !strings.EqualFold(text, "none"):
		jumps, err := conf.ParseJumps(text)
		for _, jump := range jumps {
			err = cmp.Or(err, host.Host{Name: jump.Name, User: jump.User}.Check())
		}
		if err != nil {
			return fmt.Errorf("jump host %q: %w", text, err)
		}
		fallthrough
	case slices.Contains(meant, k):
		a.settings = append(a.settings, k.String()+"="+text)
	case !slices.Contains(moot, k):
		a.unused = append(a.unused, "-o "+k.String()+"="+text)
	}
	return nil
}

// jumpOf returns the jump host of a ProxyCommand of the usual form, ssh -W %h:%p HOST. No other
// program is started for an inventory.
func (a *arguments) jumpOf(command string) (string, error) {
	if strings.EqualFold(command, "none") {
		return "none", nil
	}
	words, err := shell.Split(command)
	if err == nil && len(words) > 0 && words[0] == "exec" {
		words = words[1:]
	}
	inner := arguments{}
	if err == nil && len(words) > 1 {
		err = inner.words(words[1:])
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("ProxyCommand: %w", err)
	case len(words) == 0 || filepath.Base(words[0]) != "ssh" || len(inner.rest) != 1 || inner.forward != "%h:%p" && inner.forward != "[%h]:%p":
		return "", fmt.Errorf("the ProxyCommand %q is not run; write -J HOST, or put it into ssh_config", command)
	case len(inner.settings) > 0:
		return "", fmt.Errorf("the jump host %s cannot have %s here; put that into ssh_config for the jump host, and write -J", inner.rest[0], inner.settings[0])
	}
	gate, err := host.Parse(inner.rest[0])
	if err == nil && gate.Port == 0 && inner.port != "" {
		gate.Port, err = host.ParsePort(inner.port)
	}
	gate.User = cmp.Or(gate.User, inner.user)
	a.unused = append(a.unused, inner.unused...)
	return gate.Endpoint().String(), err
}
