//go:build linux

package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/tcp"
)

// farProgram is the other end of a forwarded port on a host, in Perl, which hardly
// a host lacks: it listens and names its port, or reads from its standard input where
// to connect to; then it counts what comes, or gives a file. It ends with its
// standard input.
const farProgram = `use IO::Socket::INET; $|=1; my($how,$what,$file)=@ARGV; my $c; ` +
	`if($how eq "listen"){my $l=IO::Socket::INET->new(Listen=>1,LocalAddr=>"127.0.0.1",LocalPort=>0) or die "cannot listen"; print "port ",$l->sockport,"\n"; ` +
	`my $r=""; vec($r,0,1)=1; vec($r,fileno($l),1)=1; select($r,undef,undef,undef); exit if vec($r,0,1); $c=$l->accept} ` +
	`else{print "port 0\n"; my $p=<STDIN>; exit unless $p; $c=IO::Socket::INET->new(PeerAddr=>"127.0.0.1",PeerPort=>int $p)} die "cannot connect" unless $c; ` +
	`my $n=0; my $b; if($what eq "take"){while(my $k=sysread($c,$b,1<<20)){$n+=$k}} ` +
	`else{open(my $f,"<",$file) or die "cannot read"; while(sysread($f,$b,1<<20)){my $o=0; while($o<length $b){my $k=syswrite($c,$b,length($b)-$o,$o); die "cannot write" unless $k; $o+=$k}} ` +
	`shutdown($c,1); sysread($c,$b,1)} print "took $n\n"`

// far is that program, running.
type far struct {
	job   *job
	in    *os.File
	out   *os.File
	lines *bufio.Reader
	port  string
}

// startFar starts it at the host; how is "listen" or "connect".
func (b *Bed) startFar(ctx context.Context, o Options, how string, size int64) (f *far, err error) {
	words := []string{"take"}
	if o.Direction == record.Download {
		from, err := b.Here.Of(size)
		if err != nil {
			return nil, err
		}
		path, err := b.There.Payload(ctx, from, size)
		if err != nil {
			return nil, err
		}
		words = []string{"give", path}
	}
	p := b.command(b.To, alg.Suite{}, "exec perl -e "+shell.Word(farProgram)+" "+how+" "+shell.Line(words...))
	ends, err := proc.OpenPipes(os.Pipe)
	if err != nil {
		return nil, err
	}
	p.Stdin, p.Stdout = ends.Stdin, ends.Stdout
	f = &far{in: ends.In, out: ends.Out, lines: bufio.NewReader(ends.Out)}
	f.job, err = b.start(ctx, p)
	ends.HandOver()
	if err != nil {
		return nil, errors.Join(err, f.in.Close(), f.out.Close())
	}
	if f.port, err = f.told("port "); err != nil {
		why := f.job.wait(ctx)
		return nil, &Failure{"forwarded port", fmt.Sprintf("it needs perl at the host: %v", errors.Join(why, f.close(ctx)))}
	}
	return f, nil
}

// told is what stands behind a word that the program prints.
func (f *far) told(word string) (string, error) {
	for {
		line, err := f.lines.ReadSlice('\n')
		if rest, found := strings.CutPrefix(string(line), word); found && err == nil {
			return strings.TrimSpace(rest), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// took is how many bytes came out at the host.
func (f *far) took() (int64, error) {
	text, err := f.told("took ")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// close ends the program.
func (f *far) close(ctx context.Context) error {
	f.in.Close()
	f.out.Close()
	if f.job.cmd.ProcessState == nil {
		ended := make(chan error, 1)
		go func() { ended <- f.job.wait(ctx) }()
		f.job.terminate(ended)
	}
	return nil
}

// hostTunnel moves bytes through a port that is forwarded to or from a host.
func (b *Bed) hostTunnel(ctx context.Context, o Options, flag string, size int64) (reading Reading, err error) {
	how := map[string]string{"-L": "listen", "-R": "connect"}[flag]
	f, err := b.startFar(ctx, o, how, size)
	if err != nil {
		return reading, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	near, err := tcp.ListenOwn()
	if err != nil {
		return reading, err
	}
	defer near.Close()
	port, spec := "", "127.0.0.1:0:"+near.Addr().String()
	if flag == "-L" {
		if port, err = b.Port(); err != nil {
			return reading, err
		}
		near.Close()
		spec = "127.0.0.1:" + port + ":127.0.0.1:" + f.port
	}
	return b.Around(ctx, b.forwarding(o, flag, spec), func(ctx context.Context, said func() string) (err error) {
		ctx, over := unlessRefused(ctx, said)
		defer over(&err)
		stop := context.AfterFunc(ctx, func() { near.Close(); f.out.Close() })
		defer stop()
		conn, err := b.nearEnd(ctx, flag, port, near, f, said)
		if err != nil {
			return &Failure{"ssh " + flag, "no data came through the forwarded port: " + err.Error()}
		}
		defer conn.Close()
		return b.through(ctx, o, conn, f, size)
	})
}

// nearEnd is the connection at this end of a forwarded port.
func (b *Bed) nearEnd(ctx context.Context, flag, port string, near *tcp.OwnListener, f *far, said func() string) (*net.TCPConn, error) {
	if flag == "-L" {
		return b.dialed(ctx, func() string { return port })
	}
	if err := await(ctx, b.Connect, func() bool { port = allocated(said()); return port != "" }); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(f.in, port); err != nil {
		return nil, err
	}
	conn, err := near.Accept()
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// through moves the bytes between the connection and the far program, and compares
// how many there were.
func (b *Bed) through(ctx context.Context, o Options, conn *net.TCPConn, f *far, size int64) error {
	var got int64
	var err error
	if o.Direction == record.Upload {
		from, openErr := b.Here.Of(size)
		if openErr != nil {
			return openErr
		}
		if err = give(ctx, conn, from); err == nil {
			got, err = f.took()
		}
	} else {
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		defer stop()
		got, err = discard(conn)
	}
	if err != nil {
		return &Failure{"forwarded port", err.Error()}
	}
	return Arrived("forwarded port", got, size)
}
