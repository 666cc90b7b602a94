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
// called nas in the user's own ssh_config, and two results to compare. They are
// the same, so that the example of a gate passes on a busy machine too.
const prelude = `sshd nas
mkdir home/.ssh
exec sed -i 's/^Host nas$/Host nas nas?/' ssh_config
exec cp ssh_config home/.ssh/config
exec cp known_hosts home/.ssh/known_hosts
exec chmod 700 home home/.ssh
exec chmod 600 home/.ssh/config home/.ssh/known_hosts
exec sshpace bench --rounds 2 --cipher aes128-ctr --mac hmac-sha2-256 --kex curve25519-sha256 --out before.jsonl
exec cp before.jsonl after.jsonl
`

// Every line "$ sshpace ..." of the documentation is run, in order, and must
// succeed. Long budgets are shortened.
func TestDocumentationExamples(t *testing.T) {
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
		var script strings.Builder
		for line := range strings.Lines(string(text)) {
			if command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ sshpace "); ok {
				command = strings.ReplaceAll(command, "--budget 60s", "--budget 6s")
				command = strings.ReplaceAll("sshpace "+command, "'", "''")
				fmt.Fprintf(&script, "exec unshare -m sh -c 'mount --bind home %s && HOME=%s && export HOME && %s'\n", me.HomeDir, me.HomeDir, command)
			}
		}
		if script.Len() > 0 {
			name := strings.TrimSuffix(filepath.Base(file), ".md") + ".txtar"
			if err := os.WriteFile(filepath.Join(dir, name), []byte(prelude+script.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	testscript.Run(t, testscript.Params{Dir: dir, RequireExplicitExec: true, Setup: setupServers, Cmds: serverCommands()})
}
