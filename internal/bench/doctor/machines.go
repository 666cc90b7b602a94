//go:build linux

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
)

// Floors and ratios: two measurements of one thing on a busy machine differ by less.
const (
	knownFloor    = 5 * time.Millisecond
	exchangeFloor = 15 * time.Millisecond
	zipRatio      = 1.2 // faster by this ratio without compression
	cipherRatio   = 2   // of processor time
	windowRatio   = 1.5 // two connections at once
)

var knownHostsCheck = Check{"known-hosts", "large known_hosts files", []Probe{HostKeys}, largeKnownHosts}

// machineChecks are about computing and moving bytes.
var machineChecks = []Check{
	knownHostsCheck,
	{"exchange", "a key exchange that is slow on this CPU", []Probe{LoggingIn, Exchanges}, slowExchange},
	{"compression", "compression on a fast link", []Probe{LoggingIn, Moving}, zipped},
	{"cipher", "a cipher without hardware support", []Probe{LoggingIn, Moving}, softCipher},
	{"window", "OpenSSH's window over a long path", []Probe{LoggingIn, Moving}, window},
}

func largeKnownHosts(f *Facts) (found []Finding) {
	for _, k := range f.KnownHosts {
		if !counts(k.Extra, knownFloor) {
			continue
		}
		gain := ofLogin(f, k.Extra)
		if f.Own { // whose server is in its own file
			gain = fmt.Sprintf("about %s a login to any host (predicted)", ms(k.Extra.Value))
		}
		found = append(found, Finding{
			What: fmt.Sprintf("%s has %d lines, %d of them hashed, all of which are read at every login", k.File, k.Lines, k.Hashed),
			Cost: k.Extra, Per: perLogin,
			Evidence: fmt.Sprintf("with it ssh computes %s longer than with a file of one line", Milliseconds(k.Extra)),
			Where:    here(f) + "; for all hosts: sshpace known-hosts split", Do: ownKnownHosts(f, k), Gain: gain,
		})
	}
	return found
}

// ownKnownHosts gives the host its own file; unknown files stay where they are.
func ownKnownHosts(f *Facts, k KnownHosts) string {
	if f.Own {
		line := "sshpace known-hosts split --known-hosts " + shell.Word(k.File)
		if k.Hashed > 0 {
			line += " --from-config"
		}
		return prepend(f, line)
	}
	file := k.File + "." + f.Host
	var words []string
	for _, name := range append([]string{file}, k.Others...) {
		words = append(words, path(name))
	}
	find := fmt.Sprintf("ssh-keygen -F %s -f %s |\ngrep -v '^#' >%s", shell.Word(f.KnownAs), shell.Word(k.File), shell.Word(file))
	return find + " &&\n" + configure(f, "UserKnownHostsFile "+strings.Join(words, " "))
}

func slowExchange(f *Facts) []Finding {
	e := f.Exchange
	if e == nil || f.Sharing.Master && f.Sharing.Persist {
		return nil
	}
	now := f.Logins.ClientCPU
	cost := now.Less(e.ClientCPU)
	if cost.Value < float64(exchangeFloor) || cost.Lo <= 0 {
		return nil
	}
	found := Finding{
		What: "the key exchange " + f.Logins.Kex + " is slow on this machine's CPU", Cost: cost, Per: perLogin,
		Evidence: fmt.Sprintf("ssh computes %s in a login, with %s %s", Milliseconds(now), e.Instead, Milliseconds(e.ClientCPU)),
		Where:    here(f), Do: configure(f, "KexAlgorithms ^"+e.Instead), Gain: ofLogin(f, cost),
	}
	if !e.Safe {
		found.Evidence += ", which is not as safe"
		found.Where = "on this machine: it stays, and is paid once for all sessions; newer OpenSSH (9.9) has mlkem768x25519-sha256, which costs a fraction"
		found.Do = configure(f, shareSettings...)
	}
	return []Finding{found}
}

// hundred is the size of transfers in findings, in bytes.
const hundred = 100e6

// perHundred is the difference between two speeds, as time.
func perHundred(slow, fast float64) stats.Interval {
	ns := (hundred/slow - hundred/fast) * float64(time.Second)
	return stats.Interval{Value: ns, Lo: ns, Hi: ns, N: 1}
}

func zipped(f *Facts) []Finding {
	t := f.Transfers
	if !f.Logins.Zipped || t.Plain.BytesPerSecond < zipRatio*t.Present.BytesPerSecond || t.Present.BytesPerSecond == 0 {
		return nil
	}
	cost := perHundred(t.Present.BytesPerSecond, t.Plain.BytesPerSecond)
	return []Finding{{
		What: "compression makes transfers slower: the link is faster than zlib", Cost: cost, Per: perTransfer,
		Evidence: fmt.Sprintf("random data moved at %s with it and %s without", speed(t.Present), speed(t.Plain)),
		Where:    here(f), Do: configure(f, "Compression no"), Gain: times(t.Plain, t.Present),
	}}
}

func softCipher(f *Facts) []Finding {
	t := f.Transfers
	if t.Other.CPUPerByte == 0 || t.Present.CPUPerByte < cipherRatio*t.Other.CPUPerByte {
		return nil
	}
	ns := (t.Present.CPUPerByte - t.Other.CPUPerByte) * hundred
	return []Finding{{
		What: "the cipher " + f.Logins.Cipher + " has no support by this machine's CPU, or is an old one",
		Cost: stats.Interval{Value: ns, Lo: ns, Hi: ns, N: 1}, Per: perTransfer,
		Evidence: fmt.Sprintf("ssh computes %.1f s for a GB and moves %s; with %s %.1f s and %s", t.Present.CPUPerByte, speed(t.Present), t.Cipher, t.Other.CPUPerByte, speed(t.Other)),
		Where:    here(f), Do: configure(f, "Ciphers ^"+t.Cipher), Gain: fmt.Sprintf("about %.0f %% of ssh's processor time (measured)", 100-100*t.Other.CPUPerByte/t.Present.CPUPerByte),
	}}
}

// window finds that ssh's window limits transfers: two connections at once move more than one,
// which moves one window per round trip.
func window(f *Facts) []Finding {
	t := f.Transfers
	if f.Own || !f.Window() || t.Twice.BytesPerSecond < windowRatio*t.Present.BytesPerSecond {
		return nil
	}
	trip := f.Logins.answered()
	return []Finding{{
		What: "OpenSSH's window (" + unit.ChannelWindow.String() + ") limits transfers over this distance", Cost: perHundred(t.Present.BytesPerSecond, t.Twice.BytesPerSecond), Per: perTransfer,
		Evidence: fmt.Sprintf("one connection moves %s over a round trip of %s, for which the window allows %s; two at once %s",
			speed(t.Present), ms(float64(trip)), unit.Ceiling(trip), speed(t.Twice)),
		Where: "on this machine: sshpace copy and fetch open more windows on one connection; several connections at once help, too. More requests (scp -X, sftp -R, -B) do not, nor does any setting of ssh. The second line shows what helps here",
		Do: shell.Line(slices.Concat([]string{"sshpace", "copy"}, f.Flags.Options(), []string{"-w", f.Host, "FILE", ":"})...) + "\n" +
			shell.Line("sshpace", "transfer", "--only", "own,streams") + " " + shell.Line(f.Typed()...), Gain: times(t.Twice, t.Present) + " with two",
	}}
}

func speed(t Transfer) string { return unit.Throughput(t.BytesPerSecond).String() }

func times(fast, slow Transfer) string {
	return fmt.Sprintf("transfers about %.1f times as fast (measured)", fast.BytesPerSecond/slow.BytesPerSecond)
}
