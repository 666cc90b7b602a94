package limits

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sshpace/internal/base/sched"
	"sshpace/internal/record"
)

func measure(t *testing.T, o Options) (map[string]record.Measurement, []record.Finding) {
	t.Helper()
	all, findings, err := Measure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]record.Measurement{}
	for _, m := range all {
		byName[m.Name] = m
	}
	return byName, findings
}

func TestOwnProbes(t *testing.T) {
	got, findings := measure(t, Options{Only: []string{"memory*", "pipe*", "loopback*"}, Rounds: sched.Rounds{Count: 2}})
	if len(findings) > 0 {
		t.Errorf("findings: %+v", findings)
	}
	for _, name := range []string{record.MemoryCopy, pipeName, loopbackName} {
		m := got[name]
		if rate, ok := m.BytesPerSecond(); !ok || rate < 1e6 || m.N != 2 || m.Lo > m.Value || m.Hi < m.Value {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	got, findings := measure(t, Options{Only: []string{"disk*"}, DiskDir: dir, DiskBytes: 3 << 20})
	if len(findings) == 0 && (got[record.DiskSmall].Value < 1e5 || got[record.DiskLarge].Value < 1e5) {
		t.Errorf("disk: %+v", got)
	}
	for _, f := range findings {
		if !strings.Contains(f.Why, "in memory") {
			t.Errorf("finding: %+v", f)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%s was left", left[0].Name())
	}
}

func TestOpenSSL(t *testing.T) {
	path, version := FindOpenSSL(t.Context(), "")
	if path == "" || !strings.HasPrefix(version, "OpenSSL ") {
		t.Fatalf("openssl is %q %q; it must be installed for this test", path, version)
	}
	got, findings := measure(t, Options{OpenSSL: path, Only: []string{"AES-128-GCM", "X25519", "UMAC"}, Rounds: sched.Rounds{Count: 1}})
	if m := got["AES-128-GCM 32768"]; m.Unit != record.KBPerSecond || m.Value < 1000 {
		t.Errorf("AES-128-GCM: %+v of %v", m, got)
	}
	if m := got["ecdh X25519"]; m.Unit != record.PerSecond || m.Value < 10 {
		t.Errorf("X25519: %+v of %v", m, got)
	}
	if len(findings) != 1 || findings[0].What != "UMAC is not measured" {
		t.Errorf("findings: %+v", findings)
	}
}

// What this openssl does not know is said, and is no error.
func TestUnknownPrimitive(t *testing.T) {
	path, err := exec.LookPath("openssl")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-evp", "rot13"}, {"ML-KEM-0"}} {
		if m, err := runSpeed(t.Context(), path, args, true); !errors.Is(err, errUnknown) {
			t.Errorf("%v was measured: %v, %v", args, m, err)
		}
	}
	if got, want := absent("ML-KEM-768").Error(), "this OpenSSL has no ML-KEM-768 (3.5 and later has)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := runSpeed(t.Context(), "", nil, true); err == nil {
		t.Error("no openssl, and no error")
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all, findings, err := Measure(ctx, Options{})
	if len(all)+len(findings) != 0 || err != nil {
		t.Errorf("after an interrupt: %v %v %v", all, findings, err)
	}
	if _, _, err := Measure(ctx, Options{Only: []string{"nothing"}}); err == nil {
		t.Error("no probe matches, and no error")
	}
}
