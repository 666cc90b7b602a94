package transport

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/channel"
)

// Login says how to log in: by public keys (RFC 4252 section 7), then by a password.
type Login struct {
	User string
	// Keys are tried in order. Their Algorithms are names of signatures, best first.
	Keys []ssh.MultiAlgorithmSigner
	// Direct signs with the first key without asking whether it would do.
	Direct bool
	// Apart asks in steps, so that each answer of the server is for one thing: which methods there
	// are, whether a key would do, and the signature. Direct has no effect then.
	Apart bool
	// Method picks the next step if the keys fail, or are not enough (partial), from the methods
	// that can continue: "password", "keyboard-interactive", or "", to give up; nil gives up.
	Method func(can []string, partial bool) string
	// Answer answers the questions of that method, of which there may be none. An error ends the
	// login.
	Answer func(Asked) ([]string, error)
	// Ahead is requested once logged in; nil leaves that to Mux. It leaves with the login if the
	// server is known to accept that and Early allows it when the login is sent, otherwise right
	// after it.
	Ahead *Command
	Early func() bool // nil: yes
}

// Asked is what a server asks at once. It must not be shown raw.
type Asked struct {
	Name, Instruction string
	Questions         []Question
}

// Question is one of the server's questions.
type Question struct {
	Text string
	Echo bool // the answer may be shown
}

// passwordQuestion is the question of the method "password".
const passwordQuestion = "Password: "

// Command is a session's one command or subsystem.
type Command struct {
	Line      string
	Subsystem bool     // Line names one
	Env       []string // NAME=value
	EOF       bool     // it gets no input
}

// DeniedError is a login that was refused.
type DeniedError struct {
	Methods []string // that could continue; from the server: it must not be shown raw
	Partial bool     // something was accepted, but is not enough
}

func (e *DeniedError) Error() string {
	return "ssh: unable to authenticate, " + strings.Join(e.Methods, ",") + " can continue"
}

// eagerness is how much may be sent to a server before it has answered.
type eagerness uint8

const (
	stepwise   eagerness = iota
	together             // service request and login
	commandToo           // and, once logged in, a session with its command
	allAtOnce            // and all of that at once
)

// habits distinguishes servers by their version lines. In order: sshd answers each packet in its
// turn, and numbers the first channel 0 since it has channels (dispatch.c, channels.c); dropbear
// does the same as long as the login succeeds, but ends the connection over a channel before it
// does; Go's server forgets packets for a channel that it has not confirmed. RFC 4252 section 5.3
// and RFC 4253 section 10 allow to continue; no RFC says that a first channel has number 0. Others
// are not listed: they get one packet at a time.
var habits = []struct {
	prefix string
	eagerness
}{
	{"SSH-2.0-OpenSSH_", allAtOnce},
	{"SSH-2.0-dropbear", commandToo},
	{"SSH-2.0-tinyssh", together},
	{"SSH-2.0-Go", together},
}

func (c *Conn) eagerness() eagerness {
	for _, h := range habits {
		if strings.HasPrefix(c.greeting.Version, h.prefix) {
			return h.eagerness
		}
	}
	return stepwise
}

const (
	serviceUserauth   = "ssh-userauth"
	serviceConnection = "ssh-connection"
)

// attempt is a running login.
type attempt struct {
	*Conn
	Login
	accepts bool                                // the service was accepted
	asked   *question                           // requests that the server has not answered yet
	method  string                              // the running one of Method
	early   bool                                // the command has left with a signature
	next    int                                 // key to try
	tried   map[ssh.MultiAlgorithmSigner]string // the algorithm by which a key was tried
	heeded  int                                 // of extended: the basis of the choice of keys
	partial bool                                // something was accepted
}

// question asks whether a key would be accepted.
type question struct {
	key       ssh.MultiAlgorithmSigner
	algorithm string
}

