package openssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/sys/proc"
)

// Beside finds another program of the installed client, such as ssh-keygen: the one beside ssh, as
// both must have the same version.
func Beside(name string) (string, error) {
	if ssh, err := locate("ssh", ""); err == nil {
		path := filepath.Join(filepath.Dir(ssh), name)
		if _, err := exec.LookPath(path); err == nil {
			return path, nil
		}
	}
	path, err := locate(name, "")
	return path, fault.WithHint(err, "install openssh-client")
}

// Sign lets ssh-keygen sign a text with a key, whose file may be that of a public key that an agent
// holds, and returns the signature. It may ask for a passphrase or a touch on the terminal;
// people are shown what it says meanwhile.
func Sign(ctx context.Context, key, namespace string, text []byte, people io.Writer) ([]byte, error) {
	program, err := Beside("ssh-keygen")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-Y", "sign", "-n", namespace, "-f", key) // it stays in our process group, which may ask
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &out, io.MultiWriter(&said, touches{people})
	if err := cmd.Run(); err != nil {
		return nil, keygenFailed("sign with "+key, said.String(), err)
	}
	return out.Bytes(), nil
}

// touches passes on that a key waits to be touched.
type touches struct{ io.Writer }

func (t touches) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("presence")) {
		return t.Writer.Write(p)
	}
	return len(p), nil
}

// Signature is a signature by ssh-keygen -Y sign, and the file of the keys that may sign.
type Signature struct{ File, AllowedSigners string }

// Principals returns the names that the file of allowed signers has for the key of the signature,
// at least one.
func (s Signature) Principals(ctx context.Context) ([]string, error) {
	out, err := s.ask(ctx, "find-principals", nil)
	return strings.Split(strings.TrimSpace(string(out)), "\n"), err
}

// Verify makes sure that a text was signed by a principal, whose key may sign in the namespace now.
func (s Signature) Verify(ctx context.Context, principal, namespace string, text []byte) error {
	_, err := s.ask(ctx, "verify", text, "-I", principal, "-n", namespace)
	return err
}

func (s Signature) ask(ctx context.Context, what string, text []byte, args ...string) ([]byte, error) {
	program, err := Beside("ssh-keygen")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"-Y", what, "-f", s.AllowedSigners, "-s", s.File}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &out, &said
	if err := proc.RunTied(cmd); err != nil {
		return nil, keygenFailed("", out.String()+said.String(), err)
	}
	return out.Bytes(), nil
}

// keygenFailed describes a failure by what ssh-keygen has said. An old one knows no signatures.
func keygenFailed(what, said string, err error) error {
	words := strings.Join(strings.Fields(said), " ")
	switch {
	case strings.Contains(said, "illegal option") || strings.Contains(said, "unknown option") || strings.Contains(said, "Unsupported operation"):
		return fault.WithHint(errors.New("the installed ssh-keygen is too old for signatures"), "install OpenSSH 8.9 or later")
	case words == "":
		words = err.Error()
	}
	if what == "" {
		return errors.New(words)
	}
	return fmt.Errorf("ssh-keygen cannot %s: %s", what, words)
}

// AgentKey writes the first key of the user's agent to a file of its own, for Sign; "" if there is
// none. The caller removes it.
func AgentKey(ctx context.Context, getenv func(string) string) (file string, err error) {
	program, err := Beside("ssh-add")
	if err != nil || getenv("SSH_AUTH_SOCK") == "" {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, "-L")
	var out bytes.Buffer
	cmd.Stdout = &out
	if proc.RunTied(cmd) != nil { // it has no key, or does not live
		return "", nil
	}
	line, _, _ := strings.Cut(out.String(), "\n")
	f, err := os.CreateTemp("", "sshpace-*.pub")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(line + "\n")
	return f.Name(), errors.Join(err, f.Close())
}
