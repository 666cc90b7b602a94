//go:build linux

package transfer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/sys/relay"
)

// throttles are the files of a control group that limit what its processes write to a device, of
// both versions, and where the groups are.
var throttles = []struct{ root, file, format string }{
	{"/sys/fs/cgroup/blkio", "blkio.throttle.write_bps_device", "%s %d"},
	{"/sys/fs/cgroup", "io.max", "%s wbps=%d"},
}

// slowDisk is a directory on a disk that takes so many bytes per second from this program and what
// it starts: a file system that writes at once, on a loop device.
func slowDisk(t *testing.T, rate int) string {
	t.Helper()
	directory := t.TempDir()
	image := filepath.Join(directory, "image")
	must := func(argv ...string) string {
		t.Helper()
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			t.Skipf("not run: no disk can be made slow here: %s: %v: %s", argv[0], err, out)
		}
		return strings.TrimSpace(string(out))
	}
	must("truncate", "-s", "200M", image)
	must("mkfs.ext4", "-q", "-O", "^has_journal", image)
	device := must("losetup", "-f", "--show", image)
	t.Cleanup(func() { _ = exec.Command("losetup", "-d", device).Run() })
	disk := filepath.Join(directory, "disk")
	must("mkdir", disk)
	must("mount", "-o", "sync", device, disk)
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	number := must("stat", "-c", "%Hr:%Lr", device)
	for _, throttle := range throttles {
		group := filepath.Join(throttle.root, fmt.Sprintf("sshpace-test-%d", os.Getpid()))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) })
		if os.WriteFile(filepath.Join(group, throttle.file), fmt.Appendf(nil, throttle.format, number, rate), 0) != nil {
			continue
		}
		join := func(group string) error {
			return os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, os.Getpid()), 0)
		}
		if join(group) != nil {
			continue
		}
		t.Cleanup(func() { _ = join(throttle.root) })
		return disk
	}
	t.Skip("not run: no disk can be made slow here: no control group limits it")
	return ""
}

// A slow disk is named, in both directions, and neither a cipher nor a CPU; files in memory are no
// limit.
func TestQuietSlowDisk(t *testing.T) {
	sharp := func(t *testing.T, b *transfer.Ground, direction record.Direction) (record.Limit, bool) {
		t.Helper()
		c := b.Subjects([]record.Mode{record.ModeSCP}, transfer.Options{Suite: suite, Direction: direction})[0]
		c.SizeBytes = 4 << 20
		limit, is, err := b.Disk(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %q, %+v", direction, limit.Sentence, limit.Evidence)
		return limit, is
	}
	for name, path := range map[string]relay.Path{"files in memory": {}, "a slow link": {Rate: 8e6}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if limit, is := sharp(t, open(t, path), record.Upload); is {
				t.Errorf("taken for a disk: %s", limit.Sentence)
			}
		})
	}
	t.Run("a slow disk", func(t *testing.T) {
		t.Parallel()
		b := openIn(t, relay.Path{}, slowDisk(t, 6e6))
		for _, direction := range []record.Direction{record.Upload, record.Download} {
			limit, is := sharp(t, b, direction)
			if !is { // other work was the limit: it is not there all the time
				limit, is = sharp(t, b, direction)
			}
			if !is || limit.What != record.LimitSinkDisk || strings.Contains(limit.Sentence, "cipher") || !strings.Contains(limit.Help, "no cipher") {
				t.Errorf("%s: %+v", direction, limit)
			}
		}
	})
}