// Authenticate logs in. If that fails and Asked then returns false, Ahead has not run.
func (c *Conn) Authenticate(l Login) error {
	if c.in.buffered() > 0 { // EXT_INFO, with the signature algorithms
		if err := c.peekExtensions(); err != nil {
			return err
		}
	}
	a := &attempt{Conn: c, Login: l, tried: map[ssh.MultiAlgorithmSigner]string{}, heeded: c.extended}
	if err := a.run(); err != nil {
		return err
	}
	c.loggedIn = true
	if l.Ahead != nil && !c.Asked() && c.eagerness() >= commandToo {
		a.askAhead()
	}
	return c.flush()
}

// Asked reports whether the command was sent, and nothing shows that it does not run. The end of
// the connection, of whatever kind, and silence show nothing: anybody on the path can make them.
// Only the server's words under the keys of the session do: disproves.
func (c *Conn) Asked() bool { return len(c.sent) > 0 }

// Banner returns the last line that the server has sent for people to read (RFC 4252 section 5.4).
func (c *Conn) Banner() string { return c.banner }

// disproves reports whether the server says that the command will not run: it has refused the
// login, disconnected instead of granting it, or does not know the request for the command. It
// answers in order, so that it has granted no login before.
func (c *Conn) disproves(p []byte, err error) bool {
	if farewell := (*DisconnectError)(nil); err != nil {
		return errors.As(err, &farewell)
	}
	f := channel.FieldsOf(p)
	return p[0] == msgUserauthFailure || p[0] == msgUnimplemented && f.Number() == c.execSeq && f.Err() == nil
}

// peekExtensions takes the packet that has already arrived.
func (c *Conn) peekExtensions() error {
	p, err := c.raw()
	if err != nil {
		return err
	}
	switch p[0] {
	case msgExtInfo:
		c.extensions(p)
	case msgIgnore, msgDebug:
	default:
		return unexpected(p[0], msgExtInfo)
	}
	return nil
}

func (a *attempt) run() error {
	a.queue(channel.AppendText([]byte{msgServiceRequest}, serviceUserauth))
	if a.eagerness() < together {
		if err := a.service(); err != nil {
			return err
		}
	}
	a.first()
	for {
		p, err := a.answer()
		switch {
		case err != nil:
			return err
		case p[0] == msgUserauthSuccess:
			a.step(StepAuth)
			return nil
		case p[0] == msgUserauthMore:
			err = a.more(p)
		default:
			err = a.refused(p)
		}
		if err != nil {
			return err
		}
	}
}

// first sends the first login request: a signature by the first key if that is allowed, otherwise a
// question.
func (a *attempt) first() {
	if a.Apart {
		a.queue(a.request("none"))
		return
	}
	if !a.Direct || len(a.Keys) == 0 {
		a.tryOrAsk()
		return
	}
	a.next = 1
	a.signOr(a.Keys[0])
}

// signOr signs, or continues with the next key.
func (a *attempt) signOr(key ssh.MultiAlgorithmSigner) {
	if a.sign(key) != nil {
		a.tryOrAsk()
	}
}

// tryOrAsk tries the next key; if none is left, it asks the server which methods can continue.
func (a *attempt) tryOrAsk() {
	if !a.try() {
		a.queue(a.request("none"))
	}
}

// try asks whether the next key would be accepted. It reports whether there is one.
func (a *attempt) try() bool {
	for ; a.next < len(a.Keys); a.next++ {
		name, err := a.algorithm(a.Keys[a.next])
		if err != nil || a.tried[a.Keys[a.next]] == name {
			continue
		}
		a.asked = &question{a.Keys[a.next], name}
		a.next++
		a.queue(a.publicKey(a.asked.key, name, false))
		return true
	}
	return false
}

// ErrNewPassword is the error of a server that accepts no password before it is changed.
var ErrNewPassword = errors.New("the server wants the password changed first")

// more handles messages whose meaning depends on the method.
func (a *attempt) more(p []byte) error {
	switch {
	case a.asked != nil:
		a.step(StepQuery)
		return a.accepted(p)
	case a.method == "keyboard-interactive":
		return a.questions(p)
	case a.method == "password":
		return ErrNewPassword
	}
	return unexpected(p[0], msgUserauthSuccess)
}

var errOtherKey = errors.New("ssh: the server accepts another key than it was asked about")

