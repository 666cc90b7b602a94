package transfer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/waittest"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/helper"
	"sshpace/internal/bench/rounds"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/sys/relay"
	"sshpace/internal/sys/safedir"
)

// TestMain lets the test's own program be the helper programs.
func TestMain(m *testing.M) {
	benchtest.Serve()
	os.Exit(m.Run())
}

// open makes a private pair of ssh and sshd, with a path between them.
func open(t *testing.T, path relay.Path) *transfer.Ground { t.Helper(); return openIn(t, path, "") }

// openIn is open with the files in a directory; "" is one in memory.
func openIn(t *testing.T, path relay.Path, directory string) *transfer.Ground {
	t.Helper()
	dir, _ := benchtest.Workdir(t, safedir.WorkdirParams{InMemory: true, In: directory})
	tb, err := testbed.Open(t.Context(), testbed.Params{Data: "zero", Connect: 2 * time.Minute, Dir: dir, Helper: helper.Line, Everything: true})
	if err != nil {
		t.Fatal(err)
	}
	b, cleanUp, err := transfer.Open(t.Context(), tb, dir.Path, "", true)
	if err != nil {
		t.Fatal(err)
	}
	b.Programs["sshpace"] = "" // this program is a test
	var relays relay.Group
	far, err := b.Over(path, &relays)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { relays.Close(); cleanUp(); tb.Close() })
	return far
}

var all, _ = transfer.Modes(nil)

// packaged are the modes that need nothing but Debian's packages; internal/cli has the others.
var packaged = slices.DeleteFunc(slices.Clone(all), func(m record.Mode) bool {
	return m == record.ModeOwn || m == record.ModeMSCP || m == record.ModeKept
})

var suite = alg.NewSuite("aes128-gcm@openssh.com", "", "curve25519-sha256")

// left are the files that runs have left in the directory.
func left(b *transfer.Ground) []string {
	var names []string
	for _, pattern := range []string{"arrived", "there.*", "sink.*", "m.*", "rsync-ssh.*", "mscp.*"} {
		found, _ := filepath.Glob(filepath.Join(b.Here.Directory, pattern))
		names = append(names, found...)
	}
	return names
}

// A directory may have a name that is too long for a socket.
func TestLongDirectory(t *testing.T) {
	directory := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	b := openIn(t, relay.Path{}, directory)
	for _, c := range b.Subjects([]record.Mode{record.ModeMultiplex}, transfer.Options{Suite: suite, Direction: record.Upload, Streams: 2}) {
		if _, err := c.Run(t.Context(), 1<<20); err != nil {
			t.Error(err)
		}
	}
	if names := left(b); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

// TestEveryModeIsThere: what records may say is measured, and the words mean all of it.
func TestEveryModeIsThere(t *testing.T) {
	if !slices.Equal(all, record.Modes) {
		t.Errorf("measured are %q, records have %q", all, record.Modes)
	}
	if scp, unknown := transfer.Modes([]string{"scp", "pipe"}); unknown != "" || !slices.Equal(scp, []record.Mode{record.ModeSCP, record.ModeSCPLegacy, record.ModePipe}) {
		t.Errorf("scp and pipe are %q, unknown %q", scp, unknown)
	}
	if _, unknown := transfer.Modes([]string{"scp -O"}); unknown == "" {
		t.Error("the name of a mode is a word")
	}
}

// Every mode moves its bytes both ways, what arrives is what was sent, and both sides' CPU time is
// known.
func TestAllModes(t *testing.T) {
	b := open(t, relay.Path{})
	for _, direction := range []record.Direction{record.Upload, record.Download} {
		subjects := b.Subjects(packaged, transfer.Options{Suite: suite, Direction: direction, Streams: 2})
		if len(subjects) != len(packaged) {
			t.Fatalf("%d methods of %d modes", len(subjects), len(packaged))
		}
		out := record.File{}
		turns := transfer.Turns{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 1}}, Size: 32 << 20}
		if err := turns.Measure(t.Context(), t.Context(), subjects, out.Sink()); err != nil {
			t.Fatal(err)
		}
		for _, r := range compare.MethodResults(&out) {
			if r.Why != "" || len(r.Failed) > 0 || r.Start.N == 0 {
				t.Errorf("%s %s: %+v", r.Mode, direction, r)
			}
		}
		for _, run := range out.Readings {
			if run.WallNS <= 0 || run.ClientCPUNS == nil || *run.ClientCPUNS <= 0 || run.ServerCPUNS == nil {
				t.Errorf("%s %s: a %s run without figures: %+v", subjects[run.Subject-1].Mode, direction, run.Kind, run)
			}
		}
	}
	if names := left(b); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

