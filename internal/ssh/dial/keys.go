package dial

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

	mu   sync.Mutex
	seen map[string]*keyFile
}

// keyFile is one private key file, or a public one whose private half is
// expected in an agent.
type keyFile struct {
	files *keyFiles
	path  string
	pub   ssh.PublicKey // of the file, or of the public one beside it; nil when err says why

	once    sync.Once
	private ssh.AlgorithmSigner // nil: public only, or encrypted and not yet opened
	locked  []byte              // the encrypted file, nil when it is open
	lockErr error
	err     error
}

// open returns the key at path; nil when there is no such file and no public one
// beside it.
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
	f := &keyFile{files: k, path: path}
	data, err := readKey(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if f.pub = publicBeside(ctx, path); f.pub == nil {
			return nil
		}
		f.err = fmt.Errorf("key %s: only %s.pub is there, and no agent holds the key", path, path)
		return f
	case err != nil:
		f.err = fmt.Errorf("key %s: %w", path, err)
	default:
		f.load(ctx, data)
	}
	if f.pub == nil { // an agent may hold it all the same, as for ssh
		f.pub = publicBeside(ctx, path)
	}
	return f
}

// load reads a public key, or a private one that nobody else can read.
func (f *keyFile) load(ctx context.Context, data []byte) {
	if pub, _, _, _, err := ssh.ParseAuthorizedKey(data); err == nil {
		f.pub = pub
		return
	}
	if f.err = checkMode(f.path); f.err == nil {
		f.parse(ctx, data)
	}
}

// checkMode refuses a private key that others can read, as ssh does
// (authfile.c, sshkey_perm_ok).
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
		f.locked, f.pub = data, locked.PublicKey
		if f.pub == nil { // formats older than OpenSSH's own do not name it
			f.pub = publicBeside(ctx, f.path)
		}
		if f.pub == nil {
			f.err = fmt.Errorf("key %s: encrypted, and %s.pub is missing; add it to the agent", f.path, f.path)
		}
	case err != nil:
		f.err = fmt.Errorf("key %s: %w", f.path, err)
	default:
		f.use(s)
	}
}

func (f *keyFile) use(s ssh.Signer) {
	as, ok := s.(ssh.AlgorithmSigner)
	if !ok {
		f.err = fmt.Errorf("key %s: type %s cannot be used here", f.path, s.PublicKey().Type())
		return
	}
	f.private, f.pub = as, s.PublicKey()
}

func publicBeside(ctx context.Context, path string) ssh.PublicKey {
	data, err := readKey(ctx, path+".pub")
	if err != nil {
		return nil
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil
	}
	return pub
}

// canSign tells whether the file holds a private key that is open or could be
// opened by asking.
func (f *keyFile) canSign() bool {
	return f.private != nil || (f.locked != nil && f.files.askpass != nil)
}

func (f *keyFile) PublicKey() ssh.PublicKey { return f.pub }

func (f *keyFile) sign(ctx context.Context, data []byte, algorithm string) (*ssh.Signature, error) {
	f.once.Do(func() { f.unlock(ctx) })
	if f.private == nil {
		return nil, f.lockErr
	}
	return f.private.SignWithAlgorithm(rand.Reader, data, algorithm)
}

// unlock asks for the passphrase, once for all hosts.
func (f *keyFile) unlock(ctx context.Context) {
	if f.private != nil || f.locked == nil {
		return
	}
	pass, err := f.files.askpass(ctx, f.path)
	if err != nil {
		f.lockErr = fmt.Errorf("key %s: %w", f.path, err)
		return
	}
	s, err := ssh.ParsePrivateKeyWithPassphrase(f.locked, pass)
	if err != nil {
		f.lockErr = fmt.Errorf("key %s: %w", f.path, err)
		return
	}
	if as, ok := s.(ssh.AlgorithmSigner); ok {
		f.private = as
	}
}

// certKey is a certificate with the key that it certifies.
type certKey struct {
	cert *ssh.Certificate
	key  signer
}

func (c *certKey) PublicKey() ssh.PublicKey { return c.cert }

func (c *certKey) sign(ctx context.Context, data []byte, algorithm string) (*ssh.Signature, error) {
	return c.key.sign(ctx, data, algorithm)
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
