// Package conf resolves the settings that the installed ssh would use for a host: it reads
// ssh_config files once and resolves any number of hosts against them in microseconds, with the
// rules of OpenSSH (ssh_config(5), readconf.c, ssh.c): the first value wins, identity files
// accumulate, Host and Match select, Include nests, a second pass follows canonicalization and
// "Match final".
//
// Load reads the files under the flags of a command, Config.Resolve answers for one host, and the
// Resolved has each value in the words of ssh -G. A mistake in a file is a *ConfigError with its
// place. A Config is read-only and may be shared.
//
// Keywords that nothing here reads, such as IPQoS, are kept as text: Config.CheckText asks the
// installed ssh whether it accepts them, Asker.Explained asks for their values.
//
// A result without a Gap equals the output of ssh -G; tests compare random configurations with it.
// Every value carries its Origin. What the package cannot know by itself (a keyword of a newer ssh,
// Match exec when running programs is not allowed, names that only the DNS can complete) is listed
// in Resolved.Gaps; an Asker then asks `ssh -G`. Decide says whether the native engine can serve a
// configuration or only the ssh program can.
//
// The package opens no connection, runs no program and asks no DNS server except through functions
// of the caller.
package conf

import (
	"context"
	"fmt"
	"net/netip"
)

// System is the environment of ssh. The comments of the fields describe their zero values.
type System struct {
	Home      string // home directory of the passwd entry: "~" and %d
	User      string // local user name: default of User, and %u
	UID       int    // local user id: %i, and the owner that config files may have
	Hostname  string // name of this machine: %l, %L and %C
	ConfigDir string // "" = /etc/ssh: ssh_config and the base of its includes
	// HomeOf looks up the home directory of another user, for "~user". nil = there are no others.
	HomeOf func(user string) (home string, ok bool)
	// Getenv looks up an environment variable. nil = none is set.
	Getenv func(name string) (value string, ok bool)
	// Exec runs a command of "Match exec" in the user's shell and reports whether it exited with 0.
	// nil = not allowed, which leaves a Gap.
	Exec func(ctx context.Context, command string) (ok bool, err error)
	// Canonical asks the DNS for a name that ends in a dot, with addresses of family (a value of
	// AddressFamily), and returns the name it stands for. nil = not allowed, which leaves a Gap.
	Canonical func(ctx context.Context, family, name string) (canonical string, found bool)
	// Addresses lists the addresses of the interfaces that are up, for "Match localnetwork". nil =
	// unknown, which leaves a Gap.
	Addresses func() []netip.Addr
}

// Params of Load.
type Params struct {
	Flags
	Command  string // the command to run, for "Match command"
	System   System
	Defaults *Defaults // of the installed ssh; nil = none installed
}

// Source is the origin of a value.
type Source uint8

// The sources. The zero value is not a source.
const (
	_              Source = iota
	FromDefault           // of the installed ssh, or of ssh_config(5) where none is installed
	FromFlag              // -F -o -p -l -i -J on the command line
	FromQuery             // the user or port in user@host:port, or the host name itself
	FromFile              // a line of a file
	FromSSH               // the answer of ssh -G
	FromDerivation        // follows from other values, such as UpdateHostKeys
)

// Origin is the place of one value. File and Line are set for FromFile.
type Origin struct {
	Source Source
	File   string
	Line   int
}

// String returns "file:line" or the name of the source.
func (o Origin) String() string {
	switch o.Source {
	case FromFile:
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case FromDefault:
		return "default"
	case FromFlag:
		return "command line"
	case FromQuery:
		return "host argument"
	case FromSSH:
		return "ssh -G"
	case FromDerivation:
		return "derived"
	}
	return "unset"
}

// ConfigError is a mistake in a file, an -o option or a flag. ssh does not start for any host while
// it is there.
type ConfigError struct {
	Origin Origin
	Err    error
}

// Error returns the place and the mistake.
func (e *ConfigError) Error() string { return fmt.Sprintf("%s: %s", e.Origin, e.Err) }

// Unwrap returns the mistake.
func (e *ConfigError) Unwrap() error { return e.Err }

// RefusedError is a configuration that the installed ssh does not accept, in its own words. Usually
// it does so for every host.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "ssh refuses the configuration: " + e.Reason }