// Many files arrive all, by the programs that copy files.
func TestManyFiles(t *testing.T) {
	b := open(t, relay.Path{})
	for _, direction := range []record.Direction{record.Upload, record.Download} {
		subjects := b.Subjects(packaged, transfer.Options{Suite: suite, Direction: direction, Files: 50, FileBytes: 3000})
		copying := slices.DeleteFunc(subjects, func(c *transfer.Subject) bool { return strings.Contains(c.Why, "copies no files") })
		if len(copying) != 4 {
			t.Errorf("%d methods to copy files", len(copying))
		}
		for _, c := range copying {
			if _, err := c.Run(t.Context(), 50*3000); err != nil {
				t.Errorf("%s %s: %v", c.Mode, direction, err)
			}
		}
	}
}

// mscp, for which scp stands in, knows no HostKeyAlias and takes from a file what is measured.
func TestMSCP(t *testing.T) {
	b := open(t, relay.Path{})
	o := transfer.Options{Suite: suite, Direction: record.Upload, Streams: 3}
	one := func() *transfer.Subject { return b.Subjects([]record.Mode{record.ModeMSCP}, o)[0] }
	if why := one().Why; !strings.Contains(why, "not installed") {
		t.Errorf("without mscp: %q", why)
	}
	stand := filepath.Join(t.TempDir(), "mscp")
	script := "#!/bin/sh\n[ \"$1 $2 $3\" = '-q -n 3' ] && grep -q '^Ciphers aes128-gcm@openssh.com$' \"$5\" && sed -i /^HostKeyAlias/d \"$5\" && shift 3 && exec scp -q \"$@\"\n"
	if err := os.WriteFile(stand, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	b.Programs["mscp"] = stand
	for _, o.Direction = range []record.Direction{record.Upload, record.Download} {
		if err := one().Check(t.Context(), 1<<20); err != nil {
			t.Errorf("%s: %v", o.Direction, err)
		}
	}
	if names := left(b); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

// Compression is asked for and got: zeros take hardly any bytes on the way.
func TestCompression(t *testing.T) {
	b := open(t, relay.Path{Rate: 1e6})
	b.Here.Random = false
	c := b.Subjects([]record.Mode{record.ModePipe}, transfer.Options{Suite: suite, Direction: record.Upload, Compression: true})[0]
	reading, err := c.Run(t.Context(), 32<<20)
	if err != nil || reading.Wall > 20*time.Second {
		t.Errorf("32 MiB of zeros over 1 MB/s: %v, %v", reading.Wall, err)
	}
}

// What goes wrong has a reason, and nothing is left behind.
func TestFaults(t *testing.T) {
	b := open(t, relay.Path{})
	o := transfer.Options{Suite: suite, Direction: record.Upload, Streams: 2}
	one := func(mode record.Mode) *transfer.Subject { return b.Subjects([]record.Mode{mode}, o)[0] }

	b.Programs["rsync"] = ""
	if why := one(record.ModeRsync).Why; !strings.Contains(why, "not installed") {
		t.Errorf("without rsync: %q", why)
	}
	b.Programs["sftp"] = "/bin/false"
	if _, err := one(record.ModeSFTP).Run(t.Context(), 1); err == nil {
		t.Error("an sftp that fails went well")
	}
	bad := o
	bad.Suite.Cipher = "aes999"
	if _, err := b.Subjects([]record.Mode{record.ModePipe}, bad)[0].Run(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "aes999") {
		t.Errorf("a cipher that nobody has: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := one(record.ModeSCP).Run(ctx, 512<<20); err == nil {
		t.Error("512 MiB in 300 ms")
	}
	b.Destination = b.Destination.With("ClearAllForwardings=yes")
	waittest.InTime(t, time.Second, func(limit time.Duration) error {
		b.Connect = limit
		if _, err := one(record.ModeForwardL).Run(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "forwarded port") {
			return fmt.Errorf("without a forwarded port: %w", err)
		}
		return nil
	})
	if names := left(b); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}
