package cli_test

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// prelude makes what the examples of the documentation take for granted: a home directory with
// nothing but hosts called nas, nas1 and so on in ssh_config and known_hosts, over a link on which
// to compute is hardly any work.
const prelude = `sshd server
narrow nas server 20e6
mkdir home/.ssh
exec sed -i 's/^Host nas$/Host nas nas?/' ssh_config
cp ssh_config home/.ssh/config
cp known_hosts home/.ssh/known_hosts
exec chmod 700 home home/.ssh
chmod 600 home/.ssh/config
env XDG_STATE_HOME=
`

// shorter are examples that show no more when they are long: what has a budget gets a round, for
// which there is time enough on any machine. What scripts measure, too (policies, both directions,
// all that transfer knows), is listed, or one kind of it is measured.
var shorter = strings.NewReplacer("bench --budget 3s --policy", "bench --list --budget 3s --policy", "--only pipe --rtt", "--only pipe --kex curve25519-sha256 --rtt",
	"--cipher 'aes128-*' --mac", "--cipher 'aes128-ctr*' --mac", "pipe,scp,rsync,forward --cipher aes128-gcm", "pipe,rsync --cipher aes128-gcm --kex curve25519-sha256",
	"bench --budget 60s", "bench --rounds 1 --cipher aes128-gcm --kex curve25519-sha256",
	"bench --budget 20s --out", "bench --rounds 1 --engine native --cipher aes128-gcm --kex curve25519-sha256 --out",
	"bench --budget 20s", "bench --rounds 1 --cipher aes128-gcm --kex curve25519-sha256", "part.jsonl --budget 6s", "part.jsonl --rounds 2",
	"--budget 5s", "--rounds 1", "--budget 3s", "--rounds 1", "--prove --rounds 6 --size 16M", "--prove --only scp --rounds 2 --size 1M",
	"--rounds 1 --size 16M", "--rounds 1 --size 8M --rate 30MB/s", "--rounds 2 --size 16M", "--rounds 1 --size 8M --rate 30MB/s",
	"--exhaustive --size 16M", "--exhaustive --size 2M", "--files 100x10K", "--files 20x10K")

// Every line "$ ..." of the documentation is run, in order within its page and from an empty home
// directory, and must succeed.
func TestDocumentationExamples(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir, pages := t.TempDir(), 0
	for _, pattern := range []string{"../../doc/*.md", "../../doc/guide/*.md", "../../README.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script := examples(string(text), me.HomeDir)
			if script == "" {
				continue
			}
			pages++
			page := filepath.Join(dir, strings.TrimSuffix(filepath.Base(file), ".md")+".txtar")
			if err := os.WriteFile(page, []byte(prelude+script), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if pages < 8 {
		t.Errorf("only %d pages have examples", pages)
	}
	testscript.Run(t, testscript.Params{Dir: dir, RequireExplicitExec: true, Setup: setupServers, Cmds: serverCommands()})
}

// examples is a script of a page's examples, run in the home directory of the prelude. None has
// nothing to do.
func examples(page, home string) string {
	var script strings.Builder
	for line := range strings.Lines(page) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok {
			command = shorter.Replace(command)
			fmt.Fprintf(&script, "# %s\nexec unshare -m sh -c 'mount --bind home %s && export HOME=%s && cd && %s'\n! stderr 'nothing left to do'\n",
				command, home, home, strings.ReplaceAll(command, "'", "''"))
		}
	}
	return script.String()
}
