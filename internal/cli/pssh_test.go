package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/ssh/sshtest"
)

// psshBlocks are the blocks of the hosts in the order of their names, without numbers and times.
func psshBlocks(text string) string {
	text = strings.ReplaceAll(text, "Timed out, Killed by signal 9", "Timed out") // it says either
	head := regexp.MustCompile(`(?m)^\[\d+\] \d\d:\d\d:\d\d `)
	at := head.FindAllStringIndex(text, -1)
	if len(at) == 0 {
		return text
	}
	var blocks []string
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		blocks = append(blocks, text[m[1]:end])
	}
	slices.SortFunc(blocks, func(a, b string) int { return strings.Compare(name(a), name(b)) })
	return text[:at[0][0]] + strings.Join(blocks, "")
}

// name is the word behind [SUCCESS] or [FAILURE].
func name(block string) string {
	list := strings.Fields(block)
	return list[min(1, len(list)-1)]
}

// psshLab has files to copy, and lists of hosts.
func psshLab(t *testing.T, tool string) *sideBySide {
	t.Helper()
	return &sideBySide{
		original: "/usr/bin/parallel-" + tool, name: "parallel-" + tool, normal: psshBlocks,
		restarts: 5, trips: "ignored due to race condition", // Python, of a SIGCHLD that comes while a handler is set
		sshd: sshtest.StartSshd(t, "AcceptEnv PSSH_*"),
		files: func(t *testing.T, dir string) {
			for name, text := range map[string]string{
				"hosts": "# two\n127.0.1.1\n  127.0.1.2  # this one\n\n", "named": "root@127.0.1.1\n127.0.1.2 root\n", "bad": "127.0.1.1 a b\n127.0.1.2\nx@127.0.1.1 y\n",
				"f": "text\n", "d/x": "xx\n", "d/sub/y": "y\n", "empty": "", "dest/old": "a longer text than that of f\n", "dest/sub/z": "z\n",
			} {
				at := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, err := range []error{os.Chmod(filepath.Join(dir, "d/x"), 0o750), os.Symlink("x", filepath.Join(dir, "d/link")), os.Chmod(filepath.Join(dir, "dest/old"), 0o600)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		},
	}
}

// x are the arguments that lead to the test's server.
const x = "-x '-F $DIR/ssh_config' "

var psshMistakes = []call{
	{args: ""}, {args: "-z"}, {args: "-p x a b"}, {args: "-p"}, {args: "--foo=3"}, {args: "--verbose=1 a b"}, {args: "--ho a b", differs: "stderr"},
	{args: "--version"}, {args: "--help", differs: "stdout"}, {args: "a"}, {args: "a b"}, {args: "-h nofile a b"}, {args: "--timeout=x a b"},
}

func TestPsshAsTheOriginal(t *testing.T) {
	l := psshLab(t, "ssh")
	l.compare(t, psshMistakes)
	l.compare(t, []call{
		{args: x + "-h hosts true"}, {args: x + "-h hosts false"}, {args: x + "-h hosts -i echo hello"},
		{args: x + "-h named -i 'echo $PSSH_NODENUM of $PSSH_NUMNODES $PSSH_HOST'"}, {args: x + "-h named -l root -i whoami"},
		{args: x + "-h bad -i whoami"}, {args: x + "-h hosts -h named -i true"}, {args: x + "-H '127.0.1.1 127.0.1.2' -H root@127.0.1.3 -i whoami"},
		{args: x + "-h hosts -g '*.2' -i echo one"}, {args: x + "-h hosts -g '127.0.1.[!2]' -i echo one"}, {args: x + "-h hosts -g none -i echo one"},
		{args: x + "-h hosts -i 'echo out; echo err >&2; exit 3'"}, {args: x + "-h hosts --inline-stdout 'echo out; echo err >&2'"},
		{args: x + "-h hosts -o out -e err 'echo out; echo err >&2'"}, {args: x + "-h hosts --outdir=a/b/out true"}, {args: x + "-H '127.0.1.1 127.0.1.1 127.0.1.1' -o out 'echo $PSSH_NODENUM'"},
		{args: x + "-H 127.0.1.1 -i 'kill -9 $$'"}, {args: x + "-H 127.0.1.1 -t 1 sleep 20"}, {args: x + "-H 127.0.1.1 -t 0 -i sleep 0.1"},
		{args: x + "-H 127.0.1.1 -H 127.0.1.2 -t $LIMIT -i 'echo begun; test ${SSH_CONNECTION#*127.0.1.1} = $SSH_CONNECTION || sleep 600'", differs: "stdout"},
		{args: x + "-h hosts -I -i cat", stdin: "some\ntext\n"}, {args: x + "-h hosts -I -i", stdin: "echo from a shell\nexit 4\n"}, {args: x + "-h hosts -i cat", stdin: "not read\n"},
		{args: x + "-H 127.0.1.1 -P echo line"}, {args: x + "-H 127.0.1.2 -P -o out printf line"}, {args: x + "-P -i -H 127.0.1.1 echo both"},
		{args: x + "-H 127.0.1.1 -p 1 -v -i 'printf noend'"}, {args: x + "-H 127.0.1.1 -i 'printf noend >&2'"},
		{args: x + "-H 127.0.1.1 -O User=nobody9 -i true"}, {args: x + "-H 127.0.1.1 -O Port=1 -i true"}, {args: x + "-H 127.0.1.1:1 -i true"}, {args: x + "-H 127.0.1.1:1 -e err -o out true"},
		{args: x + "-H no.such.host.invalid -i true"}, {args: x + "-H '127.0.1.1 127.0.1.2:1' 'exit 7'"}, {args: x + "-X -v -H 127.0.1.1 true"},
		{args: x + "-X -o -X User=root -H 127.0.1.1 -i whoami"}, {args: "-x '-F $DIR/ssh_config -o \"User root\"' -H 127.0.1.1 -i whoami"}, // Quiet, as ssh's word that the connection is closed comes or not, depending on who is quicker.
		{args: x + "-x '-tt -q' -H 127.0.1.1 -i 'test -t 0 && echo tty'"},
		{args: x + "-x -q -H 127.0.1.1 -i 'echo err >&2; exit 3'"}, {args: x + "-x -4q -H 127.0.1.1:1 -i true"}, {args: x + "-x '-q -oLogLevel=INFO' -H 127.0.1.1 -l nobody9 -i true"},
		{args: x + "-x '-E log' -H 127.0.1.1 -i 'echo err >&2'"}, {args: x + "-x -y -H 127.0.1.1 -i 'echo err >&2'"}, {args: x + "-O LogLevel=FATAL -H '127.0.1.1 127.0.1.2:1' -p 1 -l nobody9 -i true"},
		{args: x + "-x '-oRequestTTY=force -q' -H 127.0.1.1 -i 'test -t 0 && echo tty >&2'"},
		{args: x + "-x 'echo before' -H 127.0.1.1 -i after"}, {args: x + "-H 127.0.1.1 -i echo -i '*' '$HOME' 'a  b'", differs: ""}, {args: x + "-i -H 127.0.1.1 -- echo --"},
		{args: x + "-h hosts echo", env: []string{"PSSH_INLINE=1"}}, {args: x + "echo old", env: []string{"PSSH_HOSTS=hosts", "PSSH_OUTDIR=out"}},
		{args: x + "-h hosts sleep 20", env: []string{"PSSH_TIMEOUT=1"}}, {args: x + "-h hosts -i whoami", env: []string{"PSSH_USER=root", "PSSH_OPTIONS=LogLevel=ERROR"}},
	})
}

func TestPnukeAsTheOriginal(t *testing.T) {
	l := psshLab(t, "nuke")
	l.compare(t, psshMistakes)
	l.compare(t, []call{
		{args: x + "-h hosts no-such-process-of-ours"}, {args: x + "-h hosts -o out -e err no-such-process-of-ours"}, {args: x + "-H 127.0.1.1:1 nothing"},
		{args: x + "-H 127.0.1.1 -e err '-x -y'"}, {args: x + "-H 127.0.1.1 -l nobody9 x"}, {args: x + "-H 127.0.1.1 -e err ''"},
	})
}

func TestPscpAsTheOriginal(t *testing.T) {
	l := psshLab(t, "scp")
	l.compare(t, psshMistakes)
	y := x + "-H 127.0.1.1 -e err "
	l.compare(t, []call{
		{args: y + "f $DIR/dest/new"}, {args: y + "f $DIR/dest"}, {args: y + "f $DIR/dest/"}, {args: y + "f $DIR/dest/old"}, {args: y + "empty $DIR/dest/old"},
		{args: y + "-r d $DIR/dest"}, {args: y + "-r d/ $DIR/dest"}, {args: y + "-r d $DIR/dest/new"}, {args: y + "-r d f empty $DIR/dest"},
		{args: y + "f empty $DIR/dest"}, {args: y + "d/link $DIR/dest"}, {args: y + "d/link $DIR/dest/new"}, {args: y + "d/x $DIR/dest/old"},
		{args: y + "d $DIR/dest", differs: "stderr files"}, {args: y + "f d empty $DIR/dest", differs: "stderr files"}, {args: y + "f $DIR/none/x", differs: "files"}, {args: y + "nofile $DIR/dest"}, {args: y + "f nofile $DIR/dest"},
		{args: y + "f /proc/nothing", differs: "files"}, {args: y + "f f1 $DIR/f", differs: "stderr files"},
		{args: y + "-x -p f $DIR/dest/new"}, {args: y + "-x -pr d $DIR/dest"}, {args: y + "-x '-l 100000' f $DIR/dest/new"}, {args: y + "-X -o -X Compression=no f $DIR/dest/new"}, {args: y + "-x -O f $DIR/dest/new"},
		{args: y + "-x -3 f $DIR/dest/new"}, {args: x + "-h hosts f $DIR/dest/new"}, {args: x + "-h named -p 1 f $DIR/dest/new"}, {args: x + "-H 127.0.1.1:1 -e err f $DIR/dest/new", differs: "files"},
		{args: x + "-H '127.0.1.1 127.0.1.2:1' f $DIR/dest/new"}, {args: x + "-H 127.0.1.1 -l nobody9 f $DIR/dest/new"}, {args: x + "-H 127.0.1.1 -o out -e err f $DIR/dest/new"},
		{args: y + "f dest-at-home"}, {args: y + "f '~/dest-at-home'"}, {args: y + "f ''"}, {args: y + "f .."}, {args: y + "f '$DIR/dest/ x y'"}, {args: x + "-H 127.0.1.1 f $DIR/dest/new", env: []string{"PSSH_ERRDIR=err"}},
		{args: x + "-H 127.0.1.1 d $DIR/dest", env: []string{"PSSH_RECURSIVE=1"}}, {args: y + "-v -t 30 f $DIR/dest/new"}, {args: y + "--recursive --user root d/sub $DIR/dest"},
	})
}

func TestPslurpAsTheOriginal(t *testing.T) {
	l := psshLab(t, "slurp")
	l.compare(t, psshMistakes)
	y := x + "-H 127.0.1.1 -e err -L dest "
	l.compare(t, []call{
		{args: y + "$DIR/f got"}, {args: y + "$DIR/f ."}, {args: y + "$DIR/empty got"}, {args: y + "-r $DIR/d got"}, {args: y + "-r $DIR/d ."}, {args: y + "-r $DIR/d/ got"}, {args: y + "$DIR/d/link got"},
		{args: y + "$DIR/d got", differs: "files"}, {args: y + "$DIR/none got", differs: "files"}, {args: y + "$DIR/f none/got", differs: "files"}, {args: y + "'$DIR/d/*' ."}, {args: y + "-r '$DIR/d*' ."},
		{args: x + "-h hosts -L dest $DIR/f got"}, {args: x + "-h named -L dest $DIR/f got"}, {args: x + "-h hosts -L $DIR/dest $DIR/f got"}, {args: x + "-h hosts -L dest -o out -e err -r $DIR/d $DIR/f", differs: "files"},
		{args: x + "-H 127.0.1.1:1 -L dest $DIR/f got"},
		{args: x + "-H '127.0.1.1 127.0.1.2' -p 1 -L dest/deep $DIR/d/x got"}, {args: y + "-x -p $DIR/d/x got"}, {args: y + "-x -pr $DIR/d got"}, {args: y + "-x '-l 100000' $DIR/d/x got"}, {args: y + "/proc/version got", differs: "files"},
		{args: y + "-x -O $DIR/f got"}, {args: y + "-o out $DIR/f got"}, {args: x + "-H 127.0.1.1 -l nobody9 -L dest $DIR/f got"}, {args: x + "-H 127.0.1.1 $DIR/f got", env: []string{"PSSH_LOCALDIR=dest"}},
		{args: x + "-H 127.0.1.1 -L dest $DIR/d got", env: []string{"PSSH_RECURSIVE=1"}}, {args: y + "-r $DIR/d/sub/ ."}, {args: y + "$DIR/d/sub/../x got"},
	})
}

func TestPrsyncAsTheOriginal(t *testing.T) {
	l := psshLab(t, "rsync")
	l.compare(t, psshMistakes)
	s := "-S '-F $DIR/ssh_config' "
	y := s + "-H 127.0.1.1 -e err "
	l.compare(t, []call{
		{args: y + "f $DIR/dest/new"}, {args: y + "-r d $DIR/dest"}, {args: y + "-r d/ $DIR/dest"}, {args: y + "-a d $DIR/dest/new"}, {args: y + "-azv -t 60 d f $DIR/dest"},
		{args: y + "d $DIR/dest"}, {args: y + "f empty $DIR/dest"}, {args: y + "nofile $DIR/dest"}, {args: y + "-x '--delete -a' d/ $DIR/dest"},
		{args: y + "-X --dry-run -X -r d $DIR/dest"}, {args: y + "-x '--chmod=F600 --no-such' f $DIR/dest"}, {args: y + "-O LogLevel=ERROR -l root -p 1 -o out f $DIR/dest/new"},
		{args: s + "-h hosts f $DIR/dest/new"}, {args: s + "-h named -p 1 -r d $DIR/dest"}, {args: s + "-H '127.0.1.1 127.0.1.2:1' -e err f $DIR/dest/new", differs: "stdout files"},
		{args: y + "d $DIR/dest", env: []string{"PSSH_ARCHIVE=1", "PSSH_COMPRESS=1"}}, {args: s + "-x -q -h hosts -g '*.2' -- f '$DIR/dest/ x y'"}, {args: y + "-x '--rsync-path \"sleep 20; rsync\"' -t 1 f $DIR/dest", differs: "files"},
		// Whether rsync has its own code or that of ssh depends on which of them ends first.
		{args: y + "-O User=nobody9 f $DIR/dest", differs: "stdout files"}, {args: y + "f $DIR/none/x/y", differs: "files"},
	})
}

// TestPsshAsksForAPassword: -A asks once, on the terminal, and all hosts get the answer; a wrong
// one is tried once by us.
func TestPsshAsksForAPassword(t *testing.T) {
	s := sshtest.StartSshdWithSudo(t, "hidden word", "", "PasswordAuthentication yes", "PubkeyAuthentication no")
	dir := t.TempDir()
	fleetFiles(t, dir, s)
	for _, program := range []string{"/usr/bin/parallel-ssh", "sshpace compat parallel-ssh"} {
		for password, want := range map[string]int{"hidden word": 2, "wrong": 0} {
			line := program + " -A -i -H 127.0.1.1 -H 127.0.1.2 -x '-F " + dir + "/ssh_config' echo hi"
			cmd := exec.Command("sh", "-c", typeWhenAsked, password, line, "assword.*: ")
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "NO_COLOR=1", "HOME="+dir)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if (err == nil) != (want > 0) || strings.Count(text, "SUCCESS") != want || strings.Count(text, "\nhi\r\n") != want || strings.Count(text, "FAILURE") != 2-want {
				t.Errorf("%s, %q: %v\n%s", program, password, err, text)
			}
			if strings.Contains(text, password) {
				t.Errorf("%s: the password is on the screen: %s", program, text)
			}
		}
	}
}

// TestPasswordCommandAlone: a command that prints a password is all that a host without keys needs,
// whatever is done there; without it the flag that helps is named.
func TestPasswordCommandAlone(t *testing.T) {
	s := sshtest.StartSshdWithSudo(t, "hidden word", "", "PasswordAuthentication yes", "PubkeyAuthentication no")
	dir := t.TempDir()
	fleetFiles(t, dir, s)
	there := sshtest.OpenDir(t, 0o777)
	for name, test := range map[string]struct{ args, want string }{
		"run":   {"-- echo hi", "hi\n"},
		"copy":  {"known_hosts :" + there + "/%h", "1 file copied"},
		"fetch": {":/etc/hosts got", "1 file copied"},
	} {
		for password, hint := range map[string]string{"": "give the password with --ask-pass", "hidden word": "", "wrong": "the password was refused"} {
			args := []string{name, "-q", "--no-record", "-F", "ssh_config", "-w", "127.0.1.[1-2]"}
			if password != "" {
				args = append(args, "--password-command", "echo "+password)
			}
			cmd := exec.Command("sshpace", append(args, strings.Fields(test.args)...)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if (err == nil) != (hint == "") || !strings.Contains(text, hint) || hint == "" && strings.Count(text, test.want) != 2 {
				t.Errorf("%s with %q: %v\n%s", name, password, err, text)
			}
			if password != "" && strings.Contains(text, password) {
				t.Errorf("%s: the password is shown: %s", name, text)
			}
		}
	}
}
