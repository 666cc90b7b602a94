package anonymize

import (
	"regexp"
	"slices"
	"strings"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/record"
)

// Values that say nothing about whose a result is.
var (
	engines    = []record.Engine{record.EngineOpenSSH, record.EngineNative}
	servers    = []record.ServerKind{record.ServerOpenSSH, record.ServerNative, record.ServerRemote}
	directions = []record.Direction{record.Upload, record.Download}
	workloads  = []record.Workload{record.Login, record.Copy, record.Sitting}
	modes      = []record.Mode{
		record.ModePipe, record.ModeSCP, record.ModeSCPLegacy, record.ModeSFTP, record.ModeRsync, record.ModeForwardL, record.ModeForwardR,
		record.ModeJump, record.ModeMultiplex, record.ModeStreams,
	}
	runKinds = []record.RunKind{record.LongRun, record.ShortRun, record.LoginRun}
	limiting = []string{"client CPU", "server CPU", "both CPUs", "busy machine", "harness", "link", "losses", "window", "source", "sink", "source disk", "sink disk", "unknown"}
	roles    = []record.Role{record.RoleReference, record.RoleControl, record.RoleHoldout, record.RoleOverhead}
	outcomes = []record.Outcome{
		record.OK, record.Refused, record.Denied, record.HostKey, record.TimedOut, record.Mismatched, record.Broken, record.Aborted, record.Unresolved,
	}
	units = []record.Unit{
		record.BytesPerSecond, record.KBPerSecond, record.KiBPerSecond, record.PerSecond, record.Index, record.Milliseconds,
	}
	commands      = []string{"bench", "transfer", "programs", "login", "limits"}
	payloads      = []string{"zero", "random"}
	ends          = []string{"budget", "precision", "complete", "failures", "interrupted"}
	systems       = []string{"linux", "darwin", "freebsd", "openbsd", "netbsd", "dragonfly", "illumos", "solaris", "aix", "windows"}
	architectures = []string{"amd64", "386", "arm64", "arm", "riscv64", "ppc64", "ppc64le", "s390x", "loong64", "mips", "mipsle", "mips64", "mips64le"}
	governors     = []string{"performance", "powersave", "schedutil", "ondemand", "conservative", "userspace"}
	hypervisors   = []string{
		"virtual machine", "KVMKVMKVM", "Microsoft Hv", "VMwareVMware", "XenVMMXenVMM", "bhyve bhyve", "TCGTCGTCGTCG", "VBoxVBoxVBox", "ACRNACRNACRN", "QNXQVMBSQG",
		" lrpepyh vr", "Linux KVM Hv",
	}
	phases  = []string{"start", "tcp", "version", "kexinit", "kex", "hostkey", "newkeys", "service", "none", "query", "sign", "channel", "exec", "command", "close"}
	sides   = []string{"client", "server"}
	clocks  = []string{"perf task-clock", "process clock", "none"}
	sources = []string{"openssl speed", "nbench", "bonnie++", "dd", "sshpace limits"}
	// places are where packages put programs; another path may have a user's name in it.
	places = []string{
		"/usr/bin/ssh", "/usr/sbin/sshd", "/usr/local/bin/ssh", "/usr/local/sbin/sshd", "/bin/ssh", "/sbin/sshd", "/usr/bin/sshd",
		"/opt/homebrew/bin/ssh", "/opt/homebrew/sbin/sshd",
	}
)

