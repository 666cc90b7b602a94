package conf

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/knownhosts"
)

// Keyword is one directive of ssh_config(5).
type Keyword uint8

// The keywords that are read, in alphabetical order.
const (
	unknownKeyword Keyword = iota
	kwHost
	kwMatch
	kwInclude
	AddressFamily
	BatchMode
	BindAddress
	BindInterface
	CanonicalDomains
	CanonicalizeFallbackLocal
	CanonicalizeHostname
	CanonicalizeMaxDots
	CanonicalizePermittedCNAMEs
	CASignatureAlgorithms
	CertificateFile
	CheckHostIP
	Ciphers
	ClearAllForwardings
	Compression
	ConnectionAttempts
	ConnectTimeout
	ControlPath
	ForwardAgent
	ForwardX11
	GlobalKnownHostsFile
	GSSAPIAuthentication
	GSSAPIKeyExchange
	HashKnownHosts
	HostbasedAcceptedAlgorithms
	HostbasedAuthentication
	HostKeyAlgorithms
	HostKeyAlias
	HostName
	IdentitiesOnly
	IdentityAgent
	IdentityFile
	IgnoreUnknown
	KbdInteractiveAuthentication
	KexAlgorithms
	KnownHostsCommand
	LocalCommand
	MACs
	NoHostAuthenticationForLocalhost
	NumberOfPasswordPrompts
	PasswordAuthentication
	PermitLocalCommand
	PKCS11Provider
	Port
	PreferredAuthentications
	ProxyCommand
	ProxyJump
	ProxyUseFdpass
	PubkeyAcceptedAlgorithms
	PubkeyAuthentication
	RefuseConnection
	RemoteCommand
	RequiredRSASize
	RevokedHostKeys
	SecurityKeyProvider
	SendEnv
	ServerAliveCountMax
	ServerAliveInterval
	SessionType
	SetEnv
	StrictHostKeyChecking
	Tag
	Tunnel
	UpdateHostKeys
	User
	UserKnownHostsFile
	VerifyHostKeyDNS

	forwardAgentPath // the half of ForwardAgent that ssh keeps, and lets win, separately

	keywordCount
)

// Keywords of which little more is read than their presence. They and the later ones in textNames
// are kept as text: only ssh knows their syntax (Config.CheckText) and their values
// (Asker.Explained).
const (
	LocalForward = keywordCount + iota
	RemoteForward
	DynamicForward
	LogLevel
	VersionAddendum
	ControlMaster
	ControlPersist
	RequestTTY
	PermitRemoteOpen
)

var textNames = strings.Fields(`LocalForward RemoteForward DynamicForward LogLevel VersionAddendum ControlMaster ControlPersist RequestTTY
	PermitRemoteOpen AddKeysToAgent ChannelTimeout EnableEscapeCommandline EnableSSHKeysign EscapeChar ExitOnForwardFailure
	FingerprintHash ForkAfterAuthentication ForwardX11Timeout ForwardX11Trusted GatewayPorts GSSAPIClientIdentity
	GSSAPIDelegateCredentials GSSAPIKexAlgorithms GSSAPIRenewalForcesRekey GSSAPIServerIdentity GSSAPITrustDNS
	IPQoS KbdInteractiveDevices LogVerbose ObscureKeystrokeTiming
	RekeyLimit StdinNull StreamLocalBindMask StreamLocalBindUnlink SyslogFacility TCPKeepAlive TunnelDevice
	VisualHostKey WarnWeakCrypto XAuthLocation`)

// Text reports whether a keyword is kept as text.
func (k Keyword) Text() bool { return k >= keywordCount }

// several reports whether all values of a keyword count, not just the first.
func (k Keyword) several() bool { return k.Text() || specs[k].several }

// String returns the name as ssh_config(5) spells it.
func (k Keyword) String() string {
	if k.Text() {
		return textNames[k-keywordCount]
	}
	return specs[k].name
}

// spec describes the arguments of a keyword.
type spec struct {
	name    string
	since   Version  // first release that knows it, zero = before 8.0
	choices []choice // the words it takes, or
	parse   parser   // how it is read
	several bool     // all values count, not just the first
	initial string   // value of an unset keyword where no ssh was asked, "" = none
	asked   bool     // the installed ssh checks the words, see CheckText
	vendor  bool     // only some vendors have it: the patch for GSSAPI key exchange
}

