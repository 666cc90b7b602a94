package legacylog_test

import (
	"io"
	"strings"
	"testing"

	"sshpace/internal/base/fault"
	"sshpace/internal/record/legacylog"
)

// TestHintOfOddPaths: a path in a line for a shell is one word there.
func TestHintOfOddPaths(t *testing.T) {
	err := legacylog.Explain(io.Discard, "/tmp/a b; reboot", legacylog.ErrResult, false)
	if hint := fault.HintOf(err); !strings.HasSuffix(hint, "sshpace report '/tmp/a b; reboot'") {
		t.Errorf("%q", hint)
	}
}
