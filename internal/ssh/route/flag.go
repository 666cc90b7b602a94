package route

import (
	"errors"
	"strconv"
	"strings"

	"sshpace/internal/ssh/conf"
)

// Flag is a flag of ssh(1) that has a keyword, too. As with ssh, the first counts of
// -p and -o Port, and of -l and -o User; there may be one -J, and none after a
// setting that it contradicts.
type Flag struct {
	keyword conf.Keyword
	to      *Connection
}

// PortFlag is -p.
func (c *Connection) PortFlag() *Flag { return &Flag{conf.Port, c} }

// UserFlag is -l.
func (c *Connection) UserFlag() *Flag { return &Flag{conf.User, c} }

// JumpFlag is -J.
func (c *Connection) JumpFlag() *Flag { return &Flag{conf.ProxyJump, c} }

// Type is the kind of value, as in package flag.
func (f *Flag) Type() string {
	if f.keyword == conf.Port {
		return "uint16"
	}
	return "string"
}

// String is the value.
func (f *Flag) String() string {
	switch {
	case f.to == nil:
		return ""
	case f.keyword == conf.User:
		return f.to.User
	case f.keyword == conf.ProxyJump:
		return f.to.Jump
	case f.to.Port == 0:
		return ""
	}
	return strconv.Itoa(int(f.to.Port))
}

// Set takes a value, unless it comes too late.
func (f *Flag) Set(value string) error {
	early := f.String() != "" || f.to.sets(f.keyword)
	switch {
	case f.keyword == conf.ProxyJump && early:
		return errors.New("only one -J is permitted; separate jump hosts by commas")
	case f.keyword == conf.ProxyJump && f.to.sets(conf.ProxyCommand):
		return errors.New("-J contradicts the ProxyCommand before it")
	case f.keyword == conf.ProxyJump:
		f.to.Jump = value
	case f.keyword == conf.User && !early:
		f.to.User = value
	case f.keyword == conf.Port:
		port, err := strconv.ParseUint(value, 0, 16)
		if err != nil || port == 0 {
			return errors.New("want a number from 1 to 65535")
		}
		if !early {
			f.to.Port = uint16(port)
		}
	}
	return nil
}

// sets tells whether an -o has set a keyword.
func (c *Connection) sets(k conf.Keyword) bool {
	for _, setting := range c.Settings {
		name := setting[:strings.IndexAny(setting+"=", "= \t")]
		if found, ok := conf.KeywordOf(name); ok && found == k {
			return true
		}
	}
	return false
}