// choice is one accepted word of a keyword, and the word that ssh -G prints.
type choice struct{ word, shown string }

var (
	yesNo      = []choice{{"true", "yes"}, {"false", "no"}, {"yes", "yes"}, {"no", "no"}}
	trueFalse  = []choice{{"true", "true"}, {"false", "false"}, {"yes", "true"}, {"no", "false"}}
	orAsk      = append(trueFalse[:4:4], choice{"ask", "ask"})
	orAlways   = append(trueFalse[:4:4], choice{"always", "always"})
	strictness = append(orAsk[:5:5], choice{"off", "false"}, choice{"accept-new", "accept-new"})
	publicKeys = append(trueFalse[:4:4], choice{"unbound", "unbound"}, choice{"host-bound", "host-bound"})
	tunnelling = []choice{{"yes", "point-to-point"}, {"true", "point-to-point"}, {"point-to-point", "point-to-point"},
		{"no", "false"}, {"false", "false"}, {"ethernet", "ethernet"}}
	families    = []choice{{"inet", "inet"}, {"inet6", "inet6"}, {"any", "any"}}
	sessions    = []choice{{"none", "none"}, {"subsystem", "subsystem"}, {"default", "default"}}
	compressing = []choice{{"yes", "yes"}, {"no", "no"}}
)

// Most files that a known_hosts keyword takes (readconf.h SSH_MAX_HOSTS_FILES).
const maxHostFiles = 32

