package dial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// holder is another process that reads key files and signs. This one never has a private key, which
// could be found in its memory for as long as it lives.
type holder struct {
	start func() (io.ReadWriteCloser, error)

	mu    sync.Mutex
	conn  io.ReadWriteCloser // nil: it does not run
	last  int
	waits map[int]chan keyAnswer
}

// keyQuestion asks a holder about a key file, to open it, or for a signature.
type keyQuestion struct {
	ID        int
	Path      string
	Open      bool
	Sign      []byte
	Algorithm string
}

// keyAnswer is the answer.
type keyAnswer struct {
	ID               int
	Missing          bool
	Ready, Encrypted bool
	Public, Cert     []byte
	Foreign          []string
	Problem          string // with the file
	Signature        []byte
	Err              string
}

var errHolderEnded = errors.New("the process that holds the keys has ended")

// ask waits for an answer.
func (h *holder) ask(ctx context.Context, q keyQuestion) (a keyAnswer, err error) {
	answer, err := h.send(&q)
	if err != nil {
		return a, err
	}
	select {
	case a = <-answer:
		if a.Err != "" {
			err = errors.New(a.Err)
		}
		return a, err
	case <-ctx.Done():
		return a, context.Cause(ctx)
	}
}

func (h *holder) send(q *keyQuestion) (<-chan keyAnswer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn == nil {
		conn, err := h.start()
		if err != nil {
			return nil, err
		}
		h.conn, h.waits = conn, map[int]chan keyAnswer{}
		go h.hear(conn, h.waits)
	}
	h.last++
	q.ID = h.last
	answer := make(chan keyAnswer, 1)
	h.waits[q.ID] = answer
	return answer, json.NewEncoder(h.conn).Encode(q)
}

// hear passes answers on until the process ends.
func (h *holder) hear(conn io.ReadWriteCloser, waits map[int]chan keyAnswer) {
	for in := json.NewDecoder(conn); ; {
		var a keyAnswer
		err := in.Decode(&a)
		h.mu.Lock()
		if err != nil {
			for _, wait := range waits {
				wait <- keyAnswer{Err: errHolderEnded.Error()}
			}
			ours := h.conn == conn
			if ours {
				h.conn = nil
			}
			h.mu.Unlock()
			if ours {
				conn.Close()
			}
			return
		}
		waits[a.ID] <- a
		delete(waits, a.ID)
		h.mu.Unlock()
	}
}

// close ends the process, and waits for its end.
func (h *holder) close() {
	h.mu.Lock()
	conn := h.conn
	h.conn = nil
	h.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

func (h *holder) unlock(ctx context.Context, path string) error {
	_, err := h.ask(ctx, keyQuestion{Path: path, Open: true})
	return err
}

func (h *holder) sign(ctx context.Context, path string, data []byte, algorithm string) (*ssh.Signature, error) {
	a, err := h.ask(ctx, keyQuestion{Path: path, Sign: data, Algorithm: algorithm})
	if err != nil {
		return nil, err
	}
	signature := new(ssh.Signature)
	return signature, ssh.Unmarshal(a.Signature, signature)
}

// ofHolder completes a key by what the holder says of its file; nil: there is none.
func (f *keyFile) ofHolder(ctx context.Context) *keyFile {
	a, err := f.files.holder.ask(ctx, keyQuestion{Path: f.path})
	switch {
	case err != nil:
		f.err = fmt.Errorf("key %s: %w", f.path, err)
		return f
	case a.Missing:
		return nil
	}
	f.foreign, f.encrypted, f.ready = a.Foreign, a.Encrypted, a.Ready
	if a.Problem != "" {
		f.err = errors.New(a.Problem)
	}
	for _, blob := range [][]byte{a.Public, a.Cert} {
		if pub, err := ssh.ParsePublicKey(blob); err == nil {
			f.public(pub)
		}
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
	say, one := json.NewEncoder(out), sync.Mutex{}
	for questions := json.NewDecoder(in); ; {
		var q keyQuestion
		if err := questions.Decode(&q); err != nil {
			return nil
		}
		asked.Go(func() {
			a := keys.answer(ctx, &q)
			one.Lock()
			defer one.Unlock()
			_ = say.Encode(a) // its input ends, too
		})
	}
}

// answer answers a question.
func (k *keyFiles) answer(ctx context.Context, q *keyQuestion) keyAnswer {
	a := keyAnswer{ID: q.ID}
	f := k.open(ctx, q.Path)
	switch {
	case f == nil:
		a.Missing = true
		return a
	case q.Open:
		f.once.Do(func() { f.unlock(ctx) })
		a.fail(f.lockErr)
	case q.Sign != nil:
		s, err := f.signature(ctx, q.Sign, q.Algorithm)
		if a.fail(err); err == nil {
			a.Signature = ssh.Marshal(s)
		}
	}
	a.Ready, a.Encrypted, a.Foreign = f.ready, f.encrypted, f.foreign
	if f.pub != nil {
		a.Public = f.pub.Marshal()
	}
	if f.cert != nil {
		a.Cert = f.cert.Marshal()
	}
	if f.err != nil {
		a.Problem = f.err.Error()
	}
	return a
}

func (a *keyAnswer) fail(err error) {
	if err != nil {
		a.Err = err.Error()
	}
}
