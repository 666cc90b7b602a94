// Package packaging tests what ./build makes.
package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// output runs a command that must succeed.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// asRoot runs a command with the rights of root in a name space of its own,
// where the user is not root.
func asRoot(t *testing.T, name string, args ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		name, args = "unshare", append([]string{"--map-root-user", name}, args...)
	}
	return output(t, "", name, args...)
}

// installedPackage installs a package into an empty root, as dpkg does.
func installedPackage(t *testing.T, deb string) (root string) {
	t.Helper()
	root = t.TempDir()
	db := filepath.Join(root, "var/lib/dpkg")
	for _, dir := range []string{"updates", "info"} {
		if err := os.MkdirAll(filepath.Join(db, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(db, "status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	asRoot(t, "dpkg", "--root="+root, "--force-not-root", "--force-script-chrootless", "--install", deb)
	return root
}

// What ./build makes for this machine can be installed on an empty system, and
// everything that it should hold works there.
func TestPackages(t *testing.T) {
	dist := t.TempDir()
	said := output(t, "..", "./build", "--dist", dist, "linux/"+runtime.GOARCH)
	for _, step := range []string{"build: sshpace for this machine, ", "build: sshpace-", "build: nfpm, "} {
		if !strings.Contains(said, step) { // cold, each takes minutes
			t.Errorf("./build does not say %q:\n%s", step, said)
		}
	}
	output(t, dist, "sha256sum", "--check", "--strict", "SHA256SUMS")
	one := func(pattern string) string {
		t.Helper()
		found, _ := filepath.Glob(filepath.Join(dist, pattern))
		if len(found) != 1 {
			t.Fatalf("%s: %d files", pattern, len(found))
		}
		return found[0]
	}
	t.Run("deb", func(t *testing.T) {
		root := installedPackage(t, one("*.deb"))
		if got := asRoot(t, "chroot", root, "/usr/bin/sshpace", "version"); !strings.HasPrefix(got, "sshpace ") || !strings.Contains(got, "linux/"+runtime.GOARCH) {
			t.Errorf("version: %q", got)
		}
		if got := asRoot(t, "dpkg", "--root="+root, "--verify", "sshpace"); got != "" {
			t.Errorf("dpkg --verify: %s", got)
		}
		lookAtManual(t, filepath.Join(root, "usr/share/man/man1"))
		lookAtCompletions(t, filepath.Join(root, "usr/share"))
	})
	t.Run("services", func(t *testing.T) { lookAtServices(t, installedPackage(t, one("*.deb"))) })
	t.Run("rpm", func(t *testing.T) {
		list := output(t, "", "rpm", "-qpl", one("*.rpm"))
		for _, want := range []string{"/usr/bin/sshpace", "/usr/libexec/sshpace/sshpace-hub", "/usr/lib/systemd/system/sshpace-work@.service", "/usr/share/man/man1/sshpace-bench.1.gz", "/usr/share/zsh/site-functions/_sshpace"} {
			if !strings.Contains(list, want+"\n") {
				t.Errorf("no %s in\n%s", want, list)
			}
		}
	})
	t.Run("archive", func(t *testing.T) {
		list := output(t, "", "tar", "-tvzf", one("*.tar.gz"))
		for _, want := range []string{"/sshpace\n", "/sshpace-hub\n", "/systemd/sshpace-hub.service\n", "/man/sshpace.1.gz\n", "/completion/sshpace.fish\n", "/LICENSE\n"} {
			if !strings.Contains(list, want) {
				t.Errorf("no %s in\n%s", want, list)
			}
		}
	})
}

// lookAtServices has systemd read the units of the package, and rate what they may do.
func lookAtServices(t *testing.T, root string) {
	t.Helper()
	said, _ := exec.Command(filepath.Join(root, "usr/bin/sshpace"), "hub", "--credential", "client", "--dir", t.TempDir()).CombinedOutput()
	if !strings.Contains(string(said), "has no keys of a hub") { // it continued as the other program
		t.Errorf("sshpace hub: %s", said)
	}
	units, _ := filepath.Glob(filepath.Join(root, "usr/lib/systemd/system/*.service"))
	if len(units) != 2 {
		t.Fatalf("units: %v", units)
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), strings.Replace(filepath.Base(unit), "@", "@web", 1))
		here := strings.ReplaceAll(string(text), "/usr/bin/sshpace", filepath.Join(root, "usr/bin/sshpace"))
		if err := os.WriteFile(copied, []byte(here), 0o644); err != nil {
			t.Fatal(err)
		}
		if said := output(t, "", "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", copied); said != "" {
			t.Errorf("%s: %s", unit, said)
		}
		output(t, "", "systemd-analyze", "security", "--offline=true", "--threshold=25", "--no-pager", copied)
	}
}

// lookAtManual reads a page as man(1) shows it.
func lookAtManual(t *testing.T, dir string) {
	t.Helper()
	text := output(t, "", "man", "--local-file", "--pager=cat", filepath.Join(dir, "sshpace.1.gz"))
	for _, want := range []string{"NAME", "sshpace-bench(1)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the manual has no %s:\n%s", want, text)
		}
	}
}

// lookAtCompletions loads the scripts into their shells.
func lookAtCompletions(t *testing.T, share string) {
	t.Helper()
	bash := output(t, "", "bash", "-c", `. "$1" && complete -p sshpace`, "bash", filepath.Join(share, "bash-completion/completions/sshpace"))
	if !strings.Contains(bash, "__start_sshpace") {
		t.Errorf("bash: %q", bash)
	}
	fish := output(t, "", "fish", "--no-config", "-c", "source $argv[1]; complete -c sshpace | count", filepath.Join(share, "fish/vendor_completions.d/sshpace.fish"))
	if strings.TrimSpace(fish) == "0" {
		t.Error("fish has no completion")
	}
	zsh := filepath.Join(share, "zsh/vendor-completions/_sshpace")
	output(t, "", "zsh", "-f", "-n", zsh)
	if first, err := os.ReadFile(zsh); err != nil || !strings.HasPrefix(string(first), "#compdef sshpace") {
		t.Errorf("zsh: %v, %.40q", err, first)
	}
}

// What cannot be built is said before anything is.
func TestBuildRefusesUnknownTargets(t *testing.T) {
	cmd := exec.Command("./build", "--dist", t.TempDir(), "plan9/amd64")
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "build: error: unknown target plan9/amd64\nbuild: hint: there are linux/amd64") {
		t.Errorf("%v\n%s", err, out)
	}
}
