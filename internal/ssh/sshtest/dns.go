package sshtest

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// SSHFP is the record of a key in the DNS.
func SSHFP(t testing.TB, name string, key ssh.PublicKey) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.pub")
	if err := os.WriteFile(file, []byte(AuthorizedLine(key)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := Keygen("-r", name, "-f", file)
	if err != nil {
		t.Fatal(out)
	}
	return out
}

// resolver is the configuration of unbound: DIR, PORT and NAME of the key.
const resolver = `server:
 directory: "DIR"
 chroot: ""
 username: ""
 pidfile: ""
 interface: 127.0.0.1@PORT
 use-syslog: no
 local-zone: "localhost." nodefault
 trust-anchor-file: "DIR/NAME.key"
auth-zone:
 name: "localhost."
 zonefile: "DIR/signed"
 for-downstream: no
 fallback-enabled: no
remote-control:
 control-enable: no
`

// StartResolver starts a name server that validates the zone localhost with these records; of a
// forged zone another key is trusted than the one that has signed it.
func StartResolver(t testing.TB, forged bool, records ...string) netip.AddrPort {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in := func(program string, args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %s", program, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	generate := func() string { return in("ldns-keygen", "-a", "ED25519", "-k", "localhost") }
	signer := generate()
	write("zone", "$TTL 300\nlocalhost. SOA localhost. root.localhost. 1 3600 600 86400 300\nlocalhost. NS localhost.\n"+strings.Join(records, "\n")+"\n")
	in("ldns-signzone", "-f", "signed", "zone", signer)
	if forged {
		signer = generate()
	}
	write("conf", strings.NewReplacer("DIR", dir, "PORT", fmt.Sprint(port), "NAME", signer).Replace(resolver))
	listen(t, exec.Command("unbound", "-d", "-c", filepath.Join(dir, "conf")), &logBuffer{}, port)
	return netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port))
}
