package proc

import (
	"os"
	"path/filepath"
	"testing"
)

// A container's limit counts, of the group or of one that it is in.
func TestAvailableMemory(t *testing.T) {
	const (
		meminfo = "MemTotal:       16000000 kB\nMemFree:         900000 kB\nMemAvailable:    8000000 kB\n"
		all     = int64(8000000) << 10
	)
	for _, c := range []struct {
		name, cgroup string
		files        map[string]string
		want         int64
	}{
		{"no groups", "", nil, all},
		{"version 2 without a limit", "0::/user\n", map[string]string{"sys/fs/cgroup/user/memory.max": "max\n"}, all},
		{"version 2", "0::/user\n", map[string]string{"sys/fs/cgroup/user/memory.max": "500000\n", "sys/fs/cgroup/user/memory.current": "200000\n"}, 300000},
		{"page cache gives way", "0::/user\n", map[string]string{
			"sys/fs/cgroup/user/memory.max": "500000\n", "sys/fs/cgroup/user/memory.current": "200000\n",
			"sys/fs/cgroup/user/memory.stat": "anon 7\ninactive_file 150000\n",
		}, 450000},
		{"of the group around", "0::/a/b\n", map[string]string{"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "400000\n"}, 400000},
		{"a container's mount", "0::/../host\n", map[string]string{"sys/fs/cgroup/memory.max": "600000\n"}, 600000},
		{"version 1", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n", map[string]string{
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "700000\n", "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "100000\n",
		}, 600000},
		{"more used than allowed", "0::/x\n", map[string]string{"sys/fs/cgroup/x/memory.max": "5\n", "sys/fs/cgroup/x/memory.current": "9\n"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			files := map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": c.cgroup}
			for name, text := range c.files {
				files[name] = text
			}
			for name, text := range files {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, ok := availableMemory(root); !ok || got != c.want {
				t.Errorf("%d, %v; want %d", got, ok, c.want)
			}
		})
	}
	if _, ok := availableMemory(t.TempDir()); ok {
		t.Error("known without /proc")
	}
}
