package dial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/transport"
)

// keyring turns Identities into keys to try, once per distinct Identity.
type keyring struct {
	agents *agents
	files  *keyFiles

	mu   sync.Mutex
	sets map[string]*sched.Together[*keySet]
}

// keySet holds the keys of one Identity.
type keySet struct {
	keys     []signer
	spare    map[string]signer // key files whose keys are also in the agent, which signs first
	problems []string          // why keys are missing, for the hint of a failed login
	foreign  []string          // types of keys that only ssh can sign with
	stale    func() bool       // whether they must be collected anew; nil: never
	// good is the key of the last login: hosts of one fleet mostly accept the same one, and every
	// refused key costs a round trip.
	good atomic.Pointer[signer]
}

// key identifies an identity. No path has a zero byte.
func (id *Identity) key() string {
	const end = "\x00\x00"
	return strings.Join(id.Files, "\x00") + end + strings.Join(id.Certificates, "\x00") + end + strconv.FormatBool(id.Only) + strconv.FormatBool(id.Batch) + end + id.Agent
}

// set returns the keys for t, collected once for all targets of the same identity. Only the end of
// ctx is an error.
func (r *keyring) set(ctx context.Context, t *Target) (*keySet, error) {
	key := t.Identity.key()
	for {
		r.mu.Lock()
		collected := r.sets[key]
		if collected == nil {
			collected = &sched.Together[*keySet]{Find: func(ctx context.Context) (*keySet, error) { return r.collect(ctx, &t.Identity, t.connectTimeout()) }}
			r.sets[key] = collected
		}
		r.mu.Unlock()
		s, err := collected.Get(ctx)
		if err != nil || s.stale == nil || !s.stale() {
			return s, err
		}
		r.mu.Lock()
		if r.sets[key] == collected {
			delete(r.sets, key)
		}
		r.mu.Unlock()
	}
}

// forget drops all keys: the next login collects them anew.
func (r *keyring) forget() {
	r.mu.Lock()
	clear(r.sets)
	r.mu.Unlock()
	r.files.forget()
	r.agents.forget()
}

// collect orders the keys as ssh does (sshconnect2.c, pubkey_prepare): certificates, named agent
// keys, other agent keys, key files.
func (r *keyring) collect(ctx context.Context, id *Identity, timeout time.Duration) (*keySet, error) {
	s := &keySet{spare: make(map[string]signer)}
	held, err := r.agents.keysOf(ctx, id.Agent, timeout)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		s.problems = append(s.problems, err.Error())
	}
	if s.foreign = held.foreign; len(held.keys) > 0 {
		s.stale = held.keys[0].agent.lost.Load
	}
	files := s.open(ctx, r.files, id)
	certs := s.certificates(ctx, id, files)
	named := make(map[string]bool) // of the keys in files, those that the agent may sign with its own
	for _, f := range files {
		named[string(f.pub.Marshal())] = named[string(f.pub.Marshal())] || f.cert == nil
	}
	for _, c := range certs {
		named[string(c.Marshal())] = named[string(c.Marshal())] || c.beside
	}
	agentHas := make(map[string]signer, len(held.keys))
	for _, k := range held.keys {
		if blob := string(k.pub.Marshal()); !id.Only || named[blob] {
			agentHas[blob] = k
		}
	}
	offered := make(map[string]bool)
	offer := func(k signer) {
		if blob := string(k.PublicKey().Marshal()); !offered[blob] {
			s.keys = append(s.keys, k)
			offered[blob] = true
		}
	}
	for _, c := range certs {
		if k := c.signer(files, agentHas, id.Batch); k != nil {
			offer(k)
		} else {
			s.problems = append(s.problems, "certificate "+c.path+": its private key is neither in a file nor in the agent")
		}
	}
	for _, f := range files {
		if k := agentHas[string(f.pub.Marshal())]; k != nil && f.cert == nil {
			offer(k)
		}
	}
	for _, k := range held.keys {
		if agentHas[string(k.pub.Marshal())] != nil {
			offer(k)
		}
	}
	for _, f := range files {
		switch {
		case f.cert != nil:
		case f.canSign(id.Batch):
			offer(f)
			s.spare[string(f.pub.Marshal())] = f
		case offered[string(f.pub.Marshal())]:
		case f.err != nil:
			s.problems = append(s.problems, f.err.Error())
		case f.encrypted:
			s.problems = append(s.problems, "key "+f.path+" is encrypted; ssh-add it, or set SSH_ASKPASS")
		}
	}
	return s, nil
}

// open reads the existing key files of an identity that reveal their key.
func (s *keySet) open(ctx context.Context, from *keyFiles, id *Identity) (files []*keyFile) {
	for _, path := range id.Files {
		f := from.open(ctx, path)
		if f == nil {
			continue
		}
		if s.foreign = append(s.foreign, f.foreign...); f.pub != nil {
			files = append(files, f)
		} else {
			s.problems = append(s.problems, f.err.Error())
		}
	}
	return files
}

