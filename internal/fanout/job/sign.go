package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/file"
)

// namespace keeps signatures of jobs apart from those of anything else.
const namespace = "sshpace-job"

// mostAhead is how far clocks may be apart.
const mostAhead = 5 * time.Minute

// Sign signs a manifest by ssh-keygen, which alone sees a private key: that of a file, whose
// private half an agent may hold; with "" the first key of the agent, otherwise the first one that
// ssh would use. ssh-keygen may ask on the terminal; people are shown that a key waits to be
// touched.
func Sign(ctx context.Context, key string, getenv func(string) string, manifest []byte, people io.Writer) ([]byte, error) {
	if key == "" {
		agents, err := openssh.AgentKey(ctx, getenv)
		if agents != "" {
			defer os.Remove(agents)
		}
		if err != nil {
			return nil, err
		}
		if key = agents; key == "" {
			key = usualKey(getenv("HOME"))
		}
	}
	if key == "" {
		return nil, fault.Usage("give --sign-key FILE, or load a key into the agent: ssh-add", "nothing is there to sign the job with")
	}
	signature, err := openssh.Sign(ctx, key, namespace, manifest, people)
	if fault.HintOf(err) != "" { // there is no ssh-keygen
		return nil, err
	}
	return signature, fault.WithHint(err, "load the key into an agent, where ssh-add asks for what it needs, or give another --sign-key")
}

// usualKey returns the first private key that ssh would use, "" for none.
func usualKey(home string) string {
	for _, name := range conf.UsualIdentities {
		path := filepath.Join(home, strings.TrimPrefix(name, "~/"))
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// Policy says whose jobs a launcher carries out.
type Policy struct {
	AllowedSigners string // path of the file, as in ssh-keygen(1)
	// Limits of signers, by their principals; those that it does not name are refused. nil: any
	// job of all of them is carried out.
	Limits map[string]Limit
}

// Limit is what a signer may do.
type Limit struct {
	Pools []string `toml:"pools"` // none given: all
	Sudo  bool     `toml:"sudo"`
}

// LoadLimits reads limits of signers in TOML.
func LoadLimits(path string) (map[string]Limit, error) {
	const hint = `such as: [signers."alice@example.com"] pools = ["web"] sudo = false, each on a line of its own`
	text, err := file.ReadFile(path, maxLimits)
	if err != nil {
		return nil, fault.WithHint(err, hint)
	}
	var f struct {
		Signers map[string]Limit `toml:"signers"`
	}
	meta, err := toml.Decode(string(text), &f)
	if unknown := meta.Undecoded(); err == nil && len(unknown) > 0 {
		err = fmt.Errorf("unknown key %q", unknown[0].String())
	}
	if err != nil {
		return nil, fault.Usage(hint, "%s: %s", path, err)
	}
	if f.Signers == nil {
		f.Signers = map[string]Limit{} // nobody
	}
	return f.Signers, nil
}

// maxLimits bounds the file of limits, in bytes.
const maxLimits = 1 << 20

// Verified is a job that a policy allows.
type Verified struct {
	Spec
	Expires time.Time
	Signer  string // principal
}

// Verify makes sure that a policy allows a job in a pool now, by its signature before anything in
// it is read. An error says to people why it is refused.
func (p *Policy) Verify(ctx context.Context, s Signed, pool string, now time.Time) (v Verified, err error) {
	signers, err := p.signers(ctx, s)
	if err != nil {
		return v, err
	}
	var m Manifest
	if err = decode(s.Manifest, &m); err != nil {
		return v, err
	}
	switch {
	case m.Schema != Schema:
		return v, fmt.Errorf("it has the form %q, not %s", m.Schema, Schema)
	case m.Time.After(now.Add(mostAhead)):
		return v, fmt.Errorf("it was signed at %s, but here it is %s: one of the clocks is wrong", stamp(m.Time), stamp(now))
	case !now.Before(m.Expires):
		return v, fmt.Errorf("it has expired at %s, and here it is %s", stamp(m.Expires), stamp(now))
	case m.Specs[pool] == "":
		return v, fmt.Errorf("it is not for pool %s", pool)
	case m.Specs[pool] != digest(s.Spec):
		return v, errors.New("what it does is not what was signed")
	}
	if err = decode(s.Spec, &v.Spec); err != nil {
		return v, err
	}
	if v.ID != m.ID || v.Pool != pool || v.Schema != Schema || !jobID().MatchString(v.ID) {
		return v, errors.New("its parts contradict each other")
	}
	v.Expires = m.Expires
	v.Signer, err = p.permits(signers, &v.Spec)
	return v, err
}

// jobID is what IDs of jobs consist of, so that they can be parts of subjects and names of files.
var jobID = wildcard.Regexp(`^[A-Za-z0-9][A-Za-z0-9.-]{0,127}$`)

func stamp(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

// decode reads what a signer wrote. What this version does not know it must not leave out.
func decode(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("this version cannot read it: %w", err)
	}
	return nil
}

// signers returns the principals that have signed a manifest.
func (p *Policy) signers(ctx context.Context, s Signed) (names []string, err error) {
	f, err := os.CreateTemp("", "sshpace-*.sig")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(s.Signature)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	signature := openssh.Signature{File: f.Name(), AllowedSigners: p.AllowedSigners}
	found, err := signature.Principals(ctx)
	if err != nil {
		return nil, fmt.Errorf("nobody whom %s names has signed it: %w", p.AllowedSigners, err)
	}
	for _, name := range found {
		if err = signature.Verify(ctx, name, namespace, s.Manifest); err == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("its signature by %s is not valid: %w", found[0], err)
	}
	return names, nil
}

// permits returns the first of the signers that may do what a Spec says.
func (p *Policy) permits(signers []string, s *Spec) (string, error) {
	if p.Limits == nil {
		return signers[0], nil
	}
	err := fmt.Errorf("its signer %s has no limits here", signers[0])
	for _, name := range signers {
		limit, named := p.Limits[name]
		switch {
		case !named:
		case len(limit.Pools) > 0 && !slices.Contains(limit.Pools, s.Pool):
			err = fmt.Errorf("its signer %s may not use pool %s", name, s.Pool)
		case s.Sudo != "" && !limit.Sudo:
			err = fmt.Errorf("its signer %s may not use --sudo", name)
		default:
			return name, nil
		}
	}
	return "", err
}
