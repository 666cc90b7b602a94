package tidy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/knownhosts/tidy"
	"sshpace/internal/ssh/sshtest"
)

// TestResolverThatIsNoHelp: one that never answers, or takes a second for each name, is given up,
// the files of the hosts are there before it is asked, and few names are asked for at once.
func TestResolverThatIsNoHelp(t *testing.T) {
	const hosts = 700
	for name, test := range map[string]struct {
		resolve  func(ctx context.Context) error
		longest  time.Duration
		unsolved int
		says     string
	}{
		"silent": {func(ctx context.Context) error {
			ctx, end := context.WithTimeout(ctx, 5*time.Second)
			defer end()
			<-ctx.Done()
			return ctx.Err()
		}, 6 * time.Second, hosts, "the resolver does not answer"},
		"slow": {func(context.Context) error { time.Sleep(time.Second); return nil }, 31 * time.Second, hosts - 30*16, "the resolver was too slow: 30 s are over"},
		"good": {func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil }, time.Second, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			key := sshtest.KeyText(1)
			var text strings.Builder
			for i := range hosts {
				fmt.Fprintf(&text, "h%d %s\n", i, key)
			}
			file, dir := filepath.Join(t.TempDir(), "known_hosts"), filepath.Join(t.TempDir(), "d")
			if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				var now, most, early, reports atomic.Int64
				o := tidy.SplitOptions{
					Resolve: func(ctx context.Context, host string) ([]string, error) {
						n := now.Add(1)
						defer now.Add(-1)
						most.Store(max(most.Load(), n))
						if _, err := os.Stat(filepath.Join(dir, host)); err != nil {
							early.Add(1)
						}
						return nil, test.resolve(ctx)
					},
					Looking: func(_, total int) { reports.Add(1) },
				}
				began := time.Now()
				result, err := tidy.Split(t.Context(), index.Open(file), dir, o)
				took := time.Since(began)
				if err != nil || result.Written != hosts+1 || took > test.longest || most.Load() > 16 || early.Load() > 0 {
					t.Errorf("%v, %d files, %v, %d at once, %d names asked for before their file was there", err, result.Written, took, most.Load(), early.Load())
				}
				why := strings.Join(result.Unresolved, "\n")
				if n := len(result.Unresolved); n < test.unsolved-16 || n > test.unsolved+16 || n > 0 && !strings.Contains(why, test.says) {
					t.Errorf("%d are not resolved: %.200q", n, why)
				}
				if least := int64(took/time.Second) - 1; reports.Load() < least {
					t.Errorf("%d reports in %v", reports.Load(), took)
				}
			})
		})
	}
}
