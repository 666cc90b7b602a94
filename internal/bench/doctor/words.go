//go:build linux

package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"

	"sshpace/internal/ssh/conf"
)

// Milliseconds prints a figure with its range and the number of measurements.
func Milliseconds(f stats.Interval) string {
	if f.N < 2 {
		return ms(f.Value)
	}
	return f.Noted(unit.InMilliseconds, " ms", fmt.Sprintf("range of %d tries", f.N))
}

func ms(ns float64) string { return unit.Milliseconds(max(0, ns)) }

// trip words the round trip: one to a machine nearby is below the resolution of ssh's log.
func trip(f *Facts) string {
	if d := roundTrip(f); d >= 100*time.Microsecond {
		return ms(float64(d))
	}
	return "under 0.1 ms"
}

// ofLogin words the gain of a login: predicted, not measured. A cost outside the timed logins is
// not part of them.
func ofLogin(f *Facts, cost stats.Interval) string {
	if f.Logins.Whole.N == 0 || cost.Value >= f.Logins.Whole.Value || f.Logins.Cut() {
		return fmt.Sprintf("about %s a login (predicted)", ms(cost.Value))
	}
	return fmt.Sprintf("about %s of the %s that a login takes (predicted)", ms(cost.Value), ms(f.Logins.Whole.Value))
}

// typed returns a command line with ssh and the words that the user types after it.
func typed(f *Facts, words ...string) string {
	return shell.Line(slices.Concat([]string{"ssh"}, f.Typed(), words)...)
}

// typedWith returns a command line with ssh, options, and the words that the user types after it.
func typedWith(f *Facts, options ...string) string {
	return shell.Line(slices.Concat([]string{"ssh"}, options, f.Typed())...)
}

// config returns the user's file, for a shell.
func config(f *Facts) string {
	if f.Config == "" {
		return "~/.ssh/config"
	}
	return shell.Word(f.Config)
}

// configure returns a line for a shell that puts settings for the host before all others in the
// user's file, where they count (ssh_config(5): the first value wins). "Host *" keeps the following
// lines for all hosts.
func configure(f *Facts, settings ...string) string {
	host := "Host " + conf.Quote(f.Host)
	if f.Own { // no host in particular
		host = "Host *"
	}
	command := `printf '%s\n' ` + shell.Quote(host)
	for _, s := range settings {
		command += " \\\n  " + shell.Quote("  "+s)
	}
	return prepend(f, command+" 'Host *'")
}

// prepend returns a command for a shell that puts the output of another one before the user's
// configuration, and says how to undo that, in lines that fit a terminal. The file stays the same
// one, with its mode, even where it is a link; a new one is the user's alone.
func prepend(f *Facts, command string) string {
	file := config(f)
	return fmt.Sprintf(`(umask 077; c=%s
mkdir -p "$(dirname "$c")" && touch "$c" &&
b=$(mktemp "$c.bak.XXXXXX") && cp -p "$c" "$b" &&
t=$(%s) &&
{ printf '%%s\n' "$t"; cat "$b"; } >"$c" &&
printf 'undo: cp %%s%%s %%s\n' %s "${b#"$c"}" %s)`, file, command, shell.Quote(file), shell.Quote(file))
}

// path returns the name of a file in the notation of ssh_config, where % begins a token.
func path(name string) string { return conf.Quote(strings.ReplaceAll(name, "%", "%%")) }

// here names the place to type configure.
func here(f *Facts) string {
	return "on this machine; it puts the lines first in " + config(f) + ", and keeps a copy"
}

// client returns our address as a shell on the host reports it, or otherwise if that is not an
// address: root must not type any other text of a host.
func client(f *Facts, otherwise string) string {
	if f.Server == nil {
		return otherwise
	}
	addr, err := netip.ParseAddr(f.Server.Client)
	if err != nil {
		return otherwise
	}
	return addr.WithZone("").String()
}

// reload returns a line that puts a setting before all others of sshd and makes it read them. A
// server without that directory has one file.
func reload(setting, file string) string {
	return shell.Print(setting+"\n") + " >/etc/ssh/sshd_config.d/" + file + " && sshd -t && systemctl reload ssh"
}
