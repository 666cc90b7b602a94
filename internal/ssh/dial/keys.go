package dial

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/sys/file"
)

// maxKey bounds a key file, in bytes, as ssh does (authfile.c, MAX_KEY_FILE_SIZE).
const maxKey = 1 << 20

// keyFiles reads every key file once per run.
type keyFiles struct {
	// askpass asks for the passphrase of the key at path; nil is "cannot ask".
	askpass func(ctx context.Context, path string) ([]byte, error)
	holder  *holder // has the keys; nil: they are here
	person  *Person // at the terminal that the holder asks on; nil: it asks on none

	mu   sync.Mutex
	seen map[string]*keyFile
}

// keyFile is one private key file, or a public one whose private half is expected in an agent.
type keyFile struct {
	files   *keyFiles
	path    string
	pub     ssh.PublicKey    // of the file, or of the public one next to it; nil when err gives the reason
	cert    *ssh.Certificate // the public file's certificate in place of the key
	foreign []string         // its type, where only ssh can sign with it

	holder    *holder // has the private key; nil: it is here
	encrypted bool
	asks      bool // whoever has it can ask for the passphrase
	once      sync.Once
	ready     bool                // it can sign: it is not public only, nor encrypted and not yet opened
	private   ssh.AlgorithmSigner // nil also if the holder has it
	locked    []byte              // the encrypted file
	lockErr   error
	err       error
}

func newKeyFiles(o Options) *keyFiles {
	k := &keyFiles{askpass: o.Askpass, person: o.Person, seen: map[string]*keyFile{}}
	if o.Holder != nil {
		k.holder = &holder{start: o.Holder}
	}
	return k
}

// forget drops all keys.
func (k *keyFiles) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for path, f := range k.seen {
		if delete(k.seen, path); f != nil && f.holder != nil {
			f.holder.close()
		}
	}
	if k.holder != nil {
		k.holder.close()
	}
}

// open returns the key at path; nil when there is no such file and no public one next to it.
func (k *keyFiles) open(ctx context.Context, path string) *keyFile {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, ok := k.seen[path]
	if !ok {
		f = k.read(ctx, path)
		k.seen[path] = f
	}
	return f
}

// readKey reads a file of a key, once for all hosts.
func readKey(ctx context.Context, path string) ([]byte, error) {
	return file.InTime(ctx, path, func() ([]byte, error) { return file.ReadFile(path, maxKey) })
}

func (k *keyFiles) read(ctx context.Context, path string) *keyFile {
	f := &keyFile{files: k, path: path, asks: k.askpass != nil}
	if k.holder != nil {
		return f.ofHolder(ctx)
	}
	data, err := readKey(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if f.readPublicFile(ctx); f.pub == nil {
			return nil
		}
		f.err = fmt.Errorf("key %s: only %s.pub is there, and no agent holds the key", path, path)
		return f
	case err != nil:
		f.err = fmt.Errorf("key %s: %w", path, err)
	default:
		f.load(ctx, data)
	}
	f.readPublicFile(ctx) // an agent may hold it where the file is of no use, as for ssh
	return f
}

// readPublicFile completes the key from its public file: with the public key, or a certificate.
func (f *keyFile) readPublicFile(ctx context.Context) {
	data, err := readKey(ctx, f.path+".pub")
	if err != nil {
		return
	}
	if pub, _, _, _, err := ssh.ParseAuthorizedKey(data); err == nil {
		f.public(pub)
	}
}

// public takes a public key, or a certificate of it, unless the key is known to be another one.
func (f *keyFile) public(pub ssh.PublicKey) {
	cert, certified := pub.(*ssh.Certificate)
	if certified {
		pub = cert.Key
	}
	if f.pub == nil {
		f.pub = pub
	}
	if certified && bytes.Equal(f.pub.Marshal(), pub.Marshal()) {
		f.cert = cert
	}
}

// load reads a public key, or a private one that nobody else can read.
func (f *keyFile) load(ctx context.Context, data []byte) {
	if pub, _, _, _, err := ssh.ParseAuthorizedKey(data); err == nil {
		f.public(pub)
		return
	}
	if f.err = checkMode(f.path); f.err == nil {
		f.parse(ctx, data)
	}
}

// checkMode refuses a private key that others can read, as ssh does (authfile.c, sshkey_perm_ok).
func checkMode(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("key %s: %w", path, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("key %s: permissions %04o are too open; chmod 600 it", path, info.Mode().Perm())
	}
	return nil
}

func (f *keyFile) parse(ctx context.Context, data []byte) {
	s, err := ssh.ParsePrivateKey(data)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		f.encrypted, f.locked, f.pub = true, data, locked.PublicKey
		if f.readPublicFile(ctx); f.pub == nil { // formats older than OpenSSH's own do not name it
			f.err = fmt.Errorf("key %s: encrypted, and %s.pub is missing; add it to the agent", f.path, f.path)
		}
	case err != nil:
		f.err = fmt.Errorf("key %s: %w", f.path, err)
		if kind := kindOf(data); kind != "" && !slices.Contains(signable, kind) {
			f.err = fmt.Errorf("key %s: only ssh can use a key of type %s", f.path, kind)
			f.foreign = []string{kind}
		}
	default:
		f.use(s)
	}
}

