package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sshpace/internal/cli"
)

// typed runs one command line as typed in a shell, and returns what it printed.
func typed(t *testing.T, line string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(sshpaceProgram(t), strings.Fields(line)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// mistakes are what people type, each with the hint that it gets and the command line that follows
// the hint.
var mistakes = []struct{ line, hint, then string }{
	{"bnech", "did you mean sshpace bench", "bench --list"},
	{"mpssh", "write it as sshpace compat mpssh", "compat mpssh -V"},
	{"Report", "did you mean sshpace report", "report run.jsonl"},
	{"benchmark", "see sshpace --help for the commands", "--help"},
	{"handshake", "write it as sshpace login", "login --help"},
	{"ping web1", "write it as sshpace latency", "latency --help"},
	{"machine", "write it as sshpace limits", "limits --list"},
	{"explain web1", "write it as sshpace config", "config web1"},
	{"bench --mode scp", "write it as sshpace transfer --only", "transfer --only scp --list"},
	{"bench --pairs openssh:openssh", "write it as sshpace programs --only", "programs --only openssh:openssh --list"},
	{"login --factor none", "write it as --only", "login --only none --list"},
	{"limits --runs 3", "write it as --rounds", "limits --rounds 3 --list"},
	{"advise --prove --rounds 3 --budget 5s run.jsonl", "choose one of them", "advise run.jsonl"},
	{"knownhosts lint", "did you mean sshpace known-hosts", "known-hosts --help"},
	{"known-hosts lnt", "did you mean sshpace known-hosts lint", "known-hosts lint --known-hosts empty"},
	{"hosts web[1-", "sets are such as web[1-9]!web3,@db, and files --hosts-file FILE; sshpace hosts -LL lists the groups", "hosts -LL web1"},
	{"verison", "did you mean sshpace version", "version"},
	{"bench --list --ciper aes128-ctr", "did you mean --cipher", "bench --list --cipher aes128-ctr"},
	{"bench --list --ciphers aes128-ctr", "did you mean --cipher", "bench --list --cipher aes128-ctr"},
	{"bench --list --kexx curve25519-sha256", "did you mean --kex", "bench --list --kex curve25519-sha256"},
	{"report --formt json", "did you mean --format", "report --format json run.jsonl"},
	{"bench --list --zzz", "see sshpace bench --help", "bench --help"},
	{"bench --list --cipher aes-128-ctr", "did you mean --cipher aes128-ctr or --cipher aes128-cbc", "bench --list --cipher aes128-ctr"},
	{"bench --list --cipher chacha20", "did you mean --cipher chacha20-poly1305@openssh.com", "bench --list --cipher chacha20-poly1305@openssh.com"},
	{"bench --list --mac hmac-sha256", "did you mean --mac hmac-sha2-256", "bench --list --mac hmac-sha2-256"},
	{"bench --list --cipher hmac-sha2-256", "did you mean --mac hmac-sha2-256", "bench --list --mac hmac-sha2-256"},
	{"bench --list --kex curve25519", "did you mean --kex curve25519-sha256", "bench --list --kex curve25519-sha256"},
	{"bench --list --cipher rot13", "both sides have: ", "bench --list --cipher aes128-ctr"},
	{"bench --list --policy fips", "did you mean --policy fips-140-3", "bench --list --policy fips-140-3"},
	{"bench --list --policy modren", "did you mean --policy modern", "bench --list --policy modern"},
	{"advise --policy fips run.jsonl", "did you mean --policy fips-140-3", "advise --policy fips-140-3 run.jsonl"},
	{"bench --list --budget soon", "see sshpace bench --help", "bench --help"},
	{"bench --list --budget 0", "such as --budget 90s", "bench --list --budget 90s"},
	{"bench --list --direction sideways", "use upload or download or both", "bench --list --direction upload"},
	{"bench --list --direction dowload", "did you mean --direction download", "bench --list --direction download"},
	{"bench --list --data randm", "did you mean --data random", "bench --list --data random"},
	{"bench --list --engine opnssh", "did you mean --engine openssh", "bench --list --engine openssh"},
	{"report --format htlm run.jsonl", "did you mean --format html", "report --format html run.jsonl"},
	{"report --format gif run.jsonl", "formats: text, md, csv, tex, json", "report --format md run.jsonl"},
	{"report --json --format csv run.jsonl", "leave one of them out", "report --json run.jsonl"},
	{"report --rank-by throughputs run.jsonl", "did you mean --rank-by throughput", "report --rank-by throughput run.jsonl"},
	{"report --policy modrn run.jsonl", "did you mean --policy modern", "report --policy modern run.jsonl"},
	{"report --polcy modern run.jsonl", "did you mean --policy", "report --policy modern run.jsonl"},
	{"report --only kex run.jsonl", "add --format csv", "report --only kex --format csv run.jsonl"},
	{"report --top 3 run.jsonl", "add --format classic", "report --top 3 --format classic run.jsonl"},
	{"compare --policy modrn run.jsonl again.jsonl", "did you mean --policy modern", "compare --policy modern run.jsonl again.jsonl"},
	{"compare --fail-on 5% run.jsonl again.jsonl", "use slower: and a percentage", "compare --fail-on slower:500% run.jsonl again.jsonl"},
	{"bench run.jsonl", "to continue it: sshpace bench --resume run.jsonl; to show it: sshpace report run.jsonl", "report run.jsonl"},
	{"bench rnu.jsonl", "did you mean run.jsonl", "report run.jsonl"},
	{"bench full.jsonl", "to make it: sshpace bench --out full.jsonl", "bench --list --out full.jsonl"},
	{"bench --out report.html", "name it report.jsonl; reports of results are written by sshpace report --out report.html", "bench --list --out report.jsonl"},
	{"login --out report.pdf", "name it report.jsonl", "login --list --out report.jsonl"},
	{"limits --out report.csv", "name it report.jsonl", "limits --list --out report.jsonl"},
	{"latency --out seen.md nas", "name it seen.json", "latency --help"},
	{"login --out run.jsonl", "choose another name, or continue it: --resume run.jsonl", "login --help"},
	{"report --anonymize --format jsonl --out new.jsonl run.jsonl", "a result goes to standard output: sshpace report --anonymize --format jsonl", "report --anonymize --format jsonl run.jsonl"},
	{"report --format html --out new.jsonl run.jsonl", "a result goes to standard output: sshpace report --anonymize --format jsonl", "report --anonymize --format jsonl run.jsonl"},
	{"report .", "name a result in it: sshpace report run.jsonl", "report run.jsonl"},
	{"report state/sshpace", "there is no result in it; to measure: sshpace bench", "bench --list"},
	{"compare run.jsonl .", "name a result in it: sshpace report run.jsonl", "report run.jsonl"},
	{"report --format json --out r.html run.jsonl", "leave --format out", "report --out r.html run.jsonl"},
	{"report --format csv --out r.json run.jsonl", "leave --format out", "report --out r.json run.jsonl"},
	{"compare run.jsonl", "name another result, too", "compare run.jsonl again.jsonl"},
	{"compare", "write it as sshpace compare FILE|HOST FILE|HOST...", "compare run.jsonl again.jsonl"},
	{"import", "write it as sshpace import FILE... --out RESULT.jsonl", "import --help"},
	{"known-hosts lookup", "write it as sshpace known-hosts lookup NAME [FILE...]", "known-hosts lookup web1 known"},
	{"known-hosts pin", "write it as sshpace known-hosts pin NAME --to ADDRESS", "known-hosts pin --help"},
	{"advise run.jsonl again.jsonl", "write it as sshpace advise [FILE|HOST]", "advise run.jsonl"},
	{"version please", "write it as sshpace version", "version"},
	{"man bench", "to read about it: sshpace help bench", "help bench"},
	{"help frobnicate", "see sshpace --help for the commands", "help known-hosts lint"},
	{"help bnech", "did you mean sshpace bench", "help bench"},
	{"help known-hosts lnt", "did you mean sshpace known-hosts lint", "help known-hosts lint"},
	{"completion bsh", "did you mean sshpace completion bash", "completion bash"},
	{"completion", "write it as sshpace completion SHELL", "completion zsh"},
	{"completion bash please", "write it as sshpace completion SHELL", "completion fish"},
	{"bench --list --budget", "write it as --budget DURATION", "bench --list --budget 90s"},
	{"history", "write it as sshpace run --history", "run --history"},
	{"exec web1 uptime", "write it as sshpace run", "run -w web1 --list uptime"},
	{"run -w web[1-3] --serial 10 uptime", "write it as --batch N", "run -w web[1-3] --batch 10 --list uptime"},
	{"run -w web1 --forks 10 uptime", "write it as --fanout N", "run -w web1 --fanout 10 --list uptime"},
	{"run -w web1 --stop-on-error uptime", "write it as --fail-fast", "run -w web1 --fail-fast --list uptime"},
	{"run -w web1 -K uptime", "write it as --sudo", "run -w web1 --sudo --list uptime"},
	{"copy -w web1 -K known :/tmp", "write it as --sudo", "copy -w web1 --sudo --list known :/tmp"},
	{"run -w web1 --retry-failed", "write it as --rerun failed,unreachable", "run --history"},
	{"copy --rerun failed known :", "write it as --hosts @last:failed", "copy --hosts web1 --list known :"},
	{"copy -w web1 --hub unix --pool web known :/tmp", "write it as sshpace run --hub ADDRESS", "run -w web1 --list uptime"},
	{"fetch -w web1 --check :a b", "write it as --list", "fetch -w web1 --list :a b"},
	{"run -w web1 -u root uptime", "write it as --login USER", "run -w web1 --login root --list uptime"},
	{"run -w web1 --outdir out uptime", "write it as --dir DIR", "run -w web1 --dir out --list uptime"},
	{"run -w web1 --env A=b uptime", "write it as sshpace run -w SET -- env NAME=VALUE COMMAND", "run -w web1 --list -- env A=b uptime"},
	{"run -w ^known uptime", "sets are such as web[1-9]!web3,@db, and files --hosts-file FILE", "run --hosts-file known --list uptime"},
	{"run --inventory inventory.ini uptime", "name them before the command: -w SET, --hosts-file FILE, or --inventory FILE -w @GROUP", "run --inventory inventory.ini -w @all --list uptime"},
	{"run -w web1 web2 web3 -- uptime", "hosts are one word: -w web1,web2 or -w 'web[1-2]'; if it is the command, write -- before it", "run -w web[1-2] --list -- uptime"},
	{"bench -Z", "see sshpace bench --help", "bench --help"},
}

// A file of hosts may be named as it is typed.
func TestKnownHostsFilesAreArguments(t *testing.T) {
	desk(t)
	for _, line := range []string{"known-hosts lint known", "known-hosts lookup web1 known", "known-hosts split --no-resolve known", "known-hosts bench --rounds 1 -q --json known"} {
		exit, stdout, stderr := typed(t, line)
		words := strings.Fields(line)
		_, same, _ := typed(t, strings.Join(words[:len(words)-1], " ")+" --known-hosts known")
		if exit != cli.ExitOK || same == "" != (stdout == "") || !strings.Contains(line, "bench") && same != stdout {
			t.Errorf("%s: exit %d, %s%s\twant:\n%s", line, exit, stdout, stderr, same)
		}
	}
}

// wrong are values that no flag takes, whatever the command that has it.
var wrong = map[string]string{
	"only": "nosuch", "ssh": "/nosuch/ssh", "sshd": "/nosuch/sshd", "openssl": "/nosuch/openssl", "rounds": "-1", "budget": "soon", "size": "much", "policy": "nosuch",
	"format": "nosuch", "rank-by": "nosuch", "config": "/nosuch/config", "port": "70000", "login": "-x", "direction": "sideways", "engine": "nosuch", "jump": "-x", "option": "Port=x",
	"connect-timeout": "soon", "kex": "nosuch", "cipher": "nosuch", "mac": "nosuch", "from": "nosuch", "color": "nosuch", "fanout": "-1", "hosts": "web[", "count": "-1",
}

// The same mistake is a usage error in every command, with a hint.
func TestSameMistakeSameCode(t *testing.T) {
	desk(t)
	t.Setenv("HOME", t.TempDir())
	for path, rest := range map[string]string{
		"bench": "", "transfer": "", "programs": "", "login": "", "latency": "root@127.0.0.1:1", "limits": "", "doctor": "", "advise": "--prove run.jsonl", "config": "web1",
		"known-hosts bench": "--known-hosts empty", "report": "run.jsonl --out r.csv", "compare": "run.jsonl again.jsonl --out c.csv", "import": "run.jsonl --out i.jsonl",
		"run": "-w root@127.0.0.1:1 true", "copy": "-w root@127.0.0.1:1 empty :/tmp", "hosts": "web1",
	} {
		_, help, _ := typed(t, path+" --help")
		for flag, value := range wrong {
			if !strings.Contains(help, "--"+flag+" ") {
				continue
			}
			line := path + " --" + flag + "=" + value + " " + rest
			exit, stdout, stderr := typed(t, line)
			if exit != cli.ExitUsage || !strings.Contains(stderr, "sshpace: error: ") || !strings.Contains(stderr, "\nsshpace: hint: ") {
				t.Errorf("%s: exit %d, %.200s%.300s", line, exit, stdout, stderr)
			}
		}
	}
}

// Every command that takes a host takes it in all the forms that ssh has.
func TestFormsOfHosts(t *testing.T) {
	desk(t)
	for _, command := range []string{"bench", "transfer --only pipe", "login", "latency", "doctor", "config", "advise", "report", "compare run.jsonl"} {
		for _, form := range []string{"root@127.0.0.1:1", "ssh://root@127.0.0.1:1", "root@[127.0.0.1]:1"} {
			exit, stdout, stderr := typed(t, command+" -F none "+form)
			if strings.HasPrefix(command, "report") || strings.HasPrefix(command, "compare") {
				exit, stdout, stderr = typed(t, command+" "+form)
			}
			if said := stdout + stderr; strings.Contains(said, "write it as") || !regexp.MustCompile(`127\.0\.0\.1\]?:1\b`).MatchString(said) || exit == cli.ExitOK != (command == "config") {
				t.Errorf("%s %s: exit %d, %s", command, form, exit, said)
			}
		}
	}
}

// What is no mistake, and what it is the same as.
var synonyms = []struct{ line, same string }{
	{"bench --list --cipher aes128-gcm", "bench --list --cipher aes128-gcm@openssh.com"},
	{"bench --list --cipher AES128-CTR", "bench --list --cipher aes128-ctr"},
	{"bench --list --cipher aes128-ctr,aes256-ctr", "bench --list --cipher aes128-ctr --cipher aes256-ctr"},
	{"bench --list --cipher aes*-gcm", "bench --list --cipher aes*-gcm@openssh.com"},
	{"bench --list --mac umac-64-etm", "bench --list --mac umac-64-etm@openssh.com"},
	{"bench --list --policy FIPS-140-3", "bench --list --policy fips-140-3"},
	{"bench --list --budget 30", "bench --list --budget 30s"},
	{"--version", "version"},
	{"-V", "version"},
	{"compare --normalize aes128-gcm run.jsonl again.jsonl", "compare --normalize aes128-gcm@openssh.com run.jsonl again.jsonl"},
}

// desk is a directory with what the command lines name.
func desk(t *testing.T) {
	t.Helper()
	run, err := os.ReadFile("testdata/recorded/before.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"run.jsonl": run, "again.jsonl": run, "known": []byte("web1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM54/JbFlZ1bZBCpnnO1bQc2vsNOdlUN0W0J9XQ8U5mW\n"), "empty": nil, "state/sshpace/empty": nil, "inventory.ini": []byte("[web]\nweb1\n")} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Chdir(dir)
}

func TestMistakes(t *testing.T) {
	desk(t)
	for _, m := range mistakes {
		exit, _, stderr := typed(t, m.line)
		_, hint, _ := strings.Cut(stderr, "sshpace: hint: ")
		if exit != cli.ExitUsage || !strings.Contains(stderr, "sshpace: error: ") || !strings.HasPrefix(hint, m.hint) {
			t.Errorf("%s: exit %d, %s\twant the hint %q", m.line, exit, stderr, m.hint)
		}
		if exit, _, stderr := typed(t, m.then); exit != cli.ExitOK {
			t.Errorf("%s, then %s: exit %d, %s", m.line, m.then, exit, stderr)
		}
	}
}

// What the system refuses is told with the name that was typed.
func TestRefusedFiles(t *testing.T) {
	desk(t)
	for _, m := range []struct {
		line, says, hint, then string
		exit                   int
	}{
		{"report rnu.jsonl", "rnu.jsonl: no such file", "did you mean run.jsonl", "report run.jsonl", cli.ExitUsage},
		{"import rnu.log --out i.jsonl", "rnu.log: no such file", "name the log", "report run.jsonl", cli.ExitUsage},
		{"report run.jsonl --out nowhere/r.html", "there is no directory nowhere for r.html", "make it first", "report run.jsonl --out r.html", cli.ExitUsage},
	} {
		exit, _, stderr := typed(t, m.line)
		if exit != m.exit || !strings.Contains(stderr, m.says) || !strings.Contains(stderr, "hint: "+m.hint) || strings.Contains(stderr, ".sshpace-") {
			t.Errorf("%s: exit %d, %s", m.line, exit, stderr)
		}
		if exit, _, stderr := typed(t, m.then); exit != cli.ExitOK {
			t.Errorf("%s: exit %d, %s", m.then, exit, stderr)
		}
	}
}

func TestSynonyms(t *testing.T) {
	desk(t)
	for _, s := range synonyms {
		exit, got, stderr := typed(t, s.line)
		if _, want, _ := typed(t, s.same); exit != cli.ExitOK || got != want || got == "" {
			t.Errorf("%s: exit %d, %s%s\twant as for %s:\n%s", s.line, exit, got, stderr, s.same, want)
		}
	}
}

// Results are never written over; what was made from them is made again.
func TestOverwriting(t *testing.T) {
	desk(t)
	const log = "cipher: aes192-ctr mac: hmac-sha1 kex: ecdh-sha2-nistp256 - 6 seconds\n"
	for _, o := range []struct {
		line, file string
		replaced   bool
	}{
		{"report run.jsonl --out r.html", "r.html", true},
		{"report run.jsonl --out r.csv", "r.csv", true},
		{"compare run.jsonl again.jsonl --out c.md", "c.md", true},
		{"bench --out again.jsonl", "again.jsonl", false},
		{"login --out again.jsonl", "again.jsonl", false},
		{"limits --out again.jsonl", "again.jsonl", false},
		{"import log.txt --size 1G --out again.jsonl", "again.jsonl", false},
		{"report --anonymize --format jsonl run.jsonl --out again.jsonl", "again.jsonl", false},
	} {
		if err := os.WriteFile("log.txt", []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		before := []byte("what was there")
		if !o.replaced {
			before = readFile(t, "run.jsonl")
		} else if err := os.WriteFile(o.file, before, 0o600); err != nil {
			t.Fatal(err)
		}
		exit, _, stderr := typed(t, o.line)
		if changed := !bytes.Equal(before, readFile(t, o.file)); changed != o.replaced || o.replaced != (exit == cli.ExitOK) {
			t.Errorf("%s: exit %d, %s is replaced: %v, want %v\n%s", o.line, exit, o.file, changed, o.replaced, stderr)
		}
		said := strings.Contains(stderr, "exists already") || strings.Contains(stderr, "would be a result")
		if !o.replaced && !(said && strings.Contains(stderr, "sshpace: hint: ")) {
			t.Errorf("%s: does not say why, or what to do: %s", o.line, stderr)
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// --json is JSON on standard output and nothing else, whatever the command; where there is
// --format, too, both mean the same.
func TestJSONEverywhere(t *testing.T) {
	desk(t)
	for _, line := range []string{
		"report run.jsonl", "compare run.jsonl again.jsonl", "advise run.jsonl", "bench --list", "version", "hosts -w web[1-3]", "config web1",
		"known-hosts lint --known-hosts empty", "known-hosts bench --known-hosts empty --rounds 1",
	} {
		_, stdout, stderr := typed(t, line+" --json")
		if !json.Valid([]byte(stdout)) || stdout == "" {
			t.Errorf("%s --json: %.200s\n%s", line, stdout, stderr)
		}
		if _, same, stderr := typed(t, line+" --format json"); !strings.Contains(stderr, "unknown flag") && same != stdout {
			t.Errorf("%s --format json is something else: %.200s\n%s", line, same, stderr)
		}
	}
}
