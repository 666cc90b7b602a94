package conf

import (
	"fmt"
	"slices"
	"strings"
)

// Engine is the program that makes a connection, by its name in --engine.
type Engine string

// The engines.
const (
	Native  Engine = "native"  // in this process
	OpenSSH Engine = "openssh" // the ssh program
)

// Capabilities are the algorithms and methods of the native engine.
type Capabilities struct {
	Lists     map[Keyword][]string // of algorithms that it has; of other kinds it takes any
	Passwords bool                 // there is a password to log in with
	Locally   bool                 // it runs a LocalCommand
	DNS       bool                 // it asks the DNS about host keys
}

// Decision says which engine can serve a configuration.
type Decision struct {
	Engine  Engine
	Reasons []Reason // why it must be OpenSSH; empty for Native
	Notes   []Reason // differences of the native engine from ssh
}

// Reason is one setting and its consequence.
type Reason struct {
	Keyword Keyword
	Text    string
	Origin  Origin
}

// String returns the text and where the setting comes from.
func (r Reason) String() string { return fmt.Sprintf("%s (%s)", r.Text, r.Origin) }

// rule names a setting that matters to the choice of the engine.
type rule struct {
	keyword Keyword
	applies func(r *Resolved) bool
	text    string
}

// only lists the settings that only the ssh program can carry out.
var only = []rule{
	{PKCS11Provider, set(PKCS11Provider), "keys on a PKCS#11 token"},
	{SecurityKeyProvider, set(SecurityKeyProvider), "a security key provider of its own"},
	{HostbasedAuthentication, yes(HostbasedAuthentication), "host-based authentication"},
	{ProxyCommand, func(r *Resolved) bool { return r.set[ProxyCommand] != nil }, "a proxy command"},
	{ProxyUseFdpass, yes(ProxyUseFdpass), "a proxy that passes a file descriptor"},
	{Tunnel, func(r *Resolved) bool { return r.Word(Tunnel) != "false" && r.Word(Tunnel) != "" }, "a tunnel device"},
	{RevokedHostKeys, set(RevokedHostKeys), "a list of revoked host keys"},
	{CheckHostIP, func(r *Resolved) bool { return r.Yes(CheckHostIP) && r.IsSet(CheckHostIP) }, "host keys of addresses"},
	{CASignatureAlgorithms, set(CASignatureAlgorithms), "a choice of certificate signature algorithms"},
	{BindInterface, set(BindInterface), "a network interface to connect from"},
	{GSSAPIKeyExchange, yes(GSSAPIKeyExchange), "GSSAPI key exchange"},
	{RefuseConnection, set(RefuseConnection), "a refusal to connect"},
	{VersionAddendum, written(VersionAddendum), "a text after the version of ssh"},
}

// byDNS lists the settings that only the ssh program can carry out where the native engine does not
// ask the DNS about host keys.
var byDNS = []rule{{VerifyHostKeyDNS, (*Resolved).AsksDNS, "host keys from the DNS"}}

// AsksDNS reports whether the DNS is asked about host keys.
func (r *Resolved) AsksDNS() bool {
	return r.Yes(VerifyHostKeyDNS) || r.Word(VerifyHostKeyDNS) == "ask"
}

// locally lists the settings that only the ssh program can carry out where the native engine runs
// no LocalCommand.
var locally = []rule{
	{PermitLocalCommand, func(r *Resolved) bool { return r.Yes(PermitLocalCommand) && r.Word(LocalCommand) != "" },
		"a local command to run"},
}

// differs lists the settings that the native engine ignores or tightens.
var differs = []rule{
	{Compression, yes(Compression), "the native engine does not compress"},
	{ForwardAgent, yes(ForwardAgent), "the agent is never forwarded"},
	{ForwardX11, yes(ForwardX11), "X11 is not forwarded"},
	{LocalForward, forwards(LocalForward), "ports are not forwarded"},
	{RemoteForward, forwards(RemoteForward), "ports are not forwarded"},
	{DynamicForward, forwards(DynamicForward), "ports are not forwarded"},
	{ControlPath, set(ControlPath), "a ControlMaster that lives is used, none is started"},
	{RemoteCommand, set(RemoteCommand), "the command given wins over RemoteCommand"},
	{StrictHostKeyChecking, func(r *Resolved) bool { return r.StrictHostKeyChecking() == Lax },
		"host keys are checked all the same"},
	{NoHostAuthenticationForLocalhost, yes(NoHostAuthenticationForLocalhost), "host keys of localhost are checked all the same"},
	{GSSAPIAuthentication, yes(GSSAPIAuthentication), "GSSAPI is tried by ssh only (--engine openssh)"},
	{CheckHostIP, yes(CheckHostIP), "host keys are looked up by name only"},
}