// accepted signs once for the key that the server was asked about. As with ssh, some servers name
// the type of the key for the algorithm.
func (a *attempt) accepted(p []byte) error {
	asked := a.asked
	a.asked = nil
	f := channel.FieldsOf(p)
	algorithm, key := string(f.Text()), f.Text()
	if err := f.End(); err != nil {
		return err
	}
	public := asked.key.PublicKey()
	if algorithm != asked.algorithm && algorithm != public.Type() || !bytes.Equal(key, public.Marshal()) {
		return errOtherKey
	}
	a.signOr(asked.key)
	return nil
}

// refused continues with the next key, or by another method.
func (a *attempt) refused(p []byte) error {
	var m struct {
		Methods []string `sshtype:"51"`
		Partial bool
	}
	if err := ssh.Unmarshal(p, &m); err != nil {
		return err
	}
	if a.Apart {
		a.step(StepMethods)
	}
	a.asked, a.method, a.partial = nil, "", a.partial || m.Partial
	if a.heeded < a.extended { // it accepts other signatures than announced
		a.heeded, a.next = a.extended, 0
	}
	switch byKey := slices.Contains(m.Methods, "publickey"); {
	case byKey && a.try():
		return nil
	case !byKey && !m.Partial: // no key was looked at: one may be wanted later
		a.next = 0
		clear(a.tried)
	}
	if a.Method != nil {
		a.method = a.Method(m.Methods, m.Partial)
	}
	switch a.method {
	case "password":
		return a.password()
	case "keyboard-interactive": // any language and devices
		a.queue(append(a.request(a.method), make([]byte, 8)...))
		return nil
	}
	return &DeniedError{Methods: m.Methods, Partial: a.partial}
}

// password gives the password (RFC 4252 section 8).
func (a *attempt) password() error {
	answers, err := a.Answer(Asked{Questions: []Question{{Text: passwordQuestion}}})
	if err == nil {
		a.queue(channel.AppendText(append(a.request(a.method), 0), answers[0]))
	}
	return err
}

// questions lets Answer answer the server's questions, of which there may be none (RFC 4256
// sections 3.2 to 3.4).
func (a *attempt) questions(p []byte) error {
	f := channel.FieldsOf(p)
	asked := Asked{Name: string(f.Text()), Instruction: string(f.Text())}
	f.Text() // language
	for n := f.Number(); n > 0 && f.Err() == nil; n-- {
		asked.Questions = append(asked.Questions, Question{string(f.Text()), f.Bool()})
	}
	if err := f.End(); err != nil {
		return err
	}
	answers, err := a.Answer(asked)
	if err != nil {
		return err
	}
	response := channel.AppendNumber([]byte{msgUserauthAnswers}, uint32(len(answers)))
	for _, text := range answers {
		response = channel.AppendText(response, text)
	}
	a.queue(response)
	return nil
}

// answer reads the server's answer to the last request.
func (a *attempt) answer() ([]byte, error) {
	for {
		p, err := a.said()
		switch {
		case err != nil:
			return nil, err
		case !a.accepts:
			if err := a.accept(p); err != nil {
				return nil, err
			}
		case p[0] == msgUserauthBanner:
			a.Conn.banner = lastLine(string(channel.FieldsOf(p).Text()))
		case p[0] == msgUserauthSuccess, p[0] == msgUserauthFailure, p[0] == msgUserauthMore:
			return p, nil
		default:
			return nil, unexpected(p[0], msgUserauthSuccess)
		}
	}
}

// maxBanner is how much of a line of a banner is kept.
const maxBanner = 300

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	line := strings.TrimSpace(text[strings.LastIndexAny(text, "\r\n")+1:])
	return strings.ToValidUTF8(line[:min(len(line), maxBanner)], "?")
}

// said returns the server's next message about the login.
func (a *attempt) said() ([]byte, error) {
	for {
		p, err := a.Conn.next()
		p = bytes.Clone(p)
		if a.disproves(p, err) {
			a.sent = nil
		}
		if err != nil || p[0] != msgUnimplemented {
			return p, err
		}
	}
}

// service waits for the service to be accepted.
func (a *attempt) service() error {
	p, err := a.said()
	if err != nil {
		return err
	}
	return a.accept(p)
}

