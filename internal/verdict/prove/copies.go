package prove

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/pattern"
	"sshpace/internal/base/unit"
	"sshpace/internal/measure/drive"
	"sshpace/internal/record"
	"sshpace/internal/sys/bounded"
	"sshpace/internal/sys/proc"
)

// copies are the copying programs that stand beside ssh. The function that it
// returns removes what copies leave behind; it is never nil.
func copies(ctx context.Context, p Params) (methods []*method, cleanUp func(), err error) {
	folder, local, cleanUp := p.Memory.Path, p.Memory.Path, func() {}
	if p.Bed.Server == record.ServerRemote {
		if folder, cleanUp = remoteFolder(ctx, p); folder == "" {
			return nil, cleanUp, nil // a host without a shell: direct transfers alone
		}
		local = p.Bed.Rig.Dir.Path
	}
	from := filepath.Join(local, "from")
	if err := fillFile(from, p.Size); err != nil {
		return nil, cleanUp, err
	}
	for _, name := range []string{"scp", "sftp"} {
		program := filepath.Join(filepath.Dir(p.Bed.SSH.Path), name)
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		c := &drive.Copier{
			Program: program, SSH: p.Bed.SSH, Destination: p.Bed.Destination, Spawner: p.Bed.Rig.Spawner, Connect: p.Connect,
			From: from, To: folder + "/to", Size: p.Size,
		}
		suites := [2]alg.Suite{p.Present, p.Advised}
		methods = append(methods, &method{name: fmt.Sprintf("%s of %s", name, p.Size), round: func(ctx context.Context, swap bool) (got [2]rates, s record.Sample, err error) {
			order := [2]int{0, 1}
			if swap {
				order = [2]int{1, 0}
			}
			for _, k := range order {
				if s, err = c.Copy(ctx, suites[k]); err != nil || s.Outcome != record.OK {
					return got, s, err
				}
				got[k] = rates{throughput: float64(s.Bytes) / s.ElapsedNS.Seconds()}
			}
			return got, s, nil
		}})
	}
	return methods, cleanUp, nil
}

// remoteName is what mktemp on a host may answer: nothing else is ever removed.
var remoteName = pattern.Lazy(`^/tmp/sshpace-copy-[A-Za-z0-9]{10}$`)

// remoteFolder makes a private folder for the copies on the host; "" where that
// cannot be done.
func remoteFolder(ctx context.Context, p Params) (path string, remove func()) {
	answer, err := onHost(ctx, p, "umask 077; mktemp -d /tmp/sshpace-copy-XXXXXXXXXX")
	words := strings.Fields(string(answer))
	if err != nil || len(words) == 0 || !remoteName().MatchString(words[len(words)-1]) {
		return "", func() {}
	}
	path = words[len(words)-1]
	return path, func() { _, _ = onHost(ctx, p, "rm -rf -- "+path) }
}

// maxAnswer is how much a host may print around the name of a folder, in bytes.
const maxAnswer = 1 << 20

// onHost runs a command by the advised choice, even when ctx has ended.
func onHost(ctx context.Context, p Params, command string) ([]byte, error) {
	argv := p.Bed.SSH.Command(p.Bed.Destination, p.Advised, os.DevNull, p.Connect, command)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*p.Connect)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	proc.Lead(cmd)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	defer func() { proc.EndGroup(cmd.Process.Pid, 0) }()
	text, err := bounded.ReadAll(out, "the host's answer", maxAnswer)
	if err != nil {
		cancel() // it would wait for somebody to read on
	}
	return text, errors.Join(err, cmd.Wait())
}

// fillFile writes bytes that no layer can compress.
func fillFile(path string, size unit.Bytes) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	chunk := make([]byte, 1<<20)
	_, _ = rand.Read(chunk) // never fails
	for left := size; left > 0; left -= unit.Bytes(len(chunk)) {
		if _, err := f.Write(chunk[:min(left, unit.Bytes(len(chunk)))]); err != nil {
			return fault.WithHint(err, "copy less with --size")
		}
	}
	return f.Close()
}
