//go:build linux

package transfer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/tcp"
)

// far is the end of a forwarded port at the server.
type far interface {
	port() string                                   // where it listens
	connect(ctx context.Context, port string) error // to a port there instead
	give(ctx context.Context, from string) error    // sends the file
	take(ctx context.Context) (int64, error)        // counts the bytes that come
	close()
}

// farEnd makes the far end of a transfer, which listens or connects.
func (b *Ground) farEnd(ctx context.Context, o Options, listens bool, from string, size int64) (far, error) {
	if b.Server == nil {
		return b.startFar(ctx, o, listens, from, size)
	}
	f := &ownFar{ground: b}
	var err error
	if listens {
		f.listener, err = tcp.ListenOwn()
	}
	return f, err
}

// ownFar is that end where the server is this machine.
type ownFar struct {
	ground   *Ground
	listener *tcp.OwnListener // nil: it connects
	conn     *net.TCPConn
}

func (f *ownFar) port() string { return strconv.Itoa(f.listener.Addr().(*net.TCPAddr).Port) }

func (f *ownFar) connect(ctx context.Context, port string) (err error) {
	f.conn, err = f.ground.dialed(ctx, port)
	return err
}

// accept waits for the connection, which ends with ctx.
func (f *ownFar) accept(ctx context.Context) (err error) {
	if f.listener != nil {
		defer context.AfterFunc(ctx, f.close)()
		f.conn, err = accepted(f.listener)
	}
	if err == nil {
		context.AfterFunc(ctx, func() { f.conn.Close() })
	}
	return err
}

func (f *ownFar) give(ctx context.Context, from string) error {
	if err := f.accept(ctx); err != nil {
		return err
	}
	return give(f.conn, from)
}

func (f *ownFar) take(ctx context.Context) (int64, error) {
	if err := f.accept(ctx); err != nil {
		return 0, err
	}
	return discard(f.conn)
}

func (f *ownFar) close() {
	if f.listener != nil {
		f.listener.Close()
	}
}

// farProgram is the other end of a forwarded port on a host, in Perl, which hardly any host lacks:
// it listens and prints its port, or reads the port to connect to from its standard input; then it
// counts the bytes that come, or sends a file. It ends with its standard input.
const farProgram = `use IO::Socket::INET; $|=1; my($how,$what,$file)=@ARGV; my $c; ` +
	`if($how eq "listen"){my $l=IO::Socket::INET->new(Listen=>1,LocalAddr=>"127.0.0.1",LocalPort=>0) or die "cannot listen"; print "sshpace-port ",$l->sockport,"\n"; ` +
	`my $r=""; vec($r,0,1)=1; vec($r,fileno($l),1)=1; select($r,undef,undef,undef); exit if vec($r,0,1); $c=$l->accept} ` +
	`else{print "sshpace-port 0\n"; my $p=<STDIN>; exit unless $p; $c=IO::Socket::INET->new(PeerAddr=>"127.0.0.1",PeerPort=>int $p)} die "cannot connect" unless $c; ` +
	`my $n=0; my $b; if($what eq "take"){while(my $k=sysread($c,$b,1<<20)){$n+=$k}} ` +
	`else{open(my $f,"<",$file) or die "cannot read"; while(sysread($f,$b,1<<20)){my $o=0; while($o<length $b){my $k=syswrite($c,$b,length($b)-$o,$o); die "cannot write" unless $k; $o+=$k}} ` +
	`shutdown($c,1); sysread($c,$b,1)} print "sshpace-took $n\n"`

// hostFar is that program, running.
type hostFar struct {
	job     *job
	in, out *os.File
	at      string
}

// startFar starts the far end at the host.
func (b *Ground) startFar(ctx context.Context, o Options, listens bool, from string, size int64) (f *hostFar, err error) {
	words := []string{"take"}
	if o.Direction == record.Download {
		path, err := b.There.Payload(ctx, from, size)
		if err != nil {
			return nil, err
		}
		words = []string{"give", path}
	}
	how := map[bool]string{true: "listen", false: "connect"}[listens]
	p := b.command(b.Destination, alg.Suite{}, "exec perl -e "+shell.Word(farProgram)+" "+how+" "+shell.Line(words...))
	ends, err := proc.OpenPipes(os.Pipe)
	if err != nil {
		return nil, err
	}
	p.Stdin, p.Stdout = ends.Stdin, ends.Stdout
	f = &hostFar{in: ends.In, out: ends.Out}
	f.job, err = b.start(ctx, p)
	ends.HandOver()
	if err != nil {
		return nil, errors.Join(err, f.in.Close(), f.out.Close())
	}
	if f.at, err = openssh.AwaitMark(f.out, "sshpace-port "); err != nil {
		why := f.job.wait(ctx)
		f.close()
		return nil, &Failure{"forwarded port", fmt.Sprintf("it needs perl at the host: %v", why)}
	}
	return f, nil
}

func (f *hostFar) port() string { return f.at }

func (f *hostFar) connect(_ context.Context, port string) error {
	_, err := fmt.Fprintln(f.in, port)
	return err
}

// give does nothing: the program sends its file as soon as there is a connection.
func (f *hostFar) give(context.Context, string) error { return nil }

func (f *hostFar) take(ctx context.Context) (int64, error) {
	defer context.AfterFunc(ctx, func() { f.out.Close() })()
	text, err := openssh.AwaitMark(f.out, "sshpace-took ")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

func (f *hostFar) close() {
	f.in.Close()
	f.out.Close()
	f.job.terminate()
}
