//go:build linux

package limits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"sshpace/internal/base/text"
	"sshpace/internal/bench/speed"
	"sshpace/internal/record"
)

// primitives are the building blocks of SSH's algorithms, by their names in `openssl speed`. Block
// sizes are those of a full channel packet of SSH.
var primitives = []struct {
	name  string
	args  []string
	bytes bool // measured in bytes, not in operations
}{
	{"AES-128-GCM", []string{"-evp", "aes-128-gcm"}, true},
	{"AES-256-GCM", []string{"-evp", "aes-256-gcm"}, true},
	{"AES-128-CTR", []string{"-evp", "aes-128-ctr"}, true},
	{"AES-192-CTR", []string{"-evp", "aes-192-ctr"}, true},
	{"AES-256-CTR", []string{"-evp", "aes-256-ctr"}, true},
	{"ChaCha20-Poly1305", []string{"-evp", "chacha20-poly1305"}, true},
	{"SHA-1", []string{"-evp", "sha1"}, true},
	{"SHA-256", []string{"-evp", "sha256"}, true},
	{"SHA-512", []string{"-evp", "sha512"}, true},
	{"X25519", []string{"ecdhx25519"}, false},
	{"ECDH P-256", []string{"ecdhp256"}, false},
	{"ML-KEM-768", []string{"ML-KEM-768"}, false},
	{"Ed25519", []string{"ed25519"}, false},
	{"ECDSA P-256", []string{"ecdsap256"}, false},
	{"RSA 3072", []string{"rsa3072"}, false},
}

// since is the first OpenSSL that has a primitive, if that is later than speed -seconds (1.1.1).
var since = map[string]string{"ML-KEM-768": "3.5"}

// missing lists primitives of SSH that openssl cannot measure.
var missing = map[string]string{
	"UMAC":      "UMAC is code of OpenSSH itself, which openssl speed cannot measure",
	"sntrup761": "sntrup761 is code of OpenSSH itself, which openssl speed cannot measure",
}

const blockBytes = "32768"

// cryptoProbes run openssl once per primitive, for a second in each direction.
func cryptoProbes(o Options) []probe {
	var out []probe
	for _, p := range primitives {
		out = append(out, probe{p.name, func(ctx context.Context) ([]record.Measurement, error) {
			results, err := runSpeed(ctx, o.OpenSSL, p.args, p.bytes)
			if errors.Is(err, errUnknown) {
				err = absent(p.name)
			}
			return results, err
		}, !p.bytes})
	}
	for _, name := range []string{"UMAC", "sntrup761"} {
		out = append(out, probe{name, func(context.Context) ([]record.Measurement, error) {
			return nil, errors.New(missing[name])
		}, true})
	}
	return out
}

// absent returns the error of an OpenSSL without a primitive.
func absent(name string) error {
	why := "this OpenSSL has no " + name
	if version := since[name]; version != "" {
		why += " (" + version + " and later has)"
	}
	return errors.New(why)
}

// errUnknown says that this openssl does not know the primitive.
var errUnknown = errors.New("unknown to this openssl")

// runSpeed runs openssl speed and parses its output.
func runSpeed(ctx context.Context, openssl string, args []string, inBytes bool) ([]record.Measurement, error) {
	if openssl == "" {
		return nil, errors.New("the openssl program is not installed")
	}
	full := []string{"speed", "-seconds", "1"}
	if inBytes {
		full = append(full, "-bytes", blockBytes)
	}
	cmd := exec.CommandContext(ctx, openssl, append(full, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	err := cmd.Run()
	if said := stderr.String(); strings.Contains(said, "Unknown algorithm") || strings.Contains(said, "is an unknown cipher or digest") {
		return nil, errUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w (%s)", openssl, strings.Join(cmd.Args[1:], " "), err, text.LastLine(stderr.String()))
	}
	var out figures
	reader := speed.Reader{Open: func(string) speed.Machine { return &out }}
	for line := range strings.Lines(stdout.String()) {
		reader.Take(line)
	}
	if len(out) == 0 {
		return nil, errors.New("this openssl does not measure it: " + text.LastLine(stderr.String()))
	}
	return out, nil
}

// figures gathers the figures of one run of openssl speed.
type figures []record.Measurement

func (f *figures) Measure(source, name string, u record.Unit, value float64) {
	*f = append(*f, record.Measurement{Source: source, Name: name, Unit: u, Value: value, N: 1})
}

func (f *figures) Remark(string) {}

// FindOpenSSL finds the openssl program and its version line; path is "" where there is none.
func FindOpenSSL(ctx context.Context, given string) (path, version string) {
	if given == "" {
		given = "openssl"
	}
	path, err := exec.LookPath(given)
	if err != nil {
		return "", ""
	}
	said, err := exec.CommandContext(ctx, path, "version").Output()
	if err != nil {
		return "", ""
	}
	version, _, _ = strings.Cut(strings.TrimSpace(string(said)), " (Library")
	return path, version
}
