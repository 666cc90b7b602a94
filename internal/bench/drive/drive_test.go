package drive

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/bed"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/helper"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/record"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/safedir"
)

// TestMain lets the test's own program be the helper processes.
func TestMain(m *testing.M) {
	benchtest.Serve()
	os.Exit(m.Run())
}

var aes = alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-sha2-256", Kex: "curve25519-sha256"}

// newRig is a directory, a spawner and the helper program.
func newRig(t testing.TB) Rig {
	t.Helper()
	dir, spawner := benchtest.Workdir(t, safedir.WorkdirParams{})
	return Rig{Site: loopback.Site{Dir: dir, Spawner: spawner, Helper: helper.Line}, Data: "zero", Bed: bed.Bed{Connect: 2 * time.Minute}}
}

// newPrivate drives the installed ssh and sshd.
func newPrivate(t testing.TB) *Private {
	t.Helper()
	rig := newRig(t)
	keys, err := loopback.MakeKeys(rig.Dir)
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	client, err := openssh.FindClient(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	sshd, err := openssh.FindServer(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := openssh.PreparePrivilegeSeparation(); err != nil {
		t.Fatal(err)
	}
	rig.Keys = keys
	argv, err := rig.Sshd(context.Background(), sshd, openssh.ServerConfig{
		User:  me.Username,
		Offer: alg.Offer{Ciphers: []string{"aes128-ctr", "aes128-gcm@openssh.com"}, MACs: []string{"hmac-sha2-256", "umac-64@openssh.com"}, Kex: []string{"curve25519-sha256", "curve25519-sha256@libssh.org"}},
	}, "sshd_config")
	if err != nil {
		t.Fatal(err)
	}
	if rig.Server, err = rig.Start(argv); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rig.Server.Close() })
	host, port := rig.Server.Address()
	destination := client.Private(host, port, me.Username, keys.Identity, keys.KnownHosts)
	return &Private{Rig: rig, Client: func(want alg.Suite, log, remote string) []string {
		return client.Command(destination, want, log, rig.Connect, remote)
	}}
}

// newRemote drives the installed ssh to an sshd that is nobody's private one.
func newRemote(t *testing.T, extra ...string) *Remote {
	t.Helper()
	d := sshtest.StartSshd(t, extra...)
	client, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	known := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(known, []byte("nas "+string(ssh.MarshalAuthorizedKey(d.HostKey))), 0o600); err != nil {
		t.Fatal(err)
	}
	return remoteTo(t, client, destination(d.Port, known, d.Key))
}

// remoteTo drives an ssh to a host.
func remoteTo(t *testing.T, client openssh.Program, to openssh.Destination) *Remote {
	t.Helper()
	rig := newRig(t)
	rig.SSH, rig.Destination = client, to
	return &Remote{Rig: rig}
}

func destination(port int, known, key string) openssh.Destination {
	return openssh.Destination{Host: "127.0.0.1", Label: "nas", Flags: conf.Flags{
		Config: "/dev/null", Port: uint16(port), Identities: []string{key},
		Settings: []string{"HostKeyAlias=nas", "UserKnownHostsFile=" + known, "GlobalKnownHostsFile=none", "IdentitiesOnly=yes", "IdentityAgent=none"},
	}}
}

// opens tells what becomes of one connection that is to stay open.
func opens(ctx context.Context, d interface {
	Open(context.Context, []record.Trial, func(record.Trial, record.Sample) error) error
}) (got record.Sample, err error) {
	err = d.Open(ctx, sittings(record.Upload)[:1], func(_ record.Trial, s record.Sample) error {
		got = s
		return nil
	})
	return got, err
}

func mustOpen(t *testing.T, d interface {
	Open(context.Context, []record.Trial, func(record.Trial, record.Sample) error) error
}) record.Sample {
	t.Helper()
	s, err := opens(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRun(t *testing.T, d interface {
	Run(context.Context, record.Trial) (record.Sample, error)
}, trial record.Trial) record.Sample {
	t.Helper()
	s, err := d.Run(t.Context(), trial)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkOK looks at what every good sample has.
func checkOK(t *testing.T, what string, s record.Sample) {
	t.Helper()
	got := s.Got
	got.HostKey = ""
	if s.Outcome != record.OK || s.Detail != "" || got != aes || s.Start.IsZero() || s.ElapsedNS <= 0 || s.Rekeys != 0 {
		t.Fatalf("%s: %+v", what, s)
	}
}

// empty makes sure that trials leave nothing behind but what belongs to the run.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "host_key", "user_key", "authorized_keys", "known_hosts", "sshd_config", "server.log":
		default:
			t.Errorf("%s is left in the directory", entry.Name())
		}
	}
}
