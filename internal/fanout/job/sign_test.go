package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// keygen runs ssh-keygen.
func keygen(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen %q: %v\n%s", args, err, out)
	}
}

// newKey makes a key pair and returns its path and the line of its public half.
func newKey(t *testing.T, name string) (path, public string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	keygen(t, "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path)
	text, err := os.ReadFile(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return path, string(text)
}

// write makes a file.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// noEnvironment has neither an agent nor a home.
func noEnvironment(string) string { return "" }

// signFor signs Specs of pools at a time.
func signFor(t *testing.T, key string, at time.Time, specs ...*Spec) map[string]Signed {
	t.Helper()
	byPool := map[string]*Spec{}
	for _, s := range specs {
		byPool[s.Pool] = s
	}
	m, data, err := NewManifest(byPool, at, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := Sign(t.Context(), key, noEnvironment, manifest, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Signed{}
	for pool := range byPool {
		all[pool] = Signed{Manifest: manifest, Signature: signature, Spec: data[pool]}
	}
	return all
}

func spec(pool string) *Spec {
	return &Spec{Schema: Schema, ID: "20261127T120000.000000000Z-abcdef", Pool: pool, Batches: []string{"a[1-3]"}, Line: "uptime"}
}

// A job is carried out as it was signed, or not at all.
func TestVerify(t *testing.T) {
	alice, alicesKey := newKey(t, "alice")
	mallory, malloryKey := newKey(t, "mallory")
	now := time.Now()
	policy := func(lines ...string) *Policy {
		return &Policy{AllowedSigners: write(t, "allowed_signers", strings.Join(lines, ""))}
	}
	allowed := policy("alice@example.com ", alicesKey)
	both := signFor(t, alice, now, spec("web"), spec("db"))
	sudo := spec("web")
	sudo.Sudo = "root"
	swapped := both["web"]
	swapped.Spec = both["db"].Spec
	swappedSignature := both["web"]
	swappedSignature.Signature = signFor(t, alice, now, spec("web"))["web"].Signature
	limits := func(text string) *Policy {
		p := *allowed
		var err error
		if p.Limits, err = LoadLimits(write(t, "limits.toml", text)); err != nil {
			t.Fatal(err)
		}
		return &p
	}
	for name, test := range map[string]struct {
		policy *Policy
		job    Signed
		pool   string
		ahead  time.Duration // the launcher's clock
		want   string        // part of the error, "" for none
	}{
		"right":                    {allowed, both["web"], "web", 0, ""},
		"of another pool":          {allowed, both["web"], "db", 0, "not what was signed"},
		"for no pool here":         {allowed, both["web"], "mail", 0, "not for pool mail"},
		"forged":                   {allowed, signFor(t, mallory, now, spec("web"))["web"], "web", 0, "nobody whom"},
		"known, but not allowed":   {policy("bob@example.com ", malloryKey), both["web"], "web", 0, "nobody whom"},
		"nobody is allowed":        {policy(), both["web"], "web", 0, "nobody whom"},
		"no signature":             {allowed, Signed{Manifest: both["web"].Manifest, Spec: both["web"].Spec}, "web", 0, "nobody whom"},
		"signature of another":     {allowed, swappedSignature, "web", 0, "not valid"},
		"part of another pool":     {allowed, swapped, "web", 0, "not what was signed"},
		"an hour behind":           {allowed, both["web"], "web", -time.Hour, "one of the clocks is wrong"},
		"an hour ahead":            {allowed, both["web"], "web", time.Hour, ""},
		"four minutes behind":      {allowed, both["web"], "web", -4 * time.Minute, ""},
		"a second before its end":  {allowed, both["web"], "web", 24*time.Hour - time.Second, ""},
		"expired":                  {allowed, both["web"], "web", 24*time.Hour + time.Second, "expired"},
		"key for other signatures": {policy(`alice@example.com namespaces="file,git" `, alicesKey), both["web"], "web", 0, "not valid"},
		"key for jobs":             {policy(`alice@example.com namespaces="sshpace-job" `, alicesKey), both["web"], "web", 0, ""},
		"key that is not valid now": {policy(fmt.Sprintf(`alice@example.com valid-before="%s" `, now.AddDate(0, 0, -2).Format("20060102")), alicesKey),
			both["web"], "web", 0, "nobody whom"},
		"key that is valid yet":     {policy(fmt.Sprintf(`alice@example.com valid-before="%s" `, now.AddDate(0, 0, 2).Format("20060102")), alicesKey), both["web"], "web", 0, ""},
		"limits without the signer": {limits(`[signers."bob@example.com"]`), both["web"], "web", 0, "has no limits here"},
		"limits for nobody":         {limits(``), both["web"], "web", 0, "has no limits here"},
		"limits with the signer":    {limits(`[signers."alice@example.com"]`), both["web"], "web", 0, ""},
		"limits with the pool":      {limits("[signers.\"alice@example.com\"]\npools = [\"web\"]"), both["web"], "web", 0, ""},
		"limits to another pool":    {limits("[signers.\"alice@example.com\"]\npools = [\"db\"]"), both["web"], "web", 0, "may not use pool web"},
		"sudo without leave":        {limits(`[signers."alice@example.com"]`), signFor(t, alice, now, sudo)["web"], "web", 0, "may not use --sudo"},
		"sudo with leave":           {limits("[signers.\"alice@example.com\"]\nsudo = true"), signFor(t, alice, now, sudo)["web"], "web", 0, ""},
		"sudo without limits":       {allowed, signFor(t, alice, now, sudo)["web"], "web", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := test.policy.Verify(t.Context(), test.job, test.pool, now.Add(test.ahead))
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want == "":
				if v.Signer != "alice@example.com" || v.Line != "uptime" || v.Pool != test.pool {
					t.Errorf("%+v", v)
				}
			case err == nil || !strings.Contains(err.Error(), test.want):
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// No byte of a job can be another one.
func TestVerifyAltered(t *testing.T) {
	alice, public := newKey(t, "alice")
	now := time.Now()
	p := &Policy{AllowedSigners: write(t, "allowed_signers", "alice@example.com "+public)}
	whole := signFor(t, alice, now, spec("web"))["web"]
	if _, err := p.Verify(t.Context(), whole, "web", now); err != nil {
		t.Fatal(err)
	}
	altered := func(of []byte, at int) []byte {
		of = bytes.Clone(of)
		of[at] ^= 1
		return of
	}
	for at := range whole.Spec { // by its digest, without ssh-keygen
		s := whole
		s.Spec = altered(s.Spec, at)
		if at%16 == 0 {
			if v, err := p.Verify(t.Context(), s, "web", now); err == nil {
				t.Errorf("byte %d of the Spec: %+v", at, v)
			}
		}
	}
	var fields Manifest
	if err := json.Unmarshal(whole.Manifest, &fields); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fields.ID, fields.Nonce, fields.Specs["web"], "expires", fields.Expires.Format("2006-01-02"), Schema} {
		s := whole
		s.Manifest = altered(s.Manifest, bytes.Index(s.Manifest, []byte(text))+len(text)/2)
		if v, err := p.Verify(t.Context(), s, "web", now); err == nil {
			t.Errorf("%s of the manifest: %+v", text, v)
		}
	}
	body := bytes.Index(whole.Signature, []byte("\n")) + 1
	for _, at := range []int{body + 1, body + 40, len(whole.Signature) / 2, bytes.LastIndex(whole.Signature, []byte("\n-----END")) - 5} {
		s := whole
		s.Signature = altered(s.Signature, at)
		if v, err := p.Verify(t.Context(), s, "web", now); err == nil {
			t.Errorf("byte %d of the signature: %+v", at, v)
		}
	}
}

// A signer of a newer version may ask for more than this one knows: it is not left out.
func TestVerifyUnknownFields(t *testing.T) {
	alice, public := newKey(t, "alice")
	p := &Policy{AllowedSigners: write(t, "allowed_signers", "alice@example.com "+public)}
	for _, field := range []string{"", `,"dry":true`} {
		data := []byte(`{"schema":"sshpace.job/1","id":"a","pool":"web","batches":["a"],"line":"x"` + field + `}`)
		s := signFor(t, alice, time.Now(), spec("web"))["web"]
		var m Manifest
		if err := json.Unmarshal(s.Manifest, &m); err != nil {
			t.Fatal(err)
		}
		m.ID, m.Specs["web"] = "a", digest(data)
		s.Spec = data
		s.Manifest, _ = json.Marshal(m)
		s.Signature, _ = Sign(t.Context(), alice, noEnvironment, s.Manifest, os.Stderr)
		if _, err := p.Verify(t.Context(), s, "web", time.Now()); (err != nil) != (field != "") {
			t.Errorf("%q: %v", field, err)
		}
	}
}

// A key with a certificate signs where its authority may say who signs.
func TestVerifyCertificate(t *testing.T) {
	ca, caKey := newKey(t, "ca")
	alice, _ := newKey(t, "alice")
	keygen(t, "-q", "-s", ca, "-I", "alice", "-n", "alice@example.com", "-V", "-1h:+1h", alice+".pub")
	s := signFor(t, alice+"-cert.pub", time.Now(), spec("web"))["web"]
	p := &Policy{AllowedSigners: write(t, "allowed_signers", "*@example.com cert-authority "+caKey)}
	v, err := p.Verify(t.Context(), s, "web", time.Now())
	if err != nil || v.Signer != "alice@example.com" {
		t.Errorf("%q, %v", v.Signer, err)
	}
	p.AllowedSigners = write(t, "allowed_signers", "*@example.org cert-authority "+caKey)
	if _, err := p.Verify(t.Context(), s, "web", time.Now()); err == nil {
		t.Error("a principal of another domain")
	}
}

// Without a file the first key of the agent signs, otherwise the first one that ssh would use.
func TestSignKey(t *testing.T) {
	alice, public := newKey(t, "alice")
	home := t.TempDir()
	environment := map[string]string{"HOME": home}
	getenv := func(name string) string { return environment[name] }
	if _, err := Sign(t.Context(), "", getenv, []byte("x"), os.Stderr); err == nil || !strings.Contains(err.Error(), "nothing is there to sign") {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	keygen(t, "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(home, ".ssh", "id_ed25519"))
	text, err := Sign(t.Context(), "", getenv, []byte("x"), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{AllowedSigners: write(t, "allowed_signers", "alice@example.com "+public)}
	if names, err := p.signers(t.Context(), Signed{Manifest: []byte("x"), Signature: text}); err == nil {
		t.Errorf("%q with the key of the directory", names)
	}

	socket := filepath.Join(t.TempDir(), "agent")
	agent := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer agent.Wait()
	defer agent.Process.Kill()
	for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
	}
	t.Setenv("SSH_AUTH_SOCK", socket)
	environment["SSH_AUTH_SOCK"] = socket
	if out, err := exec.Command("ssh-add", "-q", alice).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, err = Sign(t.Context(), "", getenv, []byte("x"), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if names, err := p.signers(t.Context(), Signed{Manifest: []byte("x"), Signature: text}); err != nil || names[0] != "alice@example.com" {
		t.Errorf("%q, %v with the key of the agent", names, err)
	}
}

// Errors name the cause and the remedy.
func TestSignErrors(t *testing.T) {
	for name, test := range map[string]struct{ program, want string }{
		"missing": {"", "ssh-keygen is not installed"},
		"old":     {"#!/bin/sh\necho 'unknown option -- Y' >&2; exit 1\n", "too old"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.program != "" {
				if err := os.WriteFile(filepath.Join(dir, "ssh-keygen"), []byte(test.program), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", dir)
			if _, err := Sign(t.Context(), "key", noEnvironment, nil, os.Stderr); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	for _, text := range []string{"[signers.a]\nroot = true", "x"} {
		if l, err := LoadLimits(write(t, "limits.toml", text)); err == nil {
			t.Errorf("%q: %v", text, l)
		}
	}
}
