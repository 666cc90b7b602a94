package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sshpace/internal/ssh/sshtest"
)

// pdshLines are the lines in any order of the hosts, without what names the program.
func pdshLines(text string) string {
	return sortedLines(regexp.MustCompile(`(?m)^(Full program pathname|Remote program path)\t.*\n`).ReplaceAllString(text, ""))
}

func TestPdshAsTheOriginal(t *testing.T) {
	l := &sideBySide{
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
		// on this machine
		here("-w a[1-3] -f 2 echo %h %u %n"), here("-w a.example.com,b.example.com echo %h"), here("-w a.example.com,b.example.org echo %h"), here("-w a.example.com false"), here("-w a.x,10.0.0.5,1a.b echo %h"),
		here("-S -w a,b sh -c 'exit %n'"), here("-S -w a sh -c 'kill -9 $$'"), here("-S -w a /nonexist"), here("-l bob -w joe@a1,b1 echo %u"), here("-w a1 echo %% %x %h%n"), here("-w a1,exec:b1 echo %h"),
		here("-w a[1-3],-a2 echo %h"), here("-w a[1-3] -w -a[2-3] echo"), here("-w a1,,b1 echo"), here("-w ' a1 , b1 ' echo"), here("-x a echo"), here("-u 5 -w a echo x"), here("-S -w a -d true"),
		{args: "-R exec -S -w a -u 1 sleep 5", differs: "stderr"},
		// lists of hosts
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
