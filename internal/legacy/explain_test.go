package legacy_test

import (
	"io"
	"strings"
	"testing"

	"sshpace/internal/base/fault"
	"sshpace/internal/legacy"
)

// TestHintOfOddPaths: a path in a line for a shell is one word there.
func TestHintOfOddPaths(t *testing.T) {
	err := legacy.Explain(io.Discard, "/tmp/a b; reboot", legacy.ErrResult, false)
	if hint := fault.HintOf(err); !strings.HasSuffix(hint, "sshpace report '/tmp/a b; reboot'") {
		t.Errorf("%q", hint)
	}
}
