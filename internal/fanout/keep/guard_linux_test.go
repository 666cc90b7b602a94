package keep

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSurroundings: sleep and clocks that are set forward count, clocks that are set back do not;
// after each of them, and with other addresses, servers are asked whether they live.
func TestSurroundings(t *testing.T) {
	const home, away = "192.0.2.1/24\n", "198.51.100.7/24\n"
	for name, c := range map[string]struct {
		before, now surroundings
		slept       time.Duration
		dead        bool
	}{
		"nothing":       {surroundings{5 * time.Hour, home}, surroundings{5*time.Hour + 20*time.Millisecond, home}, 0, false},
		"sleep":         {surroundings{0, home}, surroundings{time.Hour, home}, time.Hour, true},
		"set back":      {surroundings{time.Hour, home}, surroundings{-time.Hour, home}, 0, true},
		"another place": {surroundings{0, home}, surroundings{0, away}, 0, true},
		"unknown":       {surroundings{0, home}, surroundings{0, ""}, 0, false},
	} {
		if slept, dead := c.now.since(c.before); slept != c.slept || dead != c.dead {
			t.Errorf("%s: slept %v, dead %v", name, slept, dead)
		}
	}
}

// keeping is a Keeper of the host "h", until the test ends.
type keeping struct {
	*Keeper
	config, socket string
}

func keep(t *testing.T, s *sshtest.Sshd, address, lines string) keeping {
	t.Helper()
	dir := sshtest.OpenDir(t, 0o700)
	k := keeping{config: filepath.Join(t.TempDir(), "config")}
	known := sshtest.KnownHostsFile(t, "* "+sshtest.AuthorizedLine(s.HostKey))
	text := fmt.Sprintf("Host h\nHostName %s\nPort %d\nUser %s\nIdentityFile %s\nIdentityAgent none\nUserKnownHostsFile %s\n%s", address, s.Port, s.User, s.Key, known, lines)
	if err := os.WriteFile(k.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := reach.New(t.Context(), reach.Params{Params: route.Params{Getenv: os.Getenv, Flags: conf.Flags{Config: k.config}}, Engine: reach.Native})
	if err != nil {
		t.Fatal(err)
	}
	k.Keeper = New(t.Context(), Params{Reach: r, Directory: dir})
	sink := &sshtest.Told{}
	if _, err := k.LogIn(t.Context(), []host.Host{{Name: "h"}}, sink); err != nil {
		t.Fatal(err)
	}
	if res := sink.Results()[0]; res.Class != fleet.NoFailure {
		t.Fatal(res.Err)
	}
	over := make(chan struct{})
	go func() { k.Hold(); close(over) }()
	t.Cleanup(func() { k.end(); <-over; r.Close() })
	sockets, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("%q, %v", sockets, err)
	}
	k.socket = sockets[0]
	return k
}

// TestNetworkChange: a connection whose address this computer has no more has no socket, before
// anybody asks for it. If the address soon comes back, so does the socket, for the same connection.
func TestNetworkChange(t *testing.T) {
	const there = "SSHPACE_TEST_NETWORK"
	if os.Getenv(there) == "" {
		by := []string{"unshare", "--net"}
		if os.Geteuid() != 0 {
			by = append(by, "--map-root-user")
		}
		waittest.Again(t, []string{there + "=1"}, by...)
		return
	}
	address := func(what string) {
		t.Helper()
		if out, err := exec.Command("ip", strings.Fields(what)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %s", what, out)
		}
	}
	address("link set lo up")
	address("address add 192.0.2.1/32 dev lo")
	address("address add 192.0.2.2/32 dev lo")
	k := keep(t, sshtest.StartSshd(t), "192.0.2.1", "BindAddress 192.0.2.2\n")
	listens := sshtest.Listens("unix", k.socket)
	waittest.Until(t, "the socket", listens)
	address("address delete 192.0.2.2/32 dev lo")
	waittest.Until(t, "the end of the socket", func() bool { return !listens() })
	if r := k.report(&request{}); r.Hosts[0].State != Silent || r.Hosts[0].loss() != "does not answer" {
		t.Errorf("reported as %+v", r.Hosts[0])
	}
	address("address add 192.0.2.2/32 dev lo")
	waittest.Until(t, "the socket", listens)
	if p := k.places["h"]; !p.lost.IsZero() {
		t.Errorf("lost at %v", p.lost)
	}
}

// TestComesBack: a connection whose server ends has no socket any more, so that ssh connects by
// itself, and comes back.
func TestComesBack(t *testing.T) {
	s := sshtest.StartSshd(t)
	k := keep(t, s, "127.0.0.1", "")
	ssh := func() {
		t.Helper()
		out, err := exec.Command("ssh", "-F", k.config, "-S", k.socket, "h", "echo here").CombinedOutput()
		if string(out) != "here\n" || err != nil {
			t.Errorf("%q, %v", out, err)
		}
	}
	ssh()
	s.Signal(t, syscall.SIGKILL)
	waittest.Until(t, "the end of the socket", func() bool { _, err := os.Lstat(k.socket); return errors.Is(err, os.ErrNotExist) })
	ssh()
	waittest.Until(t, "the socket", sshtest.Listens("unix", k.socket))
	ssh()
}
