package openssh

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Kind is the subject of a line.
type Kind uint8

// The kinds. Event.Text is the name in the line, as listed.
const (
	Other          Kind = iota // nothing that anybody looks at
	Message                    // the line: ssh's messages to its user. The reason for giving up is among them
	ProgramEvent               // a command of "Match exec" begins, in quotes
	ProgramEnded               // and ends, with a status (ssh -vvv)
	Resolving                  // a name is looked up (ssh -vv)
	Connecting                 // "NAME [ADDRESS] port N."
	NotConnected               // "ADDRESS port N: REASON"
	Connected                  // TCP is there
	Proxy                      // a ProxyCommand or ProxyJump was started: the command
	Identity                   // a key file was looked at
	PreBanner                  // a line that came before the version line: the line
	ServerVersion              // the server's software version
	Authenticating             // "HOST:PORT as 'USER'"
	KexInitSent                // our list of algorithms
	KexInit                    // the server's
	KexAlgorithm               // name, and more after a space
	HostKeyType                // the line
	ClientToServer             // cipher, MAC and compression
	ServerToClient             // the line
	HostKeySeen                // type and fingerprint
	NewKeysSent                // the host key is good
	NewKeys                    // a key exchange is complete
	AuthStarted                // the server accepts authentication requests
	AuthMethods                // the methods that may continue
	NextMethod                 // one is tried: its name
	KeyOffered                 // file, type and fingerprint
	KeyAccepted                // the methods that may continue
	Signing                    // a key signs (ssh -vvv)
	AuthRequest                // a request for authentication is sent (ssh -vvv)
	LoggedIn
	Multiplexed     // a ControlMaster is tried or used: nothing is negotiated here
	MasterOpened    // the session is open through a ControlMaster
	SessionOpened   // the server has opened it (ssh -vv)
	CommandSent     // the command, or the subsystem
	CommandAccepted // the server starts it, or a shell (ssh -vv)
	ErrorOutput     // standard error of a command has arrived: how many bytes (ssh -vv)
	ExitStatus      // the server reported one
	ExitSignal      // the server reported one
	MasterStays     // a ControlMaster continues after the session
	WrongKey        // known_hosts file that holds another key of the host
	Detail          // of ssh -vv: the rest of the line
	Trace           // of ssh -vvv: the rest of the line
)

// Event is one line.
type Event struct {
	Kind Kind
	Text string
}

// Place returns the address and the port of Connecting; "" if it names none.
func (e Event) Place() (address, port string) {
	_, rest, _ := strings.Cut(e.Text, "[")
	address, port, named := strings.Cut(rest, "] port ")
	if e.Kind != Connecting || !named {
		return "", ""
	}
	return address, strings.TrimSuffix(port, ".")
}

// beginnings of lines with their kinds (kex.c: kex_choose_conf, packet.c, readconf.c, ssh.c,
// sshconnect.c, sshconnect2.c, mux.c, clientloop.c). The first match counts. Up to 7.0 ssh does not
// name the key exchange and the host key.
var beginnings = []struct {
	prefix string
	kind   Kind
}{
	{"debug2: exec request accepted on channel ", CommandAccepted},
	{"debug2: subsystem request accepted on channel ", CommandAccepted},
	{"debug2: shell request accepted on channel ", CommandAccepted},
	{"debug2: channel_input_open_confirmation: ", SessionOpened},
	{"debug2: channel 0: open confirm ", SessionOpened},
	{"debug2: resolving ", Resolving},
	{"debug2: ", Detail},
	{"debug3: command returned status ", ProgramEnded},
	{"debug3: sign_and_send_pubkey: ", Signing},
	{"debug3: send packet: type 50", AuthRequest},
	{"debug3: ", Trace},
	{"debug1: Executing command: ", ProgramEvent},
	{"debug1: Connecting to ", Connecting},
	{"debug1: connect to address ", NotConnected},
	{"debug1: Connection established", Connected},
	{"debug1: Executing proxy ", Proxy},
	{"debug1: identity file ", Identity},
	{"debug1: kex_exchange_identification: banner line ", PreBanner},
	{"debug1: Remote protocol version ", ServerVersion},
	{"debug1: Authenticating to ", Authenticating},
	{"debug1: SSH2_MSG_KEXINIT sent", KexInitSent},
	{"debug1: SSH2_MSG_KEXINIT received", KexInit},
	{"debug1: kex: algorithm: ", KexAlgorithm},
	{"debug1: kex: host key algorithm: ", HostKeyType},
	{"debug1: kex: client->server ", ClientToServer},
	{"debug1: kex: server->client ", ServerToClient},
	{"debug1: Server host key: ", HostKeySeen},
	{"debug1: Server host certificate: ", HostKeySeen},
	{"debug1: SSH2_MSG_NEWKEYS sent", NewKeysSent},
	{"debug1: SSH2_MSG_NEWKEYS received", NewKeys},
	{"debug1: SSH2_MSG_SERVICE_ACCEPT received", AuthStarted},
	{"debug1: Authentications that can continue: ", AuthMethods},
	{"debug1: Next authentication method: ", NextMethod},
	{"debug1: Offering public key: ", KeyOffered},
	{"debug1: Server accepts key: ", KeyAccepted},
	{"Authenticated to ", LoggedIn},
	{"debug1: Authentication succeeded", LoggedIn},
	{"debug1: auto-mux: Trying existing master", Multiplexed},
	{"debug1: mux_client_request_session: master session id", MasterOpened},
	{"debug1: mux_client_", Multiplexed},
	{"debug1: Sending command: ", CommandSent},
	{"debug1: Sending subsystem: ", CommandSent},
	{"debug1: control_persist_detach: ", MasterStays},
	{"Offending ", WrongKey},
}