// certificates reads the certificates of an identity: if it names none, those next to its keys. A
// certificate in the place of a public key stands for that key.
func (s *keySet) certificates(ctx context.Context, id *Identity, files []*keyFile) (certs []certificate) {
	read := func(path string, adjacent bool) {
		cert, err := readCert(ctx, path)
		if err != nil {
			s.problems = append(s.problems, err.Error())
		}
		if cert != nil {
			certs = append(certs, certificate{cert, path, adjacent})
		}
	}
	for _, path := range id.Certificates {
		read(path, false)
	}
	for _, f := range files {
		if f.cert != nil {
			certs = append(certs, certificate{f.cert, f.path + ".pub", true})
		}
	}
	for _, path := range id.Files {
		if len(id.Certificates) == 0 {
			read(strings.TrimSuffix(path, ".pub")+"-cert.pub", true)
		}
	}
	return certs
}

// inOrder returns the keys with the last good one first.
func (s *keySet) inOrder() []signer {
	good := s.good.Load()
	if good == nil || len(s.keys) < 2 || s.keys[0] == *good {
		return s.keys
	}
	keys := make([]signer, 0, len(s.keys))
	keys = append(keys, *good)
	for _, k := range s.keys {
		if k != *good {
			keys = append(keys, k)
		}
	}
	return keys
}

// login is the authentication of one connection.
type login struct {
	ctx     *patience // of the login; ssh.Signer's methods have none
	turn    *turn
	hungUp  func() bool
	target  *Target
	set     *keySet
	signErr error // of the last key that the server would have taken
	unfit   error // why keys were left out
	used    signer
	bound   *asked // of the agent's keys that are for some hosts only, those for this one; nil: there are none
	offered offered
}

// byPerson reports whether a person was needed.
func (l *login) byPerson() bool {
	k := l.used
	if cert, ok := k.(*certKey); ok {
		k = cert.key
	}
	file, _ := k.(*keyFile)
	return l.offered.given || file != nil && file.encrypted
}

// failed describes a failed login.
func (l *login) failed(err error) error {
	if denied, ok := errors.AsType[*transport.DeniedError](err); ok {
		return l.denied(denied.Methods, denied.Partial)
	}
	if errors.Is(err, transport.ErrNewPassword) {
		return l.fail(fmt.Errorf("%w; log in there with ssh once", err))
	}
	return err
}

// denied words a refused login as ssh does. methods are those that could continue, partial means
// that a key was good but not enough.
func (l *login) denied(methods []string, partial bool) *Error {
	e := &Error{
		Class: fleet.AuthFailed, OnlySSH: slices.ContainsFunc(l.set.foreign, l.target.takes),
		Text: fmt.Sprintf("%s@%s: Permission denied (%s).", l.target.User, l.target.HostName, strings.Join(methods, ",")),
	}
	switch {
	case l.offered.err != nil:
		e.Hint, e.Err = l.offered.err.Error(), l.offered.err
	case l.offered.given && l.turn.person != nil:
		e.Hint = "the answers were refused"
	case l.offered.given:
		e.Hint = "the password was refused; it is tried once on a host"
	case l.signErr != nil:
		e.Hint = l.signErr.Error()
	case partial:
		e.Hint = "the server wants a second factor" + l.otherwise(methods)
	case !slices.Contains(methods, "publickey"):
		e.Hint = "the server takes no public keys" + l.otherwise(methods)
	case l.unfit != nil:
		e.Hint = l.unfit.Error()
	case len(l.set.problems) > 0:
		e.Hint = strings.Join(l.set.problems, "; ")
	case len(l.set.keys) == 0:
		e.Hint = "no key to log in with; name one with -i or add one to the agent" + l.orPassword(methods, ", or ")
	default:
		e.Hint = fmt.Sprintf("the host accepts none of your keys (%d) for %s; check authorized_keys there", len(l.set.keys), l.target.User) + l.orPassword(methods, ", or ")
	}
	return e
}

// otherwise suggests how to log in if keys do not suffice.
func (l *login) otherwise(methods []string) string {
	if slices.ContainsFunc(methods, func(m string) bool { return strings.HasPrefix(m, "gssapi-") || m == "hostbased" }) {
		return "; --engine openssh can use the methods that ssh is configured for" + l.orPassword(methods, ", or ")
	}
	return l.orPassword(methods, "; ")
}

// orPassword appends that a password works, if the host would accept one.
func (l *login) orPassword(methods []string, separator string) string {
	if l.prompter() != nil || !slices.ContainsFunc(l.target.PasswordMethods, func(m string) bool { return slices.Contains(methods, m) }) {
		return ""
	}
	return separator + l.target.Remedy
}

