package host

import "testing"

// A range without brackets is shown with them.
func TestUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"web1-20": "for a set of hosts write web[1-20], in quotes; otherwise check the spelling", "web1..20": "for a set of hosts write web[1-20], in quotes; otherwise check the spelling", "range_test.go": "to read hosts from the file of this name: --hosts-file range_test.go; otherwise check the spelling",
		"192.0.2.1-3": "for a set of hosts write 192.0.2.[1-3], in quotes; otherwise check the spelling", "192.0.2.9/30": "for addresses of a network write 192.0.2.[8-11], in quotes; otherwise check the spelling",
		"10.0.0.0/8": "for addresses of a network write ranges such as 192.0.2.[1-254], in quotes; otherwise check the spelling", "prod/web": "check the spelling",
		"~/hosts.txt": "to read hosts from a file: --hosts-file ~/hosts.txt, without quotes; otherwise check the spelling",
		"all":         "all hosts are @ssh_config:all, or @all with --inventory; otherwise check the spelling",
		"db-01-16":    "for a set of hosts write db-[01-16], in quotes; otherwise check the spelling",
		"web1":        "check the spelling", "web20-1": "check the spelling", "rack-1-2-3": "check the spelling", "10.0.0-3": "check the spelling", "10-20": "check the spelling", "": "check the spelling",
	} {
		if got := Unknown(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