// own begins the lines of our own clients; names are those of their events.
const own = "sshpace step: "

var names = []string{Connecting: "connecting", Connected: "connected", ServerVersion: "version", KexInit: "kexinit",
	KexAlgorithm: "kex", HostKeyType: "hostkeytype", ClientToServer: "toserver", ServerToClient: "toclient",
	HostKeySeen: "hostkey", NewKeysSent: "newkeyssent", NewKeys: "newkeys", AuthStarted: "service", KeyAccepted: "accepted",
	LoggedIn: "authenticated", CommandAccepted: "exec", ExitStatus: "exit"}

// WriteEvent writes an event of our own. Errors of writing are ignored.
func WriteEvent(w io.Writer, e Event) {
	_, _ = fmt.Fprintln(w, strings.TrimSpace(own+names[e.Kind]+" "+e.Text))
}

// step parses an event of WriteEvent.
func step(rest string) Event {
	name, text, _ := strings.Cut(rest, " ")
	if kind := slices.Index(names, name); name != "" && kind > 0 {
		return Event{Kind(kind), text}
	}
	return Event{}
}

// quiet lists the beginnings of lines that ssh prints without an error.
var quiet = []string{
	"debug", "OpenSSH_", "Authenticated ", "Transferred: ", "Bytes per second: ", "Warning: Permanently added ", "Pseudo-terminal ", "** ",
}

// ReadEvent parses a line.
func ReadEvent(line string) Event {
	line = strings.TrimRight(line, "\r\n")
	if rest, ok := strings.CutPrefix(line, own); ok {
		return step(rest)
	}
	if channel, bytes, ok := strings.Cut(line, ": rcvd ext data "); ok && strings.HasPrefix(channel, "debug2: channel ") {
		return Event{ErrorOutput, bytes}
	}
	for _, b := range beginnings {
		if rest, ok := strings.CutPrefix(line, b.prefix); ok {
			return event(b.kind, rest)
		}
	}
	if rest, ok := strings.CutPrefix(line, "debug1: client_input_channel_req: channel "); ok {
		return channelRequest(rest)
	}
	for _, prefix := range quiet {
		if strings.HasPrefix(line, prefix) {
			return Event{}
		}
	}
	if line = strings.TrimSpace(line); line == "" {
		return Event{}
	}
	return Event{Message, line}
}

// event extracts the name from the rest of a line.
func event(kind Kind, rest string) Event {
	switch kind {
	case PreBanner:
		_, rest, _ = strings.Cut(rest, ": ") // after its number
	case ServerVersion:
		_, rest, _ = strings.Cut(rest, "remote software version ")
		rest = strings.TrimSpace(rest)
	case Proxy:
		_, rest, _ = strings.Cut(rest, "command: ")
		rest = strings.TrimPrefix(rest, "exec ")
	case WrongKey:
		_, place, ok := strings.Cut(rest, " key in ")
		if !ok {
			return Event{Message, "Offending " + rest}
		}
		rest = place[:max(0, strings.LastIndexByte(place, ':'))] // without the line
	}
	return Event{kind, rest}
}

func channelRequest(rest string) Event {
	switch {
	case strings.Contains(rest, " rtype exit-status "):
		return Event{ExitStatus, rest}
	case strings.Contains(rest, " rtype exit-signal "):
		return Event{ExitSignal, rest}
	}
	return Event{}
}