// takes reports whether ssh would offer a key of a type, or a certificate of it.
func (t *Target) takes(keyType string) bool {
	return t.PubkeyAlgorithms == nil || slices.ContainsFunc(t.PubkeyAlgorithms, func(name string) bool { return alg.Plain(name) == keyType })
}

// methods returns the keys and other methods to try, for package transport. The first key signs at
// once if that bothers nobody: a person may be asked for a passphrase or a touch.
func (l *login) methods() transport.Login {
	out := transport.Login{User: l.target.User, Method: l.method, Answer: l.answer}
	var first signer
	for _, k := range l.set.inOrder() {
		if held := agentKeyOf(k); held != nil && held.isTied(l.ctx) && (l.bound == nil || !l.bound.has(held.pub.Marshal())) {
			if k = l.set.spare[string(k.PublicKey().Marshal())]; k == nil {
				l.unfit = errors.New("a key of the agent is for other hosts only (ssh-add -h)")
				continue
			}
		}
		if bits := knownhosts.RSABits(k.PublicKey()); bits > 0 && bits < l.target.minRSABits() {
			l.unfit = fmt.Errorf("an RSA key of %d bits is not used, RequiredRSASize is %d", bits, l.target.minRSABits())
			continue
		}
		if cert, ok := k.(*certKey); ok && !cert.alone && len(l.algorithms(cert.cert.Key)) == 0 {
			continue // as ssh, which has dropped the key by then
		}
		if algs := l.algorithms(k.PublicKey()); len(algs) > 0 {
			first = cmp.Or(first, k)
			out.Keys = append(out.Keys, &boundSigner{login: l, key: k, algs: algs})
		}
	}
	switch {
	case first != nil:
		out.Direct = l.set.direct(first, len(out.Keys))
	case l.unfit == nil && len(l.set.keys) > 0: // without any, the server's list of methods makes the message
		l.unfit = errors.New("no key is of a type that PubkeyAcceptedAlgorithms allows")
	}
	return out
}

// algorithms returns the signature algorithms that a key may be used with here.
func (l *login) algorithms(key ssh.PublicKey) []string {
	return signatureAlgorithms(key.Type(), l.target.PubkeyAlgorithms)
}

// bind binds a connection to the agent to the server, if it holds keys that are for some hosts
// only. Call end when the login has ended.
func (l *login) bind(binding []byte) (end func()) {
	for _, k := range l.set.keys {
		if held := agentKeyOf(k); held != nil && held.isTied(l.ctx) {
			bound, err := held.agent.open(l.ctx, binding)
			if err != nil {
				break
			}
			l.bound = bound
			return func() { bound.conn.Close() }
		}
	}
	return func() {}
}

// direct reports whether the first of n keys should sign without a question.
func (s *keySet) direct(k signer, n int) bool {
	if good := s.good.Load(); good != nil && *good == k {
		return true
	}
	if strings.HasPrefix(k.PublicKey().Type(), "sk-") {
		return false
	}
	if cert, ok := k.(*certKey); ok {
		k = cert.key
	}
	if file, ok := k.(*keyFile); ok {
		return !file.encrypted
	}
	return n == 1
}

// succeeded remembers the key.
func (l *login) succeeded() {
	if k := l.used; k != nil {
		if good := l.set.good.Load(); good == nil || *good != k {
			l.set.good.Store(&k)
		}
	}
}

// signatureAlgorithms returns the algorithms that a key of a type can sign with, best first, as far
// as allowed (nil: all secure ones) names them, in their plain or certificate form. As in ssh,
// SHA-1 is used where it is named, and the order is that of allowed.
func signatureAlgorithms(keyType string, allowed []string) []string {
	base := alg.Plain(keyType)
	algs := []string{base}
	if base == ssh.KeyAlgoRSA {
		algs = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	if allowed == nil {
		return algs
	}
	algs = append(algs, base)
	named := make([]string, 0, len(algs))
	for _, name := range allowed {
		plain := alg.Plain(name)
		ofCert := plain != name
		if ofCert == (base != keyType) && slices.Contains(algs, plain) && !slices.Contains(named, plain) {
			named = append(named, plain)
		}
	}
	return named
}

// boundSigner is a key bound to one login, so that the login's end also ends waiting for an agent.
type boundSigner struct {
	login *login
	key   signer
	algs  []string
}

var _ ssh.MultiAlgorithmSigner = (*boundSigner)(nil)

func (s *boundSigner) PublicKey() ssh.PublicKey { return s.key.PublicKey() }

func (s *boundSigner) Algorithms() []string { return s.algs }

func (s *boundSigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return s.SignWithAlgorithm(rand, data, s.algs[0])
}

// SignWithAlgorithm is called only for a key that the server has accepted.
func (s *boundSigner) SignWithAlgorithm(_ io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s.login.used = s.key
	sig, err := s.key.sign(s.login, data, algorithm)
	s.login.signErr = err
	return sig, err
}