// signable are the types of keys that this program can sign with.
var signable = []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA}

// kindOf returns the type of a private key in OpenSSH's format (PROTOCOL.key), "" for others.
func kindOf(data []byte) string {
	block, _ := pem.Decode(data)
	if block == nil {
		return ""
	}
	var key struct {
		Magic                [15]byte
		Cipher, KDF, Options string
		Keys                 uint32
		Public               []byte
		Rest                 []byte `ssh:"rest"`
	}
	var public struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	if ssh.Unmarshal(block.Bytes, &key) != nil || ssh.Unmarshal(key.Public, &public) != nil {
		return ""
	}
	return public.Type
}

func (f *keyFile) use(s ssh.Signer) {
	as, ok := s.(ssh.AlgorithmSigner)
	if !ok {
		f.err = fmt.Errorf("key %s: type %s cannot be used here", f.path, s.PublicKey().Type())
		return
	}
	f.private, f.pub, f.ready = as, s.PublicKey(), true
}

// canSign reports whether the file holds a private key that is open or could be opened by asking.
func (f *keyFile) canSign(batch bool) bool {
	return f.ready || f.encrypted && f.asks && !batch
}

func (f *keyFile) PublicKey() ssh.PublicKey { return f.pub }

func (f *keyFile) sign(l *login, data []byte, algorithm string) (*ssh.Signature, error) {
	if f.encrypted {
		l.aside(l.target.connectTimeout(), func() { f.once.Do(func() { f.unlock(l.ctx) }) })
		if l.turn.gone {
			return nil, errGone
		}
	}
	return f.signature(l.ctx, data, algorithm)
}

// signature signs with a key that was unlocked.
func (f *keyFile) signature(ctx context.Context, data []byte, algorithm string) (*ssh.Signature, error) {
	switch {
	case !f.ready:
		return nil, f.lockErr
	case f.holder != nil:
		a, err := f.holder.ask(ctx, keyQuestion{Path: f.path, Sign: data, Algorithm: algorithm})
		s := new(ssh.Signature)
		return s, cmp.Or(err, ssh.Unmarshal(a.Signature, s))
	}
	return f.private.SignWithAlgorithm(rand.Reader, data, algorithm)
}

// unlock asks for the passphrase, once for all hosts.
func (f *keyFile) unlock(ctx context.Context) {
	switch {
	case f.ready || !f.encrypted:
		return
	case f.holder != nil:
		f.lockErr = f.files.person.aside(ctx, func() error {
			_, err := f.holder.ask(ctx, keyQuestion{Path: f.path, Open: true})
			return err
		})
	default:
		f.private, f.lockErr = f.opened(ctx)
	}
	f.ready = f.lockErr == nil
}

// mostPassphrases is how often a wrong passphrase is followed by another one, as with ssh.
const mostPassphrases = 3

// opened asks for the passphrase until it is right, or the same as before.
func (f *keyFile) opened(ctx context.Context) (ssh.AlgorithmSigner, error) {
	var before []byte
	err := errNoAnswer
	for range mostPassphrases {
		pass, asked := f.files.askpass(ctx, f.path)
		if asked != nil || bytes.Equal(pass, before) {
			err = cmp.Or(asked, err)
			break
		}
		var s ssh.Signer
		if s, err = ssh.ParsePrivateKeyWithPassphrase(f.locked, pass); err == nil {
			if as, ok := s.(ssh.AlgorithmSigner); ok {
				return as, nil
			}
		}
		if before = pass; !errors.Is(err, x509.IncorrectPasswordError) {
			break
		}
	}
	return nil, fmt.Errorf("key %s: %w", f.path, err)
}

// certKey is a certificate with the key that it certifies.
type certKey struct {
	cert  *ssh.Certificate
	key   signer
	alone bool // the key need not be one that could be offered by itself
}

func (c *certKey) PublicKey() ssh.PublicKey { return c.cert }

func (c *certKey) sign(l *login, data []byte, algorithm string) (*ssh.Signature, error) {
	return c.key.sign(l, data, algorithm)
}

type certificate struct {
	*ssh.Certificate
	path   string
	beside bool // it belongs to a key file, and was not named
}

// signer returns a signer by the certificate, nil if nothing can.
func (c certificate) signer(files []*keyFile, agentHas map[string]signer, batch bool) (k signer) {
	blob := string(c.Key.Marshal())
	for _, f := range files {
		if f.canSign(batch) && string(f.pub.Marshal()) == blob && (c.beside || f.cert == nil) {
			k = &certKey{c.Certificate, f, c.beside}
			break
		}
	}
	held, plain := agentHas[string(c.Marshal())], agentHas[blob]
	switch {
	case held != nil && !(k != nil && c.beside):
		return held
	case k == nil && plain != nil:
		return &certKey{c.Certificate, plain, false}
	}
	return k
}

// readCert reads a certificate file; nil and no error when there is none.
func readCert(ctx context.Context, path string) (*ssh.Certificate, error) {
	data, err := readKey(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", path, err)
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", path, err)
	}
	cert, ok := pub.(*ssh.Certificate)
	if !ok {
		return nil, fmt.Errorf("certificate %s: holds a plain key", path)
	}
	return cert, nil
}
