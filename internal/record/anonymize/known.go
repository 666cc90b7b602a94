package anonymize

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/record"
)

// rule anonymizes a text.
type rule func(v *veil, text string) string

// rules keep texts in full, in part or under another name: by their place, or by their type. All
// others are removed.
var rules = sync.OnceValue(func() map[string]rule {
	return map[string]rule{
		"Campaign.Tool":     match(release),
		"Campaign.Target":   (*veil).host,
		"Campaign.Command":  known("bench", "transfer", "programs", "login", "limits", "survey"),
		"Campaign.Data":     known("zero", "random"),
		"Campaign.Policy":   (*veil).policy,
		"Campaign.Imported": called("format"),
		"Trial.Target":      (*veil).host,
		"Suite.Cipher":      algorithm(alg.Cipher),
		"Suite.MAC":         algorithm(alg.MAC),
		"Suite.Kex":         algorithm(alg.Kex),
		"Suite.HostKey":     algorithm(alg.HostKey),
		"Offer.Ciphers":     algorithm(alg.Cipher),
		"Offer.MACs":        algorithm(alg.MAC),
		"Offer.Kex":         algorithm(alg.Kex),
		"Offer.HostKeys":    algorithm(alg.HostKey),

		"Environment.OS":          known("linux", "darwin", "freebsd", "openbsd", "netbsd", "dragonfly", "illumos", "solaris", "aix", "windows"),
		"Environment.Arch":        known("amd64", "386", "arm64", "arm", "riscv64", "ppc64", "ppc64le", "s390x", "loong64", "mips", "mipsle", "mips64", "mips64le"),
		"Environment.Kernel":      match(release),
		"Environment.CPU":         words(cpuWord),
		"Environment.CPUFeatures": words(featureWord),
		"Environment.Governor":    known("performance", "powersave", "schedutil", "ondemand", "conservative", "userspace"),
		"Environment.Hypervisor": known("virtual machine", "KVMKVMKVM", "Microsoft Hv", "VMwareVMware", "XenVMMXenVMM", "bhyve bhyve", "TCGTCGTCGTCG", "VBoxVBoxVBox",
			"ACRNACRNACRN", "QNXQVMBSQG", " lrpepyh vr", "Linux KVM Hv"),
		"Environment.CPUClock":     known("perf task-clock", "process clock", "none"),
		"Environment.Client":       match(program),
		"Environment.ClientPath":   (*veil).path,
		"Environment.Server":       match(program),
		"Environment.ServerPath":   (*veil).path,
		"Environment.ServerBanner": match(program),
		"Environment.Crypto":       match(library),

		"Method.Client":   match(maker).or("implementation"),
		"Method.Server":   match(maker).or("implementation"),
		"Method.Why":      instead("the reason is left out"),
		"Reading.Failure": instead("it failed"),
		"Host.Name":       (*veil).host,
		"Host.Via":        (*veil).host,
		"Host.Banner":     match(program),
		"Host.Class":      instead("failed"),
		"Cause.Check": known("dns", "refused", "no-shell", "proxy", "connect", "banner", "kex", "host-key", "request", "authorized-keys", "signature",
			"account", "session", "shell"),
		"Cause.What":           instead("the words are left out"),
		"LoginKind.Factor":     (*veil).loginWords,
		"LoginKind.Level":      (*veil).loginWords,
		"LoginKind.Conditions": (*veil).loginWords,
		"LoginStall.Side":      known("client", "server"),
		"LoginStall.Why":       instead("a wait that no computation explains"),
		"Limit.What":           known(record.Limiting...),
		"ThermalZone.Name":     called("sensor"), // it identifies a board
		"Thermal.Throttled":    known(record.ThrottleReasons...),
		"Thermal.SinceBoot":    known(record.ThrottleReasons...),
		"Measurement.Name":     words(measureWord).whole().or("measurement"),
		"Measurement.Source":   known("openssl speed", "nbench", "bonnie++", "dd", "sshpace limits").or("program"),
		"End.Why":              known("budget", "precision", "complete", "failures", "interrupted"),

		"Engine":     known(record.EngineOpenSSH, record.EngineNative),
		"ServerKind": known(record.ServerOpenSSH, record.ServerNative, record.ServerRemote),
		"Direction":  known(record.Upload, record.Download),
		"Workload":   known(record.Login, record.Copy, record.Sitting),
		"Mode":       known(record.Modes...),
		"Phase":      known(record.AllPhases...),
		"RunKind":    known(record.LongRun, record.ShortRun, record.LoginRun),
		"Role":       known(record.RoleReference, record.RoleControl, record.RoleHoldout, record.RoleOverhead),
		"Outcome": func(v *veil, text string) string { // never silently a success
			return cmp.Or(known(record.OK, record.Refused, record.Denied, record.HostKey, record.TimedOut, record.Mismatched, record.Broken, record.Aborted, record.Unresolved)(v, text),
				string(record.Broken))
		},
		"Unit": known(record.BytesPerSecond, record.KBPerSecond, record.KiBPerSecond, record.PerSecond, record.Index, record.Milliseconds),
	}
})