// Parts of texts that are kept. What a distribution or an administrator adds
// behind a version is not.
var (
	release = wildcard.Regexp(`^[0-9]+(\.[0-9]+)*\b`)
	maker   = wildcard.Regexp(`^((openssh|hpn-ssh|dropbear|tinyssh|putty|psftp|sshpace|curl, libssh2)( [0-9]+(\.[0-9]+)*(p[0-9]+)?)?)?$`)
	program = wildcard.Regexp(`^(SSH-2\.0-)?(OpenSSH_(for_Windows_)?|dropbear_|tinyssh_?|libssh[_-]|AsyncSSH_)[0-9]*(\.[0-9]+)*(p[0-9]+)?\b|^sshpace native \(x/crypto/ssh\)`)
	library = wildcard.Regexp(`^(OpenSSL|LibreSSL|AWS-LC|BoringSSL) [0-9]+(\.[0-9]+)*[a-z]?\b|^Go crypto`)

	// cpuWord is a maker, a family or a model number.
	cpuWord = wildcard.Regexp(`^(Intel(\(R\))?|Xeon(\(R\))?|Core(\(TM\))?|Pentium(\(R\))?|Celeron(\(R\))?|Atom(\(TM\))?|AMD|EPYC(TM)?|Ryzen(™)?|Threadripper|Opteron(\(tm\))?|` +
		`Platinum|Gold|Silver|Bronze|Ultra|Apple|Pro|Max|ARM|Neoverse-?[A-Z]?[0-9]?|Cortex-[A-Z][0-9]+|Ampere(\(R\))?|Altra(\(R\))?|Graviton[0-9]?|Raspberry|Pi|Model|Rev|POWER[0-9]+|` +
		`QEMU|Virtual|Simulated|CPU|Processor|processor|version|with|Radeon|Graphics|Gen|[0-9]+th|@|i[3579]-[0-9]{3,5}[A-Z]{0,3}|v[0-9]|[A-Z]{0,2}[0-9][0-9A-Z.+-]{0,7}(GHz|MHz|-Core)?)$`)
	featureWord = wildcard.Regexp(`^(aesni|aes|vaes|clmul|pclmulqdq|vpclmulqdq|sha|sha_ni|ssse3|avx|avx2|avx512f|bmi2|adx|aesarm|pmull|sha1|sha2|sha3|sha512|asimd|sve)$`)
	// loginWord is a word of what kinds of login are called.
	loginWord = wildcard.Regexp(`^(plain|key|exchanges?,?|host|user|keys?,?|where|the|is|are|known_hosts|sshd?_config|connection|client|split,|[0-9,]+|lines?,?|each|hashed|file|agent,|` +
		`last|one|right|cold|login|ControlMaster|session|ssh|sshpace|run|Debian's,?|OpenSSH's|and|a|server|that|offers|GSSAPI|localhost,|AddressFamily|any|inet|UseDNS|yes|no|` +
		`without|waits|for|acknowledgements,|with|unless)$`)
	// measureWord is a word of what openssl speed, nbench, bonnie++, dd and machine name.
	measureWord = wildcard.Regexp(`(?i)^(memory|copy|pipe,?|loopback|TCP,?|disk|read,?|write,?|blocks|of|with|bytes|[0-9]+[kM]?|(AES-?(128|192|256)|aria-?(128|192|256)|camellia-?(128|192|256)|des|des-ede3|3des|blowfish|cast|seed|idea|rc2|rc4|rc5)(-(CBC|CTR|GCM|CFB|OFB|ECB|XTS|IGE))?|` +
		`ChaCha20|ChaCha20-Poly1305|Poly1305|md[245]|rmd160|ripemd160|sha-?[0-9]+|sha[0-9]+-[0-9]+|sha3-[0-9]+|hmac|hmac\(\w+\)|ghash|whirlpool|rsa|dsa|ecdsa|ecdh|eddsa|ed25519|ed448|x25519|x448|ffdh|` +
		`nistp[0-9]+|sign|verify|encrypt|decrypt|op|index|integer|floating-point|memory:?|numeric|string|sort|bitfield|fp|emulation|fourier|assignment|huffman|neural|net|lu|decomposition)$`)
)

// among is the value if it is one of the known ones, else "".
func among[T ~string](value T, known []T) T {
	if slices.Contains(known, value) {
		return value
	}
	return ""
}

// words keeps those that match.
func words(text string, known *regexp.Regexp) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(text), func(word string) bool { return !known.MatchString(word) }), " ")
}
