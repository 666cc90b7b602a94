package hostlist

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Groups that nobody has named belong to the user or to root.
func TestOwnerOfGroups(t *testing.T) {
	name := filepath.Join(write(t, map[string]string{"groups": "web: w1\n"}), "groups")
	if err := checkOwner(name, os.Geteuid()); err != nil {
		t.Error(err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := checkOwner(name, 12345); err != nil {
		t.Errorf("root's: %v", err)
	}
	if err := os.Chown(name, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := checkOwner(name, 0); err == nil || !strings.Contains(err.Error(), "belongs to another user (12345)") {
		t.Errorf("another user's: %v", err)
	}
}
