package dial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/sched"
)

// holder is another process that reads key files and signs. This one never has a private key, which
// could be found in its memory for as long as it lives. An encrypted key has a process of its own:
// while it asks a person, others sign.
type holder struct {
	start func() (io.ReadWriteCloser, error)
	turn  sync.Mutex // a question and its answer
	mu    sync.Mutex
	conn  io.ReadWriteCloser // nil: it does not run
}

// keyQuestion asks a holder about a key file, to open it, or for a signature.
type keyQuestion struct {
	Path      string
	Open      bool
	Sign      []byte
	Algorithm string
}

// keyAnswer is the answer.
type keyAnswer struct {
	Missing, Ready, Encrypted, Asks bool
	Public, Cert, Signature         []byte
	Foreign                         []string
	Err                             string
}

// ask waits for an answer.
func (h *holder) ask(ctx context.Context, q keyQuestion) (keyAnswer, error) {
	return sched.Await(ctx, func() (a keyAnswer, err error) {
		h.turn.Lock()
		defer h.turn.Unlock()
		conn, err := h.running()
		if err == nil {
			err = json.NewEncoder(conn).Encode(q)
		}
		if err == nil {
			err = json.NewDecoder(conn).Decode(&a)
		}
		if err == nil && a.Err != "" {
			err = errors.New(a.Err)
		}
		return a, err
	})
}

func (h *holder) running() (io.ReadWriter, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn == nil {
		conn, err := h.start()
		if err != nil {
			return nil, err
		}
		h.conn = conn
	}
	return h.conn, nil
}

// close ends the process, and waits for its end.
func (h *holder) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn != nil {
		h.conn.Close()
		h.conn = nil
	}
}

// ofHolder completes a key by the answer of the holder about its file; nil if that is missing.
func (f *keyFile) ofHolder(ctx context.Context) *keyFile {
	f.holder = f.files.holder
	a, err := f.holder.ask(ctx, keyQuestion{Path: f.path})
	if a.Missing {
		return nil
	}
	if f.foreign, f.encrypted, f.asks, f.ready, f.err = a.Foreign, a.Encrypted, a.Asks, a.Ready, err; f.encrypted {
		f.holder = &holder{start: f.holder.start}
	}
	for _, blob := range [][]byte{a.Public, a.Cert} {
		if pub, err := ssh.ParsePublicKey(blob); err == nil {
			f.public(pub)
		}
	}
	if f.pub == nil && f.err == nil {
		f.err = fmt.Errorf("key %s: it cannot be read", f.path)
	}
	return f
}

// HoldKeys is the process that holds keys: it answers until its input ends.
func HoldKeys(ctx context.Context, in io.Reader, out io.Writer, askpass func(ctx context.Context, path string) ([]byte, error)) error {
	ctx, end := context.WithCancel(ctx)
	var asked sync.WaitGroup
	defer asked.Wait() // a terminal is to be as it was
	defer end()
	keys := newKeyFiles(Options{Askpass: askpass})
	for questions := json.NewDecoder(in); ; {
		var q keyQuestion
		if err := questions.Decode(&q); err != nil {
			return nil
		}
		asked.Go(func() { _ = json.NewEncoder(out).Encode(keys.answer(ctx, &q)) }) // its input ends, too
	}
}

// answer answers a question.
func (k *keyFiles) answer(ctx context.Context, q *keyQuestion) keyAnswer {
	f := k.open(ctx, q.Path)
	if f == nil {
		return keyAnswer{Missing: true}
	}
	a, err := keyAnswer{Ready: f.ready, Encrypted: f.encrypted, Asks: f.asks, Foreign: f.foreign}, f.err
	switch {
	case q.Open:
		f.once.Do(func() { f.unlock(ctx) })
		err = f.lockErr
	case q.Sign != nil:
		var s *ssh.Signature
		if s, err = f.signature(ctx, q.Sign, q.Algorithm); err == nil {
			a.Signature = ssh.Marshal(s)
		}
	}
	if err != nil {
		a.Err = err.Error()
	}
	if f.pub != nil {
		a.Public = f.pub.Marshal()
	}
	if f.cert != nil {
		a.Cert = f.cert.Marshal()
	}
	return a
}
