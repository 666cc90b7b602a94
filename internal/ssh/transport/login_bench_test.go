package transport_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/ssh/transport"
	"sshpace/internal/sys/tcp"
)

var exchanges = []string{ssh.KeyExchangeCurve25519, ssh.KeyExchangeMLKEM768X25519}

// BenchmarkLogin is the client's half of a login: key exchange, verification of the host key, and a
// signature. The server is Go's, in a process of its own, because no sshd is as cheap, and only the
// newest have ML-KEM. One after the other, each login pays for the runtime that falls asleep and
// wakes up again while it waits; beside others, as in run and with its one processor, they share
// that.
func BenchmarkLogin(b *testing.B) {
	address := serverElsewhere(b)
	key := algorithmSigner(b, sshtest.NewKey(b), ssh.KeyAlgoED25519)
	for _, kex := range exchanges {
		b.Run(kex, func(b *testing.B) {
			before, logins := cpu(b), 0
			for b.Loop() {
				if err := login(address, kex, key); err != nil {
					b.Fatal(err)
				}
				logins++
			}
			b.ReportMetric(float64(cpu(b)-before)/float64(logins)/1e6, "cpu-ms/login")
		})
		b.Run(kex+"/beside", func(b *testing.B) {
			const beside = 16
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			b.SetParallelism(beside)
			before := cpu(b)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := login(address, kex, key); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N)/1e6, "cpu-ms/login")
		})
	}
}

// login is one of BenchmarkLogin's, over a connection as package dial makes it.
func login(address, kex string, key ssh.MultiAlgorithmSigner) error {
	raw, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer raw.Close()
	c, err := transport.Handshake(tcp.Quick(raw), &transport.Config{
		Version: "SSH-2.0-test", KeyExchanges: []string{kex}, HostKeys: []string{ssh.KeyAlgoED25519},
		HostKey: func(ssh.PublicKey) error { return nil },
	})
	if err != nil {
		return err
	}
	return c.Authenticate(transport.Login{User: "tester", Direct: true, Keys: []ssh.MultiAlgorithmSigner{key}})
}

// serving makes this program a server, see TestServe.
const serving = "SSHPACE_TEST_SERVE"

// TestServe is the server of serverElsewhere.
func TestServe(t *testing.T) {
	if os.Getenv(serving) == "" {
		return
	}
	s := (&sshtest.Server{KeyExchanges: exchanges}).Start(t)
	fmt.Printf("127.0.0.1:%d\n", s.Port())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
}

// serverElsewhere starts Go's server in another process.
func serverElsewhere(t testing.TB) (address string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServe$")
	cmd.Env = append(os.Environ(), serving+"=1")
	stop, out := waittest.Piped(t, cmd)
	t.Cleanup(func() {
		stop.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
