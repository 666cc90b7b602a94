package conf

import (
	"errors"
	"strconv"
)

// Flags are those of ssh(1) that every command with a connection takes, with the same meaning.
type Flags struct {
	Config     string   // -F: a file in place of all others, "none" = no file, "" = the default ones
	Settings   []string // -o, in order: "Port=22" or "Port 22"
	Port       uint16   // -p
	User       string   // -l
	Identities []string // -i
	Jump       string   // -J
	IPv4, IPv6 bool     // -4, -6
}

// Options returns the arguments that pass the flags on to ssh.
func (f Flags) Options() []string {
	var argv []string
	add := func(flag string, values ...string) {
		for _, value := range values {
			if value != "" {
				argv = append(argv, flag, value)
			}
		}
	}
	add("-F", f.Config)
	add("-l", f.User)
	if f.Port != 0 {
		add("-p", strconv.Itoa(int(f.Port)))
	}
	add("-J", f.Jump)
	add("-o", f.Settings...) // after the flags, which win here
	add("-i", f.Identities...)
	if f.IPv4 {
		argv = append(argv, "-4")
	}
	if f.IPv6 {
		argv = append(argv, "-6")
	}
	return argv
}

// Sets reports whether a setting is of a keyword.
func (f Flags) Sets(k Keyword) bool {
	_, ok := f.Setting(k)
	return ok
}

// SplitSetting separates the name of a setting, in lower case, from its text.
func SplitSetting(setting string) (name, text string) { return splitLine(setting) }

// Setting returns the text of the first setting of a keyword.
func (f Flags) Setting(k Keyword) (text string, ok bool) {
	for _, setting := range f.Settings {
		name, text := splitLine(setting)
		if found, known := KeywordOf(name); known && found == k {
			return text, true
		}
	}
	return "", false
}

// Flag is a flag of ssh(1) that has a keyword, too. As with ssh, the first counts of -p and -o
// Port, and of -l and -o User; there may be one -J, and none after a setting that it contradicts.
type Flag struct {
	keyword Keyword
	to      *Flags
}

// PortFlag is -p.
func (f *Flags) PortFlag() *Flag { return &Flag{Port, f} }

// UserFlag is -l.
func (f *Flags) UserFlag() *Flag { return &Flag{User, f} }

// JumpFlag is -J.
func (f *Flags) JumpFlag() *Flag { return &Flag{ProxyJump, f} }

// Type is the kind of value, as in package flag.
func (f *Flag) Type() string {
	if f.keyword == Port {
		return "uint16"
	}
	return "string"
}

// String is the value.
func (f *Flag) String() string {
	switch {
	case f.to == nil:
		return ""
	case f.keyword == User:
		return f.to.User
	case f.keyword == ProxyJump:
		return f.to.Jump
	case f.to.Port == 0:
		return ""
	}
	return strconv.Itoa(int(f.to.Port))
}

// Set takes a value, unless it comes too late.
func (f *Flag) Set(value string) error {
	early := f.String() != "" || f.to.Sets(f.keyword)
	switch {
	case f.keyword == ProxyJump && early:
		return errors.New("only one -J is permitted; separate jump hosts by commas")
	case f.keyword == ProxyJump && f.to.Sets(ProxyCommand):
		return errors.New("-J contradicts the ProxyCommand before it")
	case f.keyword == ProxyJump:
		f.to.Jump = value
	case f.keyword == User && !early:
		f.to.User = value
	case f.keyword == Port:
		port, err := portNumber(value)
		if err != nil {
			return errors.New("want a number from 1 to 65535")
		}
		if !early {
			f.to.Port = uint16(port)
		}
	}
	return nil
}
