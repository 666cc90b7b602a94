//go:build linux

package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// spoil adds a text to every string of some facts.
func spoil(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			spoil(v.Field(i), text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i), text)
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(v.String() + text)
		}
	}
}

// quoted is what a shell takes as it stands.
var quoted = regexp.MustCompile(`'[^']*'|\\'`)

// TestHostileTexts: whatever a host, a configuration or a file is called, no line that somebody is
// to type runs it.
func TestHostileTexts(t *testing.T) {
	for _, hostile := range []string{"'; canary; '", "$(canary)", "`canary`", `\'canary`, `";canary;"`, " canary", "|canary", "/;e canary", "%s canary", "&canary", "#canary", "~canary", "*canary", ">canary"} {
		for _, c := range causes {
			f := plain()
			c.plant(f)
			spoil(reflect.ValueOf(f), hostile)
			found := Judge(Checks, f)
			if len(found) == 0 {
				t.Errorf("%s is not found any more with %q", c.check, hostile)
			}
			for _, finding := range found {
				if rest := quoted.ReplaceAllString(finding.Do, ""); strings.Contains(rest, "canary") {
					t.Errorf("%s: %q is not quoted in: %s", c.check, hostile, finding.Do)
				}
				check := exec.Command("sh", "-n")
				check.Stdin = strings.NewReader(finding.Do)
				if out, err := check.CombinedOutput(); err != nil {
					t.Errorf("%s with %q is no line for a shell: %s\n%s", c.check, hostile, finding.Do, out)
				}
			}
		}
	}
}

// TestHostCannotChooseRoutes: of what a shell on the host says, root is told to type nothing but an
// address.
func TestHostCannotChooseRoutes(t *testing.T) {
	for told, want := range map[string]string{
		"192.0.2.2": "192.0.2.2", "2001:db8::2": "2001:db8::2", "fe80::2%$(reboot)": "fe80::2",
		"default": "", "0.0.0.0/0": "", "192.0.2.2 via 192.0.2.66": "", "": "", "192.0.2.2;reboot": "",
	} {
		f := plain()
		f.Logins.Service, f.Server.Client = of(44), told
		f.Refusal = &Refusal{Said: "closed", Penalty: true}
		route, exempt := want, want
		if want == "" {
			route, exempt = "CLIENT", "ADDRESS"
		}
		var lines []string
		for _, finding := range Judge(Checks, f) {
			lines = append(lines, finding.Do)
		}
		all := strings.Join(lines, "\n")
		if !strings.Contains(all, "r=$(ip route get "+route+" | ") || !strings.Contains(all, "PerSourcePenaltyExemptList "+exempt+`\n'`) {
			t.Errorf("told %q: %s", told, all)
		}
	}
}

// TestSettingsOfOddPaths: ssh reads the name of a key and of a file of host keys as it is, and the
// line that sets it runs in a shell.
func TestSettingsOfOddPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), `it's 100% "so" \n`)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte("User ann\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := plain()
	f.Config = config
	f.Logins.Keys = Keys{Vain: []string{"a", "b"}, Took: of(30), Accepted: filepath.Join(dir, "key")}
	f.KnownHosts = []KnownHosts{{File: filepath.Join(dir, "known"), Lines: 20000, Extra: of(30), Others: []string{"/other"}}}
	for _, finding := range Judge(Checks, f) {
		line := strings.TrimPrefix(finding.Do, "ssh-keygen -F web1 -f ")
		if _, rest, found := strings.Cut(line, " &&\n("); found {
			line = "(" + rest
		}
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	out, err := exec.Command("ssh", "-G", "-F", config, "web1").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := strings.ReplaceAll(string(out), "%%", "%") // ssh -G shows tokens as they are
	for _, want := range []string{"user ann\n", "identityfile " + dir + "/key\n", "userknownhostsfile " + dir + "/known.web1 /other\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("ssh -G does not show %q:\n%s", want, text)
		}
	}
}
