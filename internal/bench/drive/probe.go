//go:build linux

package drive

import (
	blockcipher "crypto/aes"
	"crypto/cipher"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/bench/flow"
	"sshpace/internal/record"
)

// The work of a probe: what ssh does most of the time, in the sizes in which it
// does it. It feels what ssh feels when somebody else uses the execution units
// of the same core; a chain of dependent instructions would not.
const (
	probePiece  = 32 << 10
	probePieces = 24
)

// probe does a fixed piece of work on one CPU.
type probe struct {
	requests chan struct{}
	results  chan record.Slice
	err      error
}

// newProbe starts a thread on the nth of the CPUs that this process may use.
func newProbe(nth int) *probe {
	p := &probe{requests: make(chan struct{}), results: make(chan record.Slice)}
	go p.serve(nth)
	return p
}

// serve works when asked to, on a thread of its own that ends with it.
func (p *probe) serve(nth int) {
	defer close(p.results)
	runtime.LockOSThread()
	bind(nth)
	block, err := blockcipher.NewCipher(make([]byte, 16))
	if err != nil {
		p.err = err
		return
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		p.err = err
		return
	}
	read, write, err := flow.Pipe()
	if err != nil {
		p.err = err
		return
	}
	defer read.Close()
	defer write.Close()
	work := newWork(seal, flow.Descriptor(read), flow.Descriptor(write))
	work.run() // warm up
	for range p.requests {
		start, used := time.Now(), threadCPU()
		if p.err = work.run(); p.err != nil {
			return
		}
		cpu := threadCPU() - used
		p.results <- record.Slice{WallNS: time.Since(start), Bytes: probePieces * probePiece, ClientCPUNS: &cpu}
	}
}

// work is what a probe does again and again.
type work struct {
	seal                 cipher.AEAD
	in, out              int
	piece                int // bytes of one write: what the pipe holds, if that is less
	plain, sealed, nonce []byte
}

// newWork is work on a pipe. The pipe of a user who has many may hold no more
// than two pages (pipe(7), pipe-user-pages-soft): a larger write would never end.
func newWork(seal cipher.AEAD, in, out int) *work {
	w := &work{seal: seal, in: in, out: out, piece: probePiece, plain: make([]byte, probePiece), nonce: make([]byte, seal.NonceSize())}
	w.sealed = make([]byte, 0, probePiece+seal.Overhead())
	if size, err := unix.FcntlInt(uintptr(out), unix.F_GETPIPE_SZ, 0); err == nil {
		w.piece = min(probePiece, size)
	}
	return w
}

// run encrypts pieces and sends them through a pipe.
func (w *work) run() error {
	for range probePieces {
		w.sealed = w.seal.Seal(w.sealed[:0], w.nonce, w.plain, nil)
		for from := 0; from < probePiece; from += w.piece {
			if err := w.send(from); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *work) send(from int) error {
	to := min(from+w.piece, probePiece)
	if _, err := unix.Write(w.out, w.sealed[from:to]); err != nil {
		return err
	}
	_, err := unix.Read(w.in, w.plain[from:to])
	return err
}

// bind keeps the calling thread on the nth CPU that it may use.
func bind(nth int) {
	var all, one unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() == 0 {
		return
	}
	nth %= all.Count()
	for cpu := range 64 * len(all) {
		if all.IsSet(cpu) {
			if nth == 0 {
				one.Set(cpu)
				break
			}
			nth--
		}
	}
	_ = unix.SchedSetaffinity(0, &one)
}

func threadCPU() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// probe lets the probe of a trial work once. Each trial has a CPU of its own, as
// far as there are so many.
func (s *sitting) probe(id int) (record.Slice, error) {
	p := s.probes[id]
	if p == nil {
		p = newProbe(len(s.probes))
		s.probes[id] = p
	}
	p.requests <- struct{}{}
	out, ok := <-p.results
	if !ok {
		return out, p.err
	}
	out.Trial = id
	return out, nil
}

// endProbes ends all probes.
func (s *sitting) endProbes() {
	for id, p := range s.probes {
		close(p.requests)
		delete(s.probes, id)
	}
}