func set(k Keyword) func(*Resolved) bool {
	return func(r *Resolved) bool { return r.Word(k) != "" && r.IsSet(k) }
}

func yes(k Keyword) func(*Resolved) bool { return func(r *Resolved) bool { return r.Yes(k) } }

func written(k Keyword) func(*Resolved) bool {
	return func(r *Resolved) bool { return r.IsSet(k) && !strings.EqualFold(r.Word(k), "none") }
}

func forwards(k Keyword) func(*Resolved) bool {
	return func(r *Resolved) bool { return r.IsSet(k) && !r.Yes(ClearAllForwardings) }
}

// methods returns the authentication methods that may be tried, in order (ssh_config(5)
// PreferredAuthentications).
func (r *Resolved) methods() []string {
	const usual = "gssapi-with-mic,hostbased,publickey,keyboard-interactive,password"
	preferred := r.Word(PreferredAuthentications)
	if preferred == "" {
		preferred = usual
	}
	return slices.DeleteFunc(strings.Split(preferred, ","), func(m string) bool { return !r.enabled(m) })
}

// enabled reports whether a method may be tried.
func (r *Resolved) enabled(method string) bool {
	switch method {
	case "gssapi-with-mic":
		return r.Yes(GSSAPIAuthentication)
	case "hostbased":
		return r.Yes(HostbasedAuthentication)
	case "publickey":
		return !slices.Contains([]string{"false", "no"}, r.Word(PubkeyAuthentication))
	case "keyboard-interactive":
		return r.Yes(KbdInteractiveAuthentication) && !r.Yes(BatchMode)
	case "password":
		return r.Yes(PasswordAuthentication) && !r.Yes(BatchMode)
	}
	return false
}

// ByKey reports whether public keys may be tried.
func (r *Resolved) ByKey() bool { return slices.Contains(r.methods(), "publickey") }

// PasswordMethods are the methods that take a password and may be tried, the preferred one first.
func (r *Resolved) PasswordMethods() []string {
	return slices.DeleteFunc(r.methods(), func(m string) bool { return m != "keyboard-interactive" && m != "password" })
}

// Decide chooses the native engine unless a setting needs the ssh program, or the native engine has
// none of the algorithms that a list allows.
func Decide(r *Resolved, can Capabilities) Decision {
	d := Decision{Engine: Native, Reasons: r.apply(only), Notes: r.apply(differs)}
	if !can.DNS {
		d.Reasons = append(d.Reasons, r.apply(byDNS)...)
	}
	if !can.Locally {
		d.Reasons = append(d.Reasons, r.apply(locally)...)
	}
	if !r.ByKey() && !(can.Passwords && len(r.PasswordMethods()) > 0) {
		v, _ := r.Get(PreferredAuthentications)
		if v.Origin.Source == 0 {
			v.Origin = Origin{Source: FromDefault}
		}
		d.Reasons = append(d.Reasons, Reason{PreferredAuthentications, "a login without public keys", v.Origin})
	}
	for _, k := range AlgorithmLists {
		if v, have := r.set[k], can.Lists[k]; v != nil && len(have) > 0 && !overlap(v.Args, have) {
			d.Reasons = append(d.Reasons, Reason{k, "only algorithms that the native engine lacks", v.Origin})
		}
	}
	if len(d.Reasons) > 0 {
		d.Engine, d.Notes = OpenSSH, nil
	}
	return d
}

func (r *Resolved) apply(rules []rule) []Reason {
	var reasons []Reason
	for _, rule := range rules {
		if !rule.applies(r) {
			continue
		}
		v, ok := r.Get(rule.keyword)
		if !ok || v.Origin.Source == 0 {
			v.Origin = Origin{Source: FromDefault}
		}
		reasons = append(reasons, Reason{rule.keyword, rule.text, v.Origin})
	}
	return reasons
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}
