package advise

import (
	"strings"
	"testing"
)

// A policy that never ends is refused.
func TestLoadPolicyIsBounded(t *testing.T) {
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "/dev/zero: more than 65536 bytes") {
		t.Errorf("%v", err)
	}
}
