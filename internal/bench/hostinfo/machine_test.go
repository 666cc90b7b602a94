package hostinfo

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestDescribe(t *testing.T) {
	e := Describe(20 * time.Millisecond)
	if e.CPU == "" || e.Cores < 1 || e.Kernel == "" || e.MemoryBytes <= 0 || e.CPUClock == "" {
		t.Errorf("incomplete: %+v", e)
	}
	if e.StealPct < 0 || e.StealPct > 100 {
		t.Errorf("steal %v %%", e.StealPct)
	}
}

func TestQuota(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"v2 limited":   {map[string]string{"cpu.max": "150000 100000\n"}, 1.5},
		"v2 unlimited": {map[string]string{"cpu.max": "max 100000\n"}, 0},
		"v1 limited":   {map[string]string{"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5},
		"v1 unlimited": {map[string]string{"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0},
		"none":         {nil, 0},
	} {
		root := t.TempDir()
		for file, text := range test.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := quota(root); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
