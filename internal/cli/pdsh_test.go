package cli_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sshpace/internal/base/seedtest"
	"sshpace/internal/ssh/sshtest"
)

// pdshLines are the lines in any order of the hosts, without what names the program.
func pdshLines(text string) string {
	text = regexp.MustCompile(`(?m)^(Full program pathname|Remote program path)\t.*\n`).ReplaceAllString(text, "")
	return sortedLines(regexp.MustCompile(`\b\d+ sec\b`).ReplaceAllString(text, "N sec")) // whole seconds of a clock that ticks in between
}

// pdshLab has lists of hosts.
func pdshLab(t *testing.T) *sideBySide {
	t.Helper()
	return &sideBySide{
		original: "/usr/bin/pdsh", name: "pdsh", normal: pdshLines, sshd: sshtest.StartSshd(t), restarts: 5,
		env: []string{"PDSH_SSH_ARGS_APPEND=-F $DIR/ssh_config", "PDSH_RCMD_TYPE=ssh"},
		files: func(t *testing.T, dir string) {
			for name, text := range map[string]string{
				"list": "# two\n127.0.1.[1-2]\n\n", "names": "a[1-3]\nb # one\n c d\ne,f\n",
				"genders": "a1 web,rack=1\na[2-4] web,rack=2\nb1 db,rack=1,pdsh_all_skip\n# c\nc1\na2 old\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
}

func TestPdshAsTheOriginal(t *testing.T) {
	l := pdshLab(t)
	list := func(args string) call { return call{args: "-q -R exec " + args} }
	here := func(args string) call { return call{args: "-R exec " + args} }
	g := "-F $DIR/genders "
	l.compare(t, []call{
		// over ssh
		{args: "-w 127.0.1.[1-2] 'echo out; echo err >&2'"}, {args: "-w 127.0.1.[1-2] 'exit 3'"}, {args: "-S -w 127.0.1.[1-2] 'exit 3'"}, {args: "-S -w 127.0.1.1 'exit ${SSH_CONNECTION%% *}'", differs: "stderr"},
		{args: "-N -w 127.0.1.1,127.0.1.2 'echo hi'"}, {args: "-S -w 127.0.1.1 'kill -9 $$'"}, {args: "-w ^list hostname"}, {args: "hostname", env: []string{"WCOLL=list"}},
		{args: "-w - -f 1 'echo $((6*7))'", stdin: "127.0.1.1\n127.0.1.2\n"}, {args: "-l root -w 127.0.1.1 whoami"}, {args: "-w root@127.0.1.1 whoami"}, {args: "-w ssh:root@127.0.1.1 whoami"},
		{args: "-l nobody9 -S -w 127.0.1.1 whoami"}, {args: "-S -w nosuch.invalid whoami"}, {args: "-w 127.0.1.1 echo %h %u %n %% %x"}, {args: "-w 127.0.1.1 'echo $PATH'", env: []string{"DSHPATH=/usr/bin"}},
		{args: "-t 5 -w 127.0.1.1 true"}, {args: "-w 127.0.1.1,127.0.1.1 echo twice"}, {args: "-w 127.0.1.1 echo 'a  b' '$HOME'"}, {args: "-w 127.0.1.[1-3] -x 127.0.1.2 echo"},
		{args: "-w 127.0.1.1 'echo a; echo; echo b'"}, {args: "-b -w 127.0.1.1 echo -n -e"}, {args: "-w web1,web2,127.0.1.1 echo"},
		{args: "-S -w 127.0.1.1 'echo err >&2; exit 3'", env: []string{"PDSH_SSH_ARGS_APPEND=-F $DIR/ssh_config -q"}}, {args: "-S -l nobody9 -w 127.0.1.1 true", env: []string{"PDSH_SSH_ARGS_APPEND=-F $DIR/ssh_config -qq"}},
		{args: "-w 127.0.1.1 'echo err >&2'", env: []string{"PDSH_SSH_ARGS_APPEND=-F $DIR/ssh_config -E log"}}, {args: "-w 127.0.1.1 'echo err >&2'", env: []string{"PDSH_SSH_ARGS_APPEND=-F $DIR/ssh_config -y"}},
		{args: "-w 127.0.1.1 'test -t 0 && echo tty >&2'", env: []string{"PDSH_SSH_ARGS_APPEND=-F $DIR/ssh_config -q -oRequestTTY=force"}},
		{args: "-R exec -t 10 -w a echo %h"}, {args: "-R exec -t 11 -w a echo %h"}, {args: "-R exec -w a echo %h", env: []string{"PDSH_CONNECT_TIMEOUT=11"}},
		{args: "-S -w 127.0.1.1 whoami", env: []string{"PDSH_SSH_ARGS_APPEND=-F $DIR/ssh_config -oUser=nobody9"}}, {args: "-S -w root@127.0.1.1 -l root whoami", env: []string{"PDSH_SSH_ARGS_APPEND=-F $DIR/ssh_config -oUser=nobody9"}},
		// on this machine
		here("-w a[1-3] -f 2 echo %h %u %n"), here("-w a.example.com,b.example.com echo %h"), here("-w a.example.com,b.example.org echo %h"), here("-w a.example.com false"), here("-w a.x,10.0.0.5,1a.b echo %h"),
		here("-S -w a,b sh -c 'exit %n'"), here("-S -w a sh -c 'kill -9 $$'"), here("-S -w a /nonexist"), here("-l bob -w joe@a1,b1 echo %u"), here("-w a1 echo %% %x %h%n"), here("-w a1,exec:b1 echo %h"),
		here("-w a[1-3],-a2 echo %h"), here("-w a[1-3] -w -a[2-3] echo"), here("-w a1,,b1 echo"), here("-w ' a1 , b1 ' echo"), here("-x a echo"), here("-u 5 -w a echo x"), here("-S -w a -d true"),
		{args: "-R exec -S -w a -u 1 sleep 5", differs: "stderr"},
		// lists of hosts
		{args: "-Q -R exec -w a[1-3],b7,a9"}, {args: "-Q -R exec -w joe@n[08-10]-ib,x -x n09-ib ls -l"}, {args: "-Q -q -R exec -w a[1-3]"}, {args: "-q -Q -R exec -w a[1-3]"},
		list("-w a[8-11],a9"), list("-w a[08-11]"), list("-w b3,a3,a1,a2"), list("-w n[1-2]-ib,n3-ib"), list("-w a1,a001,a002,a2"), list("-w a[1,3-5,9] ls -l 'x y'"), list("-w a[1-2]b[1-2]"), list("-w a1,a1,b2"),
		list("-w a[1-9],-a3,/a[1-5]/,-/5/"), list("-w a[1-3] -x /[12]$/"), list("-w a[1-3] -x a[1-2]"), list("-w ^names"), list("-w ^names,-^list"), list("-w a -x ^names"), list("-w joe@a1,bob@b[1-2]"), list("-w a1 -w b1 -w c1"), list("-w ^none"), list("-w '' "),
		list("-w a,b -x a,b"), {args: "-q -R exec -w a[3-1]", differs: "stderr"}, list("-w a -l joe -f 3 -t 5"), list("-w a -l joe -f 3 -u 7 -S -b -N -d"), {args: "-q -w a -t 5 -l bob"}, {args: "-q -w a", env: []string{"FANOUT=7", "PDSH_CONNECT_TIMEOUT=3", "PDSH_COMMAND_TIMEOUT=4", "DSHPATH=/x"}},
		list(g + "-g web"), list(g + "-g rack=1"), list(g + "-g web,db"), list(g + "-A"), list(g + "-a"), list(g + "-g web -X old"), list(g + "-A -X rack=2"), list(g + "-g web&&rack=1"), list(g + "-g web||db"), list(g + "-g web--old"),
		list(g + "-g ~web"), list(g + "-g (web||db)&&rack=1"), list(g + "-w a1,b1 -g db"), list(g + "-a -g web"), list(g + "-g nope"), list(g + "-i -g web"), list("-F $DIR/none -g web"),
		{args: "-q -g web", env: []string{"PDSH_GENDERS_FILE=$DIR/genders"}}, {args: "-q -F genders -g web", env: []string{"PDSH_GENDERS_DIR=$DIR"}},
		// commands from standard input
		{args: "-R exec -w a", stdin: "echo %h\n\nquit\n"}, {args: "-R exec -w a[1-2]", stdin: "echo hi\necho there\nexit\nnever\n"}, {args: "-w 127.0.1.1", stdin: "echo hi\nexit\n"},
		// mistakes
		{args: "-w a -Z", differs: "stderr"}, {args: "-w", differs: "stderr"}, {args: "-h", differs: "stderr"}, {args: "true"}, {args: "-f x -w a true"}, {args: "-R foo -w a true"}, {args: "-w foo:a true", differs: "stderr"},
		{args: "-w a true", env: []string{"FANOUT=x"}}, {args: "-V", differs: "stdout"}, {args: "-L", differs: "stdout stderr"}, {args: "-w a[1-99999999] -q", differs: "stderr"}, {args: "-q -w a,/(/", differs: "stderr"},
	})
}

// pdshWords are command lines of pdsh, for programs here and for hosts.
var pdshWords = sshtest.Grammar{
	"line":    {"-q -R exec <lists>", "-Q -R exec <lists>", "-Q -R exec <lists> <here>", "-R exec <flags><lists> <here>", "<remote><servers> <there>", "<remote><servers> <there>", "<remote>-R ssh <servers> <there>"},
	"lists":   {"-w <set>", "-w <set>", "-w <set> -x <set>", "-w <set> -w <set>", "-w <set>,-<item>", "-w <set>,/<digit>/", "-w <set> -x /<digit>$/", "-w <set>,-/[12]/"},
	"set":     {"<item>", "<item>,<item>", "<item>,<item>,<item>"},
	"item":    {"a[1-5]", "a[08-11]", "b3", "n[1-2]-ib", "a<digit>", "c[1,3-5,9]", "joe@b[1-2]", "web.example.com", "web<digit>.example.com", "10.0.0.[1-3]", "a[1-2]b[1-2]", "r0<digit>", "a[1-9]", "x-[9-12]"},
	"digit":   {"1", "2", "3", "9"},
	"flags":   {"", "", "-f 1 ", "-f 2 ", "-N ", "-S ", "-l joe ", "-u 9 ", "-b ", "-S -N "},
	"here":    {"echo %h %u %n", "sh -c 'exit %n'", "false", "true", "echo hi there", "echo %%", "sh -c 'echo out; echo err >&2'"},
	"servers": {"-w 127.0.1.[1-2]", "-w 127.0.1.1,127.0.1.3", "-w 127.0.1.[1-4] -x 127.0.1.[2-3]", "-w web1,127.0.1.1", "-w root@127.0.1.1", "-w web[1-3]", "-w 127.0.1.[1-3],-127.0.1.2", "-w ^list", "-w 127.0.1.1,root@127.0.1.2"},
	"remote":  {"", "", "-S ", "-N ", "-f 1 ", "-t 9 ", "-u 9 ", "-l root ", "-S -f 2 ", "-b ", "-S -N -f 1 "},
	"there":   {"hostname", "'exit 3'", "whoami", "'echo out; echo err >&2'", "echo %h %n", "echo a 'b  c'", "'echo $((6*7))'", "true", "'echo a; echo; exit 2'"},
}

// TestPdshRandomly compares random command lines.
func TestPdshRandomly(t *testing.T) {
	count, seed := seedtest.Cases(t, 12)
	var calls []call
	for n := range count {
		calls = append(calls, call{args: pdshWords.Make(rand.New(rand.NewPCG(seed, uint64(n))), "<line>")})
	}
	pdshLab(t).compare(t, calls)
}
