package advise

import "testing"

// Lists that begin with ^ are not for a server whose version says that it is too old for them; who
// is no OpenSSH, or does not say, is not known to be.
func TestPrepends(t *testing.T) {
	for version, want := range map[string]bool{
		"OpenSSH_7.4p1 Debian-10+deb9u7": false, "OpenSSH_8.0": false, "OpenSSH_8.1": true, "OpenSSH_9.2p1 Debian-2": true, "OpenSSH_10.0p2": true,
		"OpenSSH_for_Windows_9.5p1": true, "dropbear_2024.86": true, "": true,
	} {
		if got := Prepends(version); got != want {
			t.Errorf("%q knows ^: %v, want %v", version, got, want)
		}
	}
}
