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

// clushText is a text without the counter that the original draws, also into pipes.
func clushText(text string) string {
	return regexp.MustCompile(`clush: +\d+/\d+(?: write: \S+ \S+/s)? *`).ReplaceAllString(text, "")
}

// clushLines are the lines in any order of the hosts.
func clushLines(text string) string { return sortedLines(clushText(text)) }

// clushLab has groups, and files to copy.
func clushLab(t *testing.T) *sideBySide {
	t.Helper()
	return &sideBySide{
		original: "/usr/bin/clush", name: "clush", normal: clushText, sshd: sshtest.StartSshd(t), env: []string{"CLUSTERSHELL_CFGDIR=$DIR/etc"},
		files: func(t *testing.T, dir string) {
			for name, text := range map[string]string{
				"etc/clush.conf":  "[Main]\nfanout: 7\nconfdir: $CFGDIR/more\nssh_options: -F " + dir + "/ssh_config\n  -oLogLevel=INFO\n# c\n",
				"etc/more/x.conf": "[Main]\nscp_path = scp\n",
				"etc/groups.conf": "[Main]\ndefault = roles\nautodir: $CFGDIR/groups.d\nconfdir: $CFGDIR/groups.conf.d none\n[rows]\nmap: echo 127.0.1.[1-$GROUP]\nlist: echo 2 3\n" +
					"[one,two]\nmap: sed -n 's/^$GROUP:\\(.*\\)/\\1/p' $CFGDIR/list; test $GROUP != bad\nall: sed -n 's/^$SOURCE=//p' list\n[bare]\nmap: echo 127.0.1.1\n",
				"etc/groups.conf.d/a.conf": "[part]\nmap: x=1\n  cat ${CFGDIR}/$GROUP\n", "etc/groups.conf.d/x": "127.0.1.4\n127.0.1.5 web1\n",
				"etc/groups.d/a.yaml": "roles:\n  web: 127.0.1.[1-2]\n  db: '127.0.1.3'\n  mix: '@web,@db!@rows:2'\nracks:\n  all: 127.0.1.4\n  r1: [127.0.1.4, 127.0.1.5]\n",
				"etc/list":            "a: 127.0.1.1\nb: @a,127.0.1.2\none=127.0.1.[1-3]\ntwo=127.0.1.1\n",
				"hosts":               "127.0.1.[1-2] web1\n\n  127.0.1.3\n", "f": "text\n", "d/x": "xx\n", "dest/old": "longer than f\n", "got/d.127.0.1.1/y": "y\n",
			} {
				at := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
}

func TestClushAsTheOriginal(t *testing.T) {
	l := clushLab(t)
	const two, where = "-w 127.0.1.[1-2] ", " 'echo a; echo ${SSH_CONNECTION% *}|cut -d\" \" -f3; echo b; echo; echo c'"
	l.compare(t, []call{
		// gathered, and in the order of nodes
		{args: "-b " + two + "'echo a; echo; echo b'"}, {args: "-b " + two + "'exit 3'"}, {args: "-b -w 127.0.1.[1-3],127.0.1.2:1 hostname", differs: "stderr"}, {args: "-b -w 127.0.1.[1-3]" + where}, {args: "-qb " + two + "'echo a; exit 3'"},
		{args: "-B -w 127.0.1.1 'echo a; sleep .2; echo b >&2'"}, {args: "-NBS " + two + "'echo a; exit 4'"}, {args: "-b -w web1,127.0.1.[9-11],127.0.1.1 'echo a'"}, {args: "-B -l nobody9 " + two + "true"}, {args: "-bS " + two + "'kill -9 $$'"},
		{args: "-L -w 127.0.1.[9-11],web1,127.0.1.2" + where}, {args: "-LN " + two + "'echo a'"}, {args: "-LS " + two + "'printf noend; exit 2'"}, {args: "-bL -w 127.0.1.[1-3]" + where}, {args: "-BL " + two + "'echo a; exit 3'"},
		{args: "-b " + two + "'test ${SSH_CONNECTION#*127.0.1.1} = \"$SSH_CONNECTION\" || exit 5; echo same'"}, {args: "-O verbosity=0 -O maxrc=yes -b " + two + "'echo a; exit 6'"}, {args: "-O node_count=no -b " + two + "echo a"},
		{args: "--diff -w 127.0.1.[1-3]" + where}, {args: "--diff " + two + "'test ${SSH_CONNECTION#*127.0.1.1} = \"$SSH_CONNECTION\" || echo one'"}, {args: "--diff " + two + "echo same"}, {args: "--color=always --diff " + two + where}, {args: "--color=always -b " + two + where},
		{args: "-bS -u 1 " + two + "'echo begun; sleep 20'"}, {args: "-b " + two + "cat", stdin: "some\ntext"}, {args: "-nb " + two + "cat", stdin: "not read\n"}, {args: "-b " + two, stdin: "echo from a shell\n"}, {args: "-nb " + two, stdin: "echo no\n"},
		// groups
		{args: "-bg web echo"}, {args: "-bg mix,rows:2 echo"}, {args: "-b -g rows:[2-3] -x 127.0.1.2 echo"}, {args: "-ba echo"}, {args: "-ba -s racks echo"}, {args: "-ba -s rows -X racks:r1 echo"}, {args: "-b -s one -a -x @a echo"}, {args: "-b -w @two:* echo"},
		{args: "-b -w @one:b,@db echo"}, {args: "-b -w @part:x -x 127.0.1.5 echo"}, {args: "-b -s one -w *.3,@b echo"}, {args: "-b -w @rows:* -x @one:nope echo"}, {args: "-b -w @rows:3&@racks:all,@db echo"}, {args: "-b --hostfile hosts -x web1 echo"},
		{args: "-g one:bad echo", differs: "stderr"}, {args: "-s bare -a echo", differs: "stderr"}, {args: "-w @nope:x echo", differs: "stderr"}, {args: "-s nope -a echo"}, {args: "-b -w @web --groupsconf $DIR/none echo", differs: "stderr"}, {args: "--hostfile none echo", differs: "stderr"},
		// mistakes
		{args: ""}, {args: "-w"}, {args: "-Z"}, {args: "-w 127.0.1.1 -x 127.0.1.1 echo"}, {args: "-w n[1 echo", differs: "stderr"}, {args: "-w n[3-1] echo", differs: "stderr"}, {args: "-f x -w a echo"}, {args: "-u x -w a echo"}, {args: "--diff -L -w a echo"},
		{args: "-w a --copy"}, {args: "-w a --copy none f"}, {args: "-w a --rcopy f --dest none"}, {args: "-w a --rcopy f --dest f"}, {args: "-O x -w a echo"}, {args: "--version"}, {args: "--help", differs: "stdout"}, {args: "-w n[1-2]! echo", differs: "stderr"},
		// copies
		{args: two + "--copy f --dest $DIR/dest/new"}, {args: "-v " + two + "-c f --dest $DIR/dest/"}, {args: two + "--copy f d --dest $DIR/dest"}, {args: "-vp " + two + "--copy d"}, {args: two + "--copy f --dest $DIR/none/x", differs: "stderr"},
		{args: two + "--rcopy $DIR/f --dest got"}, {args: "-v " + two + "--rcopy $DIR/d --dest got"}, {args: "-vp " + two + "--rcopy $DIR/d/ --dest got"}, {args: two + "--rcopy $DIR/none --dest got", differs: "stderr"}, {args: "-S -l nobody9 -w 127.0.1.1 -c f --dest /tmp", differs: "stderr"},
	})
	live := *l
	live.normal = clushLines
	live.compare(t, []call{
		{args: two + "'echo a; echo err >&2; exit 2'"}, {args: "-S " + two + "'exit 3'"}, {args: "-Sq " + two + "'exit 3'"}, {args: "-N " + two + "'echo a; echo err >&2'"}, {args: "-w root@127.0.1.1 whoami"}, {args: "-l root " + two + "whoami"},
		{args: "-v " + two + "false"}, {args: "-vb " + two + "'echo a; exit 3'"}, {args: "-w 127.0.1.1 -f 1 -t 9 'printf noend; printf noend >&2'"}, {args: "-w 127.0.1.1 'printf \"a\\r\\nb\\n\\n\\n\"'"}, {args: "-S -w nosuch.invalid true"}, {args: "-l nobody9 " + two + "true"},
		{args: "-u 1 -w 127.0.1.1 'echo begun; sleep 20'"}, {args: "-o -oPort=1 -F$DIR/ssh_config -w 127.0.1.1 true", differs: "stderr"}, {args: "-o '-F $DIR/ssh_config -oPort=1' -S -w 127.0.1.1 true"}, {args: "-o '-F $DIR/ssh_config -q' -w 127.0.1.1 'echo err >&2; exit 3'"},
		{args: two + "cat", stdin: "text"}, {args: two, stdin: "echo from a shell; exit 3\n"}, {args: "--color=always " + two + "'echo a; echo err >&2; exit 2'"}, {args: two + "echo -b -L '$HOME' 'a  b' %h"}, {args: "-P -G -d " + two + "true", differs: "stdout stderr"},
	})
}

// clushWords are command lines with sets of nodes.
var clushWords = sshtest.Grammar{
	"line":  {"-b <nodes> hostname", "-bS <nodes> <there>", "-L <nodes> <there>", "-B <nodes> <there>", "--diff <nodes> <there>", "-bL <nodes> <there>", "-q -bN <nodes> <there>"},
	"nodes": {"-w <set>", "-w <set>,127.0.1.1", "-w <set> -x <set>", "-w <set> -w <set>", "-g <group>", "-g <group> -X <group>", "-g <group>,<group> -x <set>", "-a -x <set>", "-w <set><op><set>", "-w <set><op>@<group>", "-w <set> -g <group>"},
	"set":   {"127.0.1.[1-<digit>]", "127.0.1.[<digit>,5]", "127.0.1.<digit>", "127.0.[1-1].[1-4/<digit>]", "127.0.1.1[0-<digit>]", "web[1-<digit>]&web[1-3]", "127.0.[1].[9-11]"},
	"op":    {",", "!", "&", "^"},
	"group": {"web", "db", "mix", "rows:<digit>", "rows:[2-3]", "one:a", "two:b", "racks:r1", "part:x"},
	"digit": {"1", "2", "3"},
	"there": {"'echo ${SSH_CONNECTION% *}|cut -d\" \" -f3'", "'exit 3'", "'echo a; echo; exit 1'", "'test ${SSH_CONNECTION#*127.0.1.2} = \"$SSH_CONNECTION\" || exit 2; echo rest'", "echo a 'b  c'", "true"},
}

// TestClushRandomly compares random sets of nodes.
func TestClushRandomly(t *testing.T) {
	count, seed := seedtest.Cases(t, 12)
	var calls []call
	for n := range count {
		calls = append(calls, call{args: clushWords.Make(rand.New(rand.NewPCG(seed, uint64(n))), "<line>")})
	}
	clushLab(t).compare(t, calls)
}