// dropped lists figures and lists that are removed as a whole: the user's choices, and how far away
// a host is.
var dropped = []string{"Campaign.Seed", "Campaign.Asked", "Environment.Limits", "Environment.RoundTripNS", "Host.RTTNS"}

// places are the directories of packaged programs; another path may have a user's name in it.
var places = []string{
	"/usr/bin/ssh", "/usr/sbin/sshd", "/usr/local/bin/ssh", "/usr/local/sbin/sshd", "/bin/ssh", "/sbin/sshd", "/usr/bin/sshd",
	"/opt/homebrew/bin/ssh", "/opt/homebrew/sbin/sshd",
}

// Parts of texts that are kept. Additions of a distribution or an administrator after a version are
// not.
var (
	release = wildcard.Regexp(`^[0-9]+(\.[0-9]+)*\b`)
	maker   = wildcard.Regexp(`^((openssh|hpn-ssh|dropbear|tinyssh|putty|psftp|sshpace|curl, libssh2)( [0-9]+(\.[0-9]+)*(p[0-9]+)?)?)?$`)
	program = wildcard.Regexp(`^(SSH-2\.0-)?(OpenSSH_(for_Windows_)?|dropbear_|tinyssh_?|libssh[_-]|AsyncSSH_)[0-9]*(\.[0-9]+)*(p[0-9]+)?\b|^sshpace native( \(x/crypto/ssh\))?`)
	library = wildcard.Regexp(`^(OpenSSL|LibreSSL|AWS-LC|BoringSSL) [0-9]+(\.[0-9]+)*[a-z]?\b|^Go crypto`)

	// cpuWord is a maker, a family or a model number.
	cpuWord = wildcard.Regexp(`^(Intel(\(R\))?|Xeon(\(R\))?|Core(\(TM\))?|Pentium(\(R\))?|Celeron(\(R\))?|Atom(\(TM\))?|AMD|EPYC(TM)?|Ryzen(™)?|Threadripper|Opteron(\(tm\))?|` +
		`Platinum|Gold|Silver|Bronze|Ultra|Apple|Pro|Max|ARM|Neoverse-?[A-Z]?[0-9]?|Cortex-[A-Z][0-9]+|Ampere(\(R\))?|Altra(\(R\))?|Graviton[0-9]?|Raspberry|Pi|Model|Rev|POWER[0-9]+|` +
		`QEMU|Virtual|Simulated|CPU|Processor|processor|version|with|Radeon|Graphics|Gen|[0-9]+th|@|i[3579]-[0-9]{3,5}[A-Z]{0,3}|v[0-9]|[A-Z]{0,2}[0-9][0-9A-Z.+-]{0,7}(GHz|MHz|-Core)?)$`)
	featureWord = wildcard.Regexp(`^(aesni|aes|vaes|clmul|pclmulqdq|vpclmulqdq|sha|sha_ni|ssse3|avx|avx2|avx512f|bmi2|adx|aesarm|pmull|sha1|sha2|sha3|sha512|asimd|sve)$`)
	// loginWord is a word in names of kinds of login.
	loginWord = wildcard.Regexp(`^(plain|key|exchanges?,?|host|user|keys?,?|where|the|is|are|known_hosts|sshd?_config|connection|client|split,|[0-9,]+|lines?,?|each|hashed|file|agent,|` +
		`last|one|right|cold|login|ControlMaster|session|ssh|sshpace|run|Debian's,?|OpenSSH's|and|a|server|that|offers|GSSAPI|localhost,|AddressFamily|any|inet|UseDNS|yes|no|` +
		`without|waits|for|acknowledgements,|with|unless|except|to|compare)$`)
	// measureWord is a word in names of openssl speed, nbench, bonnie++, dd and machine.
	measureWord = wildcard.Regexp(`(?i)^(memory|copy|pipe,?|loopback|TCP,?|disk|file|page|cache|read,?|write,?|blocks|of|with|bytes|[0-9]+[kM]?|(AES-?(128|192|256)|aria-?(128|192|256)|camellia-?(128|192|256)|des|des-ede3|3des|blowfish|cast|seed|idea|rc2|rc4|rc5)(-(CBC|CTR|GCM|CFB|OFB|ECB|XTS|IGE))?|` +
		`ChaCha20|ChaCha20-Poly1305|Poly1305|md[245]|rmd160|ripemd160|sha-?[0-9]+|sha[0-9]+-[0-9]+|sha3-[0-9]+|hmac|hmac\(\w+\)|ghash|whirlpool|rsa|dsa|ecdsa|ecdh|eddsa|ed25519|ed448|x25519|x448|ffdh|` +
		`nistp[0-9]+|sign|verify|encrypt|decrypt|op|index|integer|floating-point|memory:?|numeric|string|sort|bitfield|fp|emulation|fourier|assignment|huffman|neural|net|lu|decomposition)$`)
)

