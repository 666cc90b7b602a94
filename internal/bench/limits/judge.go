//go:build linux

package limits

import (
	"fmt"
	"strings"
	"time"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Shares from which on something is the limit, and not just busy.
const (
	mostOf   = 0.80 // of a core, used or waited for
	starving = 0.60 // of the time without anything to read, or without a reader
	stalls   = 0.20 // of the time in which nothing arrived for longer than any queue explains
	lossy    = 0.002
	ofLink   = 0.75 // of the rate of raw TCP on the same path
	queues   = 0.05 // of the time waited for a core
	working  = 0.70 // of the CPU time that a side wants; if it gets less, other work has its core
	alone    = 1.3  // and when they share one
)

// Judge names the limit of a transfer, in one sentence, with the remedy.
func Judge(direction record.Direction, e record.Evidence) (what, sentence, help string) {
	for _, rule := range rules {
		if rule.holds(direction, e) {
			sentence, help = rule.says(direction, e)
			return rule.what, sentence, help
		}
	}
	why := "neither a CPU nor the link nor the window is exhausted"
	if e.ServerShare == nil {
		why = "neither this machine's CPU nor the link nor the window is exhausted, and the server's CPU time is not known"
	}
	if e.Crowded() {
		why = "other work keeps the cores of this machine busy, so two connections at once say nothing about the link"
	}
	return record.LimitUnknown, fmt.Sprintf("the limit at %s is unknown: %s", rate(e), why), ""
}

// rule is one limit: the first that holds is named.
type rule struct {
	what  string
	holds func(record.Direction, record.Evidence) bool
	says  func(record.Direction, record.Evidence) (sentence, help string)
}

var rules = []rule{
	{record.LimitHarness, func(_ record.Direction, e record.Evidence) bool { return e.HarnessShare > mostOf && need(e) < mostOf }, saysHarness},
	{record.LimitSource, sourceEmpty, saysSource},
	{record.LimitSink, sinkFull, saysSink},
	{record.LimitLosses, losses, saysLosses},
	{record.LimitLink, linkFull, saysLink},
	{record.LimitWindow, windowFull, saysWindow},
	{record.LimitBusy, contended, saysBusy},
	{record.LimitSink, farAway(record.Upload, 20), saysSink},
	{record.LimitSource, farAway(record.Download, 20), saysSource},
	{record.LimitBothCPUs, bothCPUs, saysBoth},
	{record.LimitClientCPU, func(_ record.Direction, e record.Evidence) bool { return wants(e.ClientShare, e.ClientWaits) >= mostOf }, saysClient},
	{record.LimitServerCPU, func(_ record.Direction, e record.Evidence) bool { return wants(e.ServerShare, e.ServerWaits) >= mostOf }, saysServer},
	{record.LimitBothCPUs, coresFull, saysBoth},
	{record.LimitLink, oneForTwo, saysLink},
	{record.LimitClientCPU, cramped, saysFull},
	{record.LimitBusy, keptWaiting, saysBusy},
	{record.LimitBusy, foreign, saysBusy},
	{record.LimitSink, farAway(record.Upload, 2), saysSink},
	{record.LimitSource, farAway(record.Download, 2), saysSource},
}

// sameMachine is the round trip up to which both ends of a TCP connection are on one machine.
const sameMachine = 200 * time.Microsecond

// value is a share that may be unknown: then zero.
func value(share *float64) float64 {
	if share == nil {
		return 0
	}
	return *share
}

// wants is the share of a core that a side would use if it had it.
func wants(used, waits *float64) float64 { return value(used) + value(waits) }

// need is the share of a core that the side that needs more would use.
func need(e record.Evidence) float64 {
	return max(wants(e.ClientShare, e.ClientWaits), wants(e.ServerShare, e.ServerWaits))
}

func sourceEmpty(_ record.Direction, e record.Evidence) bool {
	return value(e.SourceEmpty) >= starving && need(e) < mostOf
}

func sinkFull(_ record.Direction, e record.Evidence) bool {
	return value(e.SinkFull) >= starving && need(e) < mostOf
}

// loopback is the least rate of loopback without a simulated path, bytes per second.
const loopback = 250e6

// losses reports whether lost packets limit the transfer. On one machine nothing is lost, but a
// process may get no core for so long that TCP sends again, and programs at the other end may
// pause.
func losses(_ record.Direction, e record.Evidence) bool {
	if e.Cores > 0 { // TCP ends at a relay of ours: its retransmissions say nothing about the path
		path := e.RTTNS > time.Millisecond || e.RawBytesPerS > 0 && e.RawBytesPerS < loopback
		return path && need(e) < mostOf && value(e.Stalled) > stalls
	}
	return need(e) < mostOf && e.Retransmitted > lossy && e.TCPRTTNS > sameMachine
}

func linkFull(_ record.Direction, e record.Evidence) bool {
	if need(e) >= mostOf || e.RawBytesPerS < ofLink*e.BytesPerSecond { // TCP had not found its pace yet
		return false
	}
	return e.BytesPerSecond >= ofLink*e.RawBytesPerS
}

// ceiling is the most that a window lets through, in bytes per second.
func ceiling(e record.Evidence) float64 { return float64(unit.Ceiling(e.RTTNS)) }

// windowFull allows for bytes lost while an acknowledgement of the window is in flight, and for a
// round trip that was measured on an idle connection. Two connections have two windows: if they
// carry no more than one, the link is the limit.
func windowFull(d record.Direction, e record.Evidence) bool {
	c := ceiling(e)
	return !oneForTwo(d, e) && e.RTTNS > time.Millisecond && need(e) < mostOf && e.BytesPerSecond < 1.25*c &&
		e.BytesPerSecond > ofWindow*c && isFar(e)
}

// ofWindow is the share of the window's rate that is reached at least if nothing else is the limit.
const ofWindow = 0.55

// isFar reports whether the round trip is that of the path, and not the time that programs wait for
// a core of this machine. Our own path has it by construction, and the kernel's own figure does not
// wait.
func isFar(e record.Evidence) bool {
	return e.Cores > 0 || !e.Crowded() || e.TCPRTTNS >= e.RTTNS/2
}

// contended reports whether a side needs a whole core and does not get it.
func contended(_ record.Direction, e record.Evidence) bool {
	gets := func(used, waits *float64) bool {
		return wants(used, waits) < mostOf || value(used) >= working*wants(used, waits)
	}
	return !gets(e.ClientShare, e.ClientWaits) || !gets(e.ServerShare, e.ServerWaits)
}

func bothCPUs(_ record.Direction, e record.Evidence) bool {
	return wants(e.ClientShare, e.ClientWaits) >= mostOf && wants(e.ServerShare, e.ServerWaits) >= mostOf
}

// coresFull reports whether the transfer uses all cores of a machine that carries both sides,
// although neither side has a core for itself.
func coresFull(_ record.Direction, e record.Evidence) bool {
	return e.Cores > 0 && e.ServerShare != nil && ours(e) >= 0.7*float64(e.Cores)
}

// ours is how many cores the transfer keeps busy.
func ours(e record.Evidence) float64 {
	return value(e.ClientShare) + value(e.ServerShare) + e.HarnessShare
}

// foreign reports whether other programs keep the cores busy, so that both sides have to wait for
// them.
func foreign(_ record.Direction, e record.Evidence) bool {
	return e.Cores > 0 && e.Crowded() && ours(e) < 0.7*e.BusyCores && need(e) >= 0.3
}

// machineFull reports whether all cores of this machine are at work while ssh needs a good part of
// one. On such a machine two connections are not faster than one, whatever the link is.
func machineFull(_ record.Direction, e record.Evidence) bool {
	return need(e) >= 0.3 && e.Crowded()
}

// cramped reports whether ssh uses a good part of a core of a full machine, and has to wait for it.
func cramped(d record.Direction, e record.Evidence) bool {
	return machineFull(d, e) && value(e.ClientWaits) >= queues && value(e.ClientShare) >= value(e.ClientWaits)
}

// keptWaiting reports whether ssh often waits for a core of a full machine.
func keptWaiting(d record.Direction, e record.Evidence) bool {
	return machineFull(d, e) && value(e.ClientWaits) >= queues
}

func oneForTwo(d record.Direction, e record.Evidence) bool {
	if machineFull(d, e) {
		return false
	}
	return e.TwoBytesPerS > ofLink*e.BytesPerSecond && e.TwoBytesPerS < alone*e.BytesPerSecond // two that are slower have been disturbed
}

// farAway returns a test for transfers in a direction: whether the link would carry times as much
// while both sides are idle and our end is ready. Then the other end is the limit.
func farAway(when record.Direction, times float64) func(record.Direction, record.Evidence) bool {
	return func(d record.Direction, e record.Evidence) bool {
		return d == when && need(e) < 0.5 && e.RawBytesPerS > times*e.BytesPerSecond && e.BytesPerSecond < 0.5*ceiling(e)
	}
}

func rate(e record.Evidence) string { return unit.Throughput(e.BytesPerSecond).String() }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// idle says in words how little CPU time both sides use.
func idle(e record.Evidence) string {
	var words []string
	if e.ClientShare != nil {
		words = append(words, "ssh uses "+percent(*e.ClientShare)+" of a core")
	}
	if e.ServerShare != nil {
		words = append(words, "sshd "+percent(*e.ServerShare))
	}
	return strings.Join(words, " and ")
}

func saysHarness(_ record.Direction, e record.Evidence) (string, string) {
	return fmt.Sprintf("the limit is sshpace's own source or sink, which uses %s of a core", percent(e.HarnessShare)), "trust the CPU time per byte more than the throughput"
}

func saysSource(d record.Direction, e record.Evidence) (string, string) {
	who := "ssh"
	if d == record.Download {
		who = "sshd"
	}
	if e.SourceEmpty == nil {
		return fmt.Sprintf("the source of the bytes is the limit: it delivers %s; %s, and the link carries %s", rate(e), idle(e), unit.Throughput(e.RawBytesPerS)), "a faster disk or program at that end; no setting of ssh"
	}
	return fmt.Sprintf("the source of the bytes is the limit: it delivers %s, and %s has nothing to read %s of the time", rate(e), who, percent(*e.SourceEmpty)), "a faster disk or program at that end; no setting of ssh"
}

func saysSink(_ record.Direction, e record.Evidence) (string, string) {
	const help = "a faster disk or program at that end; no setting of ssh"
	if e.SinkFull == nil {
		return fmt.Sprintf("the destination of the bytes is the limit: it accepts %s; %s, and the link carries %s", rate(e), idle(e), unit.Throughput(e.RawBytesPerS)), help
	}
	return fmt.Sprintf("the destination of the bytes is the limit: it accepts %s, and received data waits to be read %s of the time", rate(e), percent(*e.SinkFull)), help
}

func saysLosses(_ record.Direction, e record.Evidence) (string, string) {
	const help = "find out where the link loses packets; no setting of ssh makes up for that"
	if e.Retransmitted > lossy {
		return fmt.Sprintf("losses on the link are the limit: TCP sent %.1f %% of its segments twice, which leaves %s", 100*e.Retransmitted, rate(e)), help
	}
	return fmt.Sprintf("losses on the link are the limit: %s of the time nothing arrives at all, which leaves %s", percent(value(e.Stalled)), rate(e)), help
}

func saysLink(_ record.Direction, e record.Evidence) (string, string) {
	const help = "a faster link, or compression if the data can be compressed; no cipher, MAC or other setting of ssh"
	proof := ""
	switch {
	case e.RawBytesPerS > 0:
		proof = fmt.Sprintf(", as it does without SSH (%s)", unit.Throughput(e.RawBytesPerS))
	case e.TwoBytesPerS > 0:
		proof = fmt.Sprintf(", and two connections at once carry no more (%s together)", unit.Throughput(e.TwoBytesPerS))
	}
	return fmt.Sprintf("the link is the limit: it carries %s%s; %s", rate(e), proof, idle(e)), help
}

func saysWindow(_ record.Direction, e record.Evidence) (string, string) {
	return fmt.Sprintf("the window is the limit: OpenSSH has at most %s in flight, which over a round trip of %s is %s, and %s was measured; %s",
			unit.ChannelWindow, unit.Milliseconds(e.RTTNS), unit.Throughput(ceiling(e)), rate(e), idle(e)),
		"sshpace copy and fetch, several connections at once, or HPN-SSH at the receiving end; no cipher or MAC, and no -X, -R or -B of scp and sftp"
}

func saysBusy(_ record.Direction, e record.Evidence) (string, string) {
	side, waits := "ssh", value(e.ClientWaits)
	if value(e.ServerWaits) > waits {
		side, waits = "sshd", value(e.ServerWaits)
	}
	return fmt.Sprintf("other work on the machine is the limit: %s was waiting for CPU %s of the time", side, percent(waits)), "end the other work, or give SSH a core of its own"
}

// cheaper names the remedy that costs a CPU less.
func cheaper(e record.Evidence) string {
	if e.Compressed {
		return fmt.Sprintf("no compression: it pays only over links slower than %s", rate(e))
	}
	return "a cipher and MAC that cost less, or several connections"
}

func saysBoth(_ record.Direction, e record.Evidence) (string, string) {
	return fmt.Sprintf("the CPUs are the limit: ssh uses %s of a core and sshd %s, and each of them is one process on one core", percent(value(e.ClientShare)), percent(value(e.ServerShare))), cheaper(e)
}

func saysClient(_ record.Direction, e record.Evidence) (string, string) {
	return fmt.Sprintf("this machine's CPU is the limit: ssh uses %s of the one core that it can use; %s", percent(value(e.ClientShare)), other("sshd", e.ServerShare)), cheaper(e)
}

func saysFull(_ record.Direction, e record.Evidence) (string, string) {
	when, help := "", "a cipher and MAC that cost less"
	if e.BusyCores < e.TwoBusyCores {
		when = " while two connections move bytes"
	}
	if e.Compressed {
		help = cheaper(e)
	}
	return fmt.Sprintf("this machine's CPUs are the limit: %.1f of its %d cores are busy%s; ssh uses %s of one", max(e.BusyCores, e.TwoBusyCores), e.OwnCores, when, percent(value(e.ClientShare))),
		"end other work here, or " + help
}

func saysServer(_ record.Direction, e record.Evidence) (string, string) {
	return fmt.Sprintf("the server's CPU is the limit: sshd uses %s of the one core that it can use; %s", percent(value(e.ServerShare)), other("ssh", e.ClientShare)), cheaper(e)
}

func other(who string, share *float64) string {
	if share == nil {
		return "what " + who + " uses is not known"
	}
	return who + " " + percent(*share)
}