// specs is ssh_config(5) as a table.
var specs = [keywordCount]spec{
	kwHost:                           {name: "Host"},
	kwMatch:                          {name: "Match"},
	kwInclude:                        {name: "Include"},
	AddressFamily:                    {name: "AddressFamily", choices: families, initial: "any"},
	BatchMode:                        {name: "BatchMode", choices: yesNo, initial: "no"},
	BindAddress:                      {name: "BindAddress", parse: parseString},
	BindInterface:                    {name: "BindInterface", parse: parseString},
	CanonicalDomains:                 {name: "CanonicalDomains", parse: parseDomains, asked: true, initial: "none"},
	CanonicalizeFallbackLocal:        {name: "CanonicalizeFallbackLocal", choices: yesNo, initial: "yes"},
	CanonicalizeHostname:             {name: "CanonicalizeHostname", choices: orAlways, initial: "false"},
	CanonicalizeMaxDots:              {name: "CanonicalizeMaxDots", parse: parseInt, initial: "1"},
	CanonicalizePermittedCNAMEs:      {name: "CanonicalizePermittedCNAMEs", parse: parseCNAMEs, asked: true, initial: "none"},
	CASignatureAlgorithms:            {name: "CASignatureAlgorithms", parse: parseString, asked: true},
	CertificateFile:                  {name: "CertificateFile", parse: parseString, several: true},
	CheckHostIP:                      {name: "CheckHostIP", choices: yesNo, initial: "no"},
	Ciphers:                          {name: "Ciphers", parse: parseString, asked: true},
	ClearAllForwardings:              {name: "ClearAllForwardings", choices: yesNo, initial: "no"},
	Compression:                      {name: "Compression", choices: compressing, initial: "no"},
	ConnectionAttempts:               {name: "ConnectionAttempts", parse: parseInt, initial: "1"},
	ConnectTimeout:                   {name: "ConnectTimeout", parse: parseTime, initial: "none"},
	ControlPath:                      {name: "ControlPath", parse: parseString},
	ForwardAgent:                     {name: "ForwardAgent", parse: parseForwardAgent, initial: "no"},
	ForwardX11:                       {name: "ForwardX11", choices: yesNo, initial: "no"},
	GlobalKnownHostsFile:             {name: "GlobalKnownHostsFile", parse: parseHostFiles},
	GSSAPIAuthentication:             {name: "GSSAPIAuthentication", choices: yesNo, initial: "no"},
	GSSAPIKeyExchange:                {name: "GSSAPIKeyExchange", choices: yesNo, initial: "no", vendor: true},
	HashKnownHosts:                   {name: "HashKnownHosts", choices: yesNo, initial: "no"},
	HostbasedAcceptedAlgorithms:      {name: "HostbasedAcceptedAlgorithms", parse: parseString, asked: true},
	HostbasedAuthentication:          {name: "HostbasedAuthentication", choices: yesNo, initial: "no"},
	HostKeyAlgorithms:                {name: "HostKeyAlgorithms", parse: parseString, asked: true},
	HostKeyAlias:                     {name: "HostKeyAlias", parse: parseString},
	HostName:                         {name: "HostName", parse: parseString},
	IdentitiesOnly:                   {name: "IdentitiesOnly", choices: yesNo, initial: "no"},
	IdentityAgent:                    {name: "IdentityAgent", parse: parseIdentityAgent},
	IdentityFile:                     {name: "IdentityFile", parse: parseString, several: true},
	IgnoreUnknown:                    {name: "IgnoreUnknown", parse: parseString},
	KbdInteractiveAuthentication:     {name: "KbdInteractiveAuthentication", choices: yesNo, initial: "yes"},
	KexAlgorithms:                    {name: "KexAlgorithms", parse: parseString, asked: true},
	KnownHostsCommand:                {name: "KnownHostsCommand", parse: parseCommand},
	LocalCommand:                     {name: "LocalCommand", parse: parseCommand},
	MACs:                             {name: "MACs", parse: parseString, asked: true},
	NoHostAuthenticationForLocalhost: {name: "NoHostAuthenticationForLocalhost", choices: yesNo, initial: "no"},
	NumberOfPasswordPrompts:          {name: "NumberOfPasswordPrompts", parse: parseInt, initial: "3"},
	PasswordAuthentication:           {name: "PasswordAuthentication", choices: yesNo, initial: "yes"},
	PermitLocalCommand:               {name: "PermitLocalCommand", choices: yesNo, initial: "no"},
	PKCS11Provider:                   {name: "PKCS11Provider", parse: parseString},
	Port:                             {name: "Port", parse: parsePort, initial: strconv.Itoa(knownhosts.DefaultPort)},
	PreferredAuthentications:         {name: "PreferredAuthentications", parse: parseString},
	ProxyCommand:                     {name: "ProxyCommand", parse: parseCommand},
	ProxyJump:                        {name: "ProxyJump", parse: parseJumpLine},
	ProxyUseFdpass:                   {name: "ProxyUseFdpass", choices: yesNo, initial: "no"},
	PubkeyAcceptedAlgorithms:         {name: "PubkeyAcceptedAlgorithms", parse: parseString, asked: true},
	PubkeyAuthentication:             {name: "PubkeyAuthentication", choices: publicKeys, initial: "true"},
	RefuseConnection:                 {name: "RefuseConnection", parse: parseString, since: Version{10, 1}},
	RemoteCommand:                    {name: "RemoteCommand", parse: parseCommand},
	RequiredRSASize:                  {name: "RequiredRSASize", parse: parseInt, since: Version{9, 1}, initial: "1024"},
	RevokedHostKeys:                  {name: "RevokedHostKeys", parse: parseRevoked},
	SecurityKeyProvider:              {name: "SecurityKeyProvider", parse: parseString, initial: "internal"},
	SendEnv:                          {name: "SendEnv", parse: parseSendEnv, several: true},
	ServerAliveCountMax:              {name: "ServerAliveCountMax", parse: parseInt, initial: "3"},
	ServerAliveInterval:              {name: "ServerAliveInterval", parse: parseTime, initial: "0"},
	SessionType:                      {name: "SessionType", choices: sessions, initial: "default"},
	SetEnv:                           {name: "SetEnv", parse: parseSetEnv},
	StrictHostKeyChecking:            {name: "StrictHostKeyChecking", choices: strictness, initial: "ask"},
	Tag:                              {name: "Tag", parse: parseString, since: Version{9, 4}},
	Tunnel:                           {name: "Tunnel", choices: tunnelling, initial: "false"},
	UpdateHostKeys:                   {name: "UpdateHostKeys", choices: orAsk, initial: "true"},
	User:                             {name: "User", parse: parseString},
	UserKnownHostsFile:               {name: "UserKnownHostsFile", parse: parseHostFiles},
	VerifyHostKeyDNS:                 {name: "VerifyHostKeyDNS", choices: orAsk, initial: "false"},
}