// known returns a rule that keeps the given values, and no others.
func known[T ~string](values ...T) rule {
	return func(_ *veil, text string) string {
		if slices.Contains(values, T(text)) {
			return text
		}
		return ""
	}
}

// match returns a rule that keeps the part that matches.
func match(part func() *regexp.Regexp) rule {
	return func(_ *veil, text string) string { return part().FindString(text) }
}

// words returns a rule that keeps the words that match.
func words(known func() *regexp.Regexp) rule {
	return func(_ *veil, text string) string {
		return strings.Join(slices.DeleteFunc(strings.Fields(text), func(word string) bool { return !known().MatchString(word) }), " ")
	}
}

// whole keeps a text if the rule removes nothing of it.
func (r rule) whole() rule {
	return func(v *veil, text string) string {
		if r(v, text) == text {
			return text
		}
		return ""
	}
}

// or replaces a text by a pseudonym if the rule removes all of it.
func (r rule) or(kind string) rule {
	return func(v *veil, text string) string {
		if kept := r(v, text); kept != "" {
			return kept
		}
		return v.call(kind, text)
	}
}

// called replaces a text by a pseudonym.
func called(kind string) rule { return func(v *veil, text string) string { return v.call(kind, text) } }

// instead replaces a text by a phrase.
func instead(phrase string) rule { return func(*veil, string) string { return phrase } }

// algorithm keeps a name that the tables know; others get a pseudonym.
func algorithm(kind alg.Kind) rule {
	return func(v *veil, name string) string {
		if _, known := alg.Lookup(kind, name); known || name == "none" {
			return name
		}
		return v.call("unknown-"+string(kind), name)
	}
}
