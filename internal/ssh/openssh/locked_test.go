package openssh

import "testing"

func TestLocked(t *testing.T) {
	const shadow = "root:!:20000:0:99999:7:::\nstar:*:1::::::\nhash:$y$j9T$x:1::::::\nlock:!$y$j9T$x:1::::::\nempty::1::::::\nbroken\n"
	for user, want := range map[string]bool{"root": true, "lock": true, "star": false, "hash": false, "empty": false, "broken": false, "nobody": false, "": false} {
		if got := locked(shadow, user); got != want {
			t.Errorf("locked(%q) = %v", user, got)
		}
	}
}