// aliases are older names of keywords (readconf.c keywords[]).
var aliases = map[string]Keyword{
	"identityfile2":                   IdentityFile,
	"challengeresponseauthentication": KbdInteractiveAuthentication,
	"skeyauthentication":              KbdInteractiveAuthentication,
	"tisauthentication":               KbdInteractiveAuthentication,
	"dsaauthentication":               PubkeyAuthentication,
	"smartcarddevice":                 PKCS11Provider,
	"hostbasedkeytypes":               HostbasedAcceptedAlgorithms,
	"pubkeyacceptedkeytypes":          PubkeyAcceptedAlgorithms,
}

// retired keywords are accepted with any arguments, without effect.
var retired = map[string]bool{
	"protocol": true, "cipher": true, "fallbacktorsh": true, "globalknownhostsfile2": true,
	"rhostsauthentication": true, "userknownhostsfile2": true, "useroaming": true, "usersh": true,
	"useprivilegedport": true, "afstokenpassing": true, "kerberosauthentication": true,
	"kerberostgtpassing": true, "rsaauthentication": true, "rhostsrsaauthentication": true,
	"compressionlevel": true,
}

var byName = func() map[string]Keyword {
	names := make(map[string]Keyword, keywordCount)
	for k := kwHost; k < forwardAgentPath; k++ {
		names[wildcard.Lower(specs[k].name)] = k
	}
	for i, name := range textNames {
		names[wildcard.Lower(name)] = keywordCount + Keyword(i)
	}
	for name, k := range aliases {
		names[name] = k
	}
	names["keepalive"] = names["tcpkeepalive"]
	return names
}()

// manual is the order of the manual page, made on demand: most commands do not need it.
var manual = sync.OnceValue(func() []Keyword {
	var all []Keyword
	for k := AddressFamily; k < forwardAgentPath; k++ {
		all = append(all, k)
	}
	for i := range textNames {
		all = append(all, keywordCount+Keyword(i))
	}
	slices.SortFunc(all, func(a, b Keyword) int { return strings.Compare(wildcard.Lower(a.String()), wildcard.Lower(b.String())) })
	return all
})

// KeywordOf finds a keyword by name, in any case. ok is false for names that this package does not
// know.
func KeywordOf(name string) (k Keyword, ok bool) {
	k, ok = byName[wildcard.Lower(name)]
	return k, ok && k > kwInclude
}

// Version is a release of OpenSSH. The zero value stands for the newest that this package knows.
type Version struct{ Major, Minor int }

// ParseVersion reads "OpenSSH_9.2p1 Debian-2, OpenSSL ...", which ssh -V prints. ok is false for
// other programs.
func ParseVersion(s string) (v Version, ok bool) {
	const prefix = "OpenSSH_"
	if len(s) < len(prefix) || s[:len(prefix)] != prefix {
		return v, false
	}
	s = s[len(prefix):]
	major, s := leadingInt(s)
	if s == "" || s[0] != '.' {
		return v, false
	}
	minor, _ := leadingInt(s[1:])
	return Version{major, minor}, major > 0
}

func leadingInt(s string) (n int, rest string) {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	n, _ = strconv.Atoi(s[:i])
	return n, s[i:]
}

// AtLeast reports whether v is w or newer.
func (v Version) AtLeast(w Version) bool {
	return v == Version{} || v.Major > w.Major || v.Major == w.Major && v.Minor >= w.Minor
}

// The first releases of changes to how files are read.
var (
	includeTokens  = Version{9, 9}  // tokens and ${ENV} in Include
	shellLikeMatch = Version{9, 9}  // single quotes and escapes in Match
	jumpToken      = Version{9, 6}  // %j, and the jump host in %C
	revokedTokens  = Version{9, 4}  // ~, tokens and ${ENV} in RevokedHostKeys
	manyRevoked    = Version{10, 3} // several files in RevokedHostKeys
	jumpNone       = Version{9, 4}  // "ProxyJump none" does not keep a name from being completed
	setEnvTokens   = Version{10, 0} // tokens and ${ENV} in SetEnv
	userTokens     = Version{10, 0} // tokens and ${ENV} in User
	notFinal       = Version{10, 1} // "Match !final" asks for no second pass
	decimalTimes   = Version{10, 3} // seconds with decimals
	refusesLists   = Version{10, 4} // lists that come to nothing
)
