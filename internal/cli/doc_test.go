package cli_test

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// prelude makes what the examples of the documentation take for granted: a host
// called nas in the user's own ssh_config, over a link on which to compute is hardly any
// work, and results, whose key exchanges are quick. Two of them are the same, so that the
// example of a gate passes on a busy machine too.
const prelude = `sshd server
narrow nas server 20e6
mkdir home/.ssh
exec sed -i 's/^Host nas$/Host nas nas?/' ssh_config
exec cp ssh_config home/.ssh/config
exec cp known_hosts home/.ssh/known_hosts
exec chmod 700 home home/.ssh
exec chmod 600 home/.ssh/config home/.ssh/known_hosts
exec sh -c 'umask 077; sed "s/.upload.,.download./\"upload\"/; s/sntrup761x25519-sha512\(@openssh.com\)*/ecdh-sha2-nistp256/g" $RECORDED/before.jsonl | tee before.jsonl >after.jsonl'
`

// shorter are examples that show no more when they are long: what has a budget gets a round,
// for which there is time enough on any machine. What scripts measure, too (policies, both
// directions, all that transfer knows), is listed, or one kind of it is measured.
var shorter = strings.NewReplacer("bench --budget 3s --policy", "bench --list --budget 3s --policy", "--only pipe --rtt", "--only pipe --kex curve25519-sha256 --rtt",
	"--cipher 'aes128-*' --mac", "--cipher 'aes128-ctr*' --mac", "pipe,scp,rsync,forward --cipher aes128-gcm", "pipe,rsync --cipher aes128-gcm --kex curve25519-sha256",
	"bench --budget 60s", "bench --rounds 1 --cipher aes128-gcm --kex curve25519-sha256",
	"bench --budget 20s", "bench --rounds 1 --cipher aes128-gcm --kex curve25519-sha256", "part.jsonl --budget 3s", "part.jsonl --rounds 2",
	"--budget 5s", "--rounds 1", "--budget 3s", "--rounds 1", "--prove --rounds 6 --size 16M", "--prove --only scp --rounds 2 --size 1M",
	"--rounds 1 --size 16M", "--rounds 1 --size 8M --rate 30MB/s", "--rounds 2 --size 16M", "--rounds 1 --size 8M --rate 30MB/s",
	"--exhaustive --size 16M", "--exhaustive --size 2M", "--files 100x10K", "--files 20x10K")

// Every line "$ sshpace ..." of the documentation is run, in order within its chapter,
// and must succeed.
func TestDocumentationExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../doc/*.md")
	if err != nil {
		t.Fatal(err)
	}
	guides, err := filepath.Glob("../../doc/guide/*.md")
	if err != nil || len(guides) == 0 {
		t.Fatal(err, "no guides")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, file := range slices.Concat(files, guides, []string{"../../README.md"}) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		for i, chapter := range strings.Split(string(text), "\n## ") {
			if script := examples(chapter, me.HomeDir); script != "" {
				file := filepath.Join(dir, fmt.Sprintf("%s_%d.txtar", name, i))
				if err := os.WriteFile(file, []byte(prelude+script), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	testscript.Run(t, testscript.Params{Dir: dir, RequireExplicitExec: true, Setup: setupServers, Cmds: serverCommands()})
}

// examples is a script of a chapter's examples, run in the home directory of the prelude.
func examples(chapter, home string) string {
	var script strings.Builder
	for line := range strings.Lines(chapter) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ sshpace "); ok {
			command = shorter.Replace("sshpace " + command)
			fmt.Fprintf(&script, "# %s\nexec unshare -m sh -c 'mount --bind home %s && HOME=%s && export HOME && %s'\n", command, home, home, strings.ReplaceAll(command, "'", "''"))
		}
	}
	if strings.Contains(script.String(), "result.jsonl") && !strings.Contains(script.String(), "--out result.jsonl") {
		return "cp before.jsonl result.jsonl\n" + script.String()
	}
	return script.String()
}