func (a *attempt) accept(p []byte) error {
	if p[0] != msgServiceAccept {
		return unexpected(p[0], msgServiceAccept)
	}
	a.accepts = true
	a.step(StepService)
	return nil
}

// sign queues a signed request, followed by the requests for the time after the login. Those leave
// with one signature: if the server refuses it, they are sent again when it has granted the login.
func (a *attempt) sign(key ssh.MultiAlgorithmSigner) error {
	name, err := a.algorithm(key)
	if err != nil {
		return err
	}
	request := a.publicKey(key, name, true)
	sig, err := key.SignWithAlgorithm(nil, append(channel.AppendText(nil, a.session), request...), alg.Plain(name))
	if err != nil {
		return err
	}
	if a.Apart {
		a.step(StepSign)
	}
	a.queue(channel.AppendText(request, ssh.Marshal(sig)))
	if a.Ahead != nil && !a.early && a.eagerness() >= allAtOnce && (a.Early == nil || a.Early()) {
		a.early = true
		a.askAhead()
	}
	return nil
}

// request begins a request (RFC 4252 section 5).
func (a *attempt) request(method string) []byte {
	p := []byte{msgUserauthRequest}
	for _, s := range []string{a.User, serviceConnection, method} {
		p = channel.AppendText(p, s)
	}
	return p
}

// publicKey returns a request by a key (RFC 4252 section 7), without its signature. As with ssh it
// names the server's key if the server knows that: an agent that is itself forwarded requires it.
func (a *attempt) publicKey(key ssh.MultiAlgorithmSigner, algorithm string, signed bool) []byte {
	a.tried[key] = algorithm
	method := "publickey"
	if a.bound {
		method = "publickey-hostbound-v00@openssh.com"
	}
	p := channel.AppendBool(a.request(method), signed)
	p = channel.AppendText(channel.AppendText(p, algorithm), key.PublicKey().Marshal())
	if a.bound {
		p = channel.AppendText(p, a.hostKey)
	}
	return p
}

// algorithm picks the signature algorithm of a key: the first that the server has named, or the
// first at all if it has named none.
func (a *attempt) algorithm(key ssh.MultiAlgorithmSigner) (string, error) {
	kind := key.PublicKey().Type()
	names := key.Algorithms()
	if len(names) == 0 {
		return "", errors.New("no algorithm is allowed for a key of type " + kind)
	}
	name := names[0]
	if a.sigAlgs != nil {
		i := slices.IndexFunc(names, func(n string) bool { return slices.Contains(a.sigAlgs, n) })
		if i < 0 {
			i = slices.Index(names, alg.Plain(kind)) // some servers do not name all that they take
		}
		if i < 0 {
			return "", fmt.Errorf("the server takes no signature of a key of type %s that is allowed here: %s", kind, strings.Join(names, ","))
		}
		name = names[i]
	}
	if alg.Plain(kind) == kind {
		return name, nil
	}
	if strings.HasPrefix(name, "rsa-sha2-") {
		return name + alg.CertSuffix, nil
	}
	return kind, nil
}

// askAhead queues a session and its command, as Mux would.
func (a *attempt) askAhead() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = a.Ahead.packets()
	a.execSeq = a.send.seq + uint32(a.Ahead.before())
	for _, p := range a.sent {
		a.sealLocked(p, nil)
	}
}

// firstChannel is the number of the first channel of each server above.
const firstChannel = 0

// packets returns the requests for the command (RFC 4254 sections 5.1, 6.4, 6.5, 5.3).
func (c *Command) packets() [][]byte {
	all := [][]byte{channel.Open("session", 0, nil)}
	for _, kv := range c.Env {
		name, value, _ := strings.Cut(kv, "=")
		all = append(all, channel.Request(firstChannel, "env", false, channel.Text(name, value)))
	}
	kind := "exec"
	if c.Subsystem {
		kind = "subsystem"
	}
	all = append(all, channel.Request(firstChannel, kind, true, channel.Text(c.Line)))
	if c.EOF {
		all = append(all, channel.EOF(firstChannel))
	}
	return all
}

// before counts the packets before the request for the command.
func (c *Command) before() int { return 1 + len(c.Env) }
