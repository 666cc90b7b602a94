//go:build linux

package programs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/flow"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
)

// pair is a client and a server, and the suite that they agree on.
type pair struct {
	Client   Client
	Server   Server
	Suite    alg.Suite
	endpoint endpoint
}

// pair returns a client with a server as a method, whose Why is the reason if they cannot be
// paired. want is the suite to use, "" in it means the probably fastest name.
func (b *Setup) pair(ctx context.Context, c Client, r endpoint, want alg.Suite, aes bool, files *transfer.Files) *transfer.Subject {
	p := &pair{Client: c, Server: r.server, Suite: want, endpoint: r}
	err := p.agree(ctx, b, want, aes)
	method := b.subject(p, files)
	if err != nil {
		method.Why = err.Error()
	}
	return method
}

// agree finds the suite of the pair, or the reason why there is none.
func (p *pair) agree(ctx context.Context, b *Setup, want alg.Suite, aes bool) error {
	if p.Client.Copies && !p.Server.SFTP {
		return errors.New("the client copies files by SFTP, which the server does not have")
	}
	common := p.Client.Offer.Intersect(p.Server.Offer)
	for _, kind := range []alg.Kind{alg.Kex, alg.HostKey, alg.Cipher} {
		// A client may accept a cipher as a setting that it does not offer by default.
		if len(common.List(kind)) == 0 && (kind != alg.Cipher || want.Cipher == "") {
			return nothingCommon(kind, p.Server.Offer)
		}
	}
	asked := best(common, aes)
	if want.Cipher != "" {
		asked = alg.NewSuite(want.Cipher, cmp.Or(want.MAC, preferred(alg.MAC, common.MACs, swiftMACs)), asked.Kex)
	}
	got, err := b.negotiated(ctx, p.Client, p.Server, asked)
	if err != nil {
		return err
	}
	if want.Cipher != "" && got.Cipher != want.Cipher {
		return fmt.Errorf("they cannot be made to use %s", want.Cipher)
	}
	p.Suite = got
	return nil
}

// runner returns the runner of clients against a server; nil is none of ours.
func (b *Setup) runner(s *Server) transfer.Runner {
	r := transfer.Runner{Spawner: b.Spawner, Limit: runLimit}
	if s != nil {
		r.Server = s.Server
	}
	return r
}

// runLimit is the longest time of a run: 256 MiB with 3des on an old machine.
const runLimit = 2 * time.Minute

// subject returns the pair as a subject that takes turns.
func (b *Setup) subject(p *pair, files *transfer.Files) *transfer.Subject {
	move, mode := b.stream, record.ModePipe
	if p.Client.Copies {
		move, mode = b.copy, record.ModeSFTP
	}
	return &transfer.Subject{
		Method: record.Method{Mode: mode, Direction: record.Upload, Client: p.Client.Name, Server: p.Server.Name, Suite: p.Suite, Path: transfer.PathOf(p.endpoint.path)},
		Run:    func(ctx context.Context, size int64) (transfer.Reading, error) { return move(ctx, p, files, size) },
		Login:  func(ctx context.Context) (transfer.Reading, error) { return b.login(ctx, p, files) },
		Check:  func(ctx context.Context, size int64) error { return b.check(ctx, p, files, size) },
	}
}

// run lets the client of a pair carry out an order, with a file as its standard input; "" is none.
func (b *Setup) run(ctx context.Context, p *pair, o Order, stdin string) (reading transfer.Reading, err error) {
	o.Host, o.Port = p.endpoint.host, p.endpoint.port
	o.Want = p.Suite
	if p.Client.Chooses == "" {
		o.Want = alg.Suite{}
	}
	client, err := p.Client.order(ctx, o)
	if err != nil {
		return reading, err
	}
	if stdin != "" {
		if client.Stdin, err = os.Open(stdin); err != nil {
			return reading, err
		}
		defer client.Stdin.Close()
	}
	r := b.runner(&p.Server)
	return r.Run(ctx, client)
}

// login runs nothing at the server, or copies a file of one byte.
func (b *Setup) login(ctx context.Context, p *pair, files *transfer.Files) (transfer.Reading, error) {
	if p.Client.Copies {
		return b.copy(ctx, p, files, 1)
	}
	return b.run(ctx, p, Order{Remote: "true"}, "")
}

// check sends a file and compares it with what arrived.
func (b *Setup) check(ctx context.Context, p *pair, files *transfer.Files, size int64) error {
	from, err := files.Of(size)
	if err != nil {
		return err
	}
	to := b.Dir.File("arrived")
	defer os.Remove(to)
	if _, err := b.run(ctx, p, Order{From: from, To: to, Remote: "cat >" + to}, from); err != nil {
		return err
	}
	return transfer.Same(from, to)
}

// stream sends a file through a command at the server, which counts its bytes.
func (b *Setup) stream(ctx context.Context, p *pair, files *transfer.Files, size int64) (transfer.Reading, error) {
	from, err := files.Of(size)
	if err != nil {
		return transfer.Reading{}, err
	}
	b.serial++
	sink, err := flow.New(b.Helper("flow"), b.Dir.File("sink."+strconv.Itoa(b.serial)), "sink")
	if err != nil {
		return transfer.Reading{}, err
	}
	defer sink.Close()
	reading, err := b.run(ctx, p, Order{Remote: sink.Command()}, from)
	if err == nil {
		err = transfer.Arrived(p.Client.Name, sink.Bytes(), size)
	}
	reading.Server = max(0, reading.Server-sink.Cost())
	return reading, err
}

// copy sends a file by SFTP.
func (b *Setup) copy(ctx context.Context, p *pair, files *transfer.Files, size int64) (transfer.Reading, error) {
	from, err := files.Of(size)
	if err != nil {
		return transfer.Reading{}, err
	}
	to := b.Dir.File("arrived")
	defer os.Remove(to)
	reading, err := b.run(ctx, p, Order{From: from, To: to}, "")
	if err != nil {
		return reading, err
	}
	if info, statErr := os.Stat(to); statErr != nil || info.Size() != size {
		err = &transfer.Failure{Program: p.Client.Name, Detail: fmt.Sprintf("not all of %d bytes arrived", size)}
	}
	return reading, err
}
