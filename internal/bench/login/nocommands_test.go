package login

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sshpace/internal/ssh/sshtest"
)

// TestNoCommands: an account that can be logged in to and runs nothing is called that, with what
// was said in the command's place.
func TestNoCommands(t *testing.T) {
	s := sshtest.StartSshd(t, "ForceCommand echo This account is currently not available.; exit 1")
	l, err := Watch(context.Background(), t.TempDir(), sshTo(t, s.User, s.Key, s.Port), nil)
	var failed *FailedError
	if !errors.As(err, &failed) || failed.Status != 1 {
		t.Fatalf("got %v, %v", l, err)
	}
	if want := `the login works, but the account runs no commands (exit status 1): it said "This account is currently not available."`; err.Error() != want {
		t.Errorf("%s\nwant %s", err, want)
	}
}

// TestBannerIsNoWord: what the server greets with is not what an account without commands says.
func TestBannerIsNoWord(t *testing.T) {
	banner := filepath.Join(t.TempDir(), "banner")
	if err := os.WriteFile(banner, []byte("Connection refused\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := sshtest.StartSshd(t, "Banner "+banner, "ForceCommand exit 1")
	_, err := Watch(context.Background(), t.TempDir(), sshTo(t, s.User, s.Key, s.Port), nil)
	if want := "the login works, but the account runs no commands (exit status 1)"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
