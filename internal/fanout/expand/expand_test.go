package expand_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/fanout/expand"
	"sshpace/internal/fleet"
)

// TestName: %h is the host, and %% is %, once.
func TestName(t *testing.T) {
	for text, want := range map[string]string{"a%h.b%h": "aweb1.bweb1", "%%h": "%h", "100%%": "100%", "%%%h %%%%h": "%web1 %%h", "%F %": "%F %", "%{h} %{": "%{h} %{"} {
		if got := expand.Name(text, "web1"); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	if expand.MeansHost("echo %%h") || !expand.MeansHost("echo %h") {
		t.Error("what means a host is not what is replaced")
	}
}

// known has the variable x of every host, and rack of web1 alone.
func known(x string) expand.Known {
	return expand.Known{
		Target: func(h host.Host) (string, string, int, error) { return h.Name + ".example", "me", 22, nil },
		Variables: func(h host.Host, names []string) (map[string]string, error) {
			has := map[string]string{}
			if slices.Contains(names, "x") {
				has["x"] = x
			}
			if h.Name == "web1" && slices.Contains(names, "rack") {
				has["rack"] = "r 1"
			}
			return has, nil
		},
	}
}

func hosts(names ...string) (list []host.Host) {
	for _, name := range names {
		list = append(list, host.Host{Name: name})
	}
	return list
}

// commandOf returns the command of the first host.
func commandOf(all []host.Host, command string, k expand.Known) (cmd fleet.Command, err error) {
	v, err := expand.Of(all, []string{command}, nil, k)
	if err == nil {
		err = v.Check(all, command)
	}
	if err != nil {
		return cmd, err
	}
	return v.Command(nil)(fleet.Command{Line: command}, all[0]), nil
}

// login is what a server does with a command.
func login(shell string, cmd fleet.Command) string {
	run := exec.Command(shell, "-c", cmd.Line)
	if cmd.Input != nil {
		run.Stdin = cmd.Input.Reader()
	}
	out, err := run.Output()
	if err != nil && len(out) == 0 {
		return err.Error()
	}
	return string(out)
}

func TestTokens(t *testing.T) {
	for command, want := range map[string]string{
		"echo %h %n %u %p %i": "echo 'web1.example' 'web1' 'me' '22' '0'",
		"echo 5%%{rack}":      "echo 5%{rack}", `echo "at %n"`: `echo "at web1"`, "cp conf/%n.conf": "cp conf/'web1'.conf",
	} {
		if cmd, err := commandOf(hosts("web1"), command, known("")); err != nil || cmd.Line != want {
			t.Errorf("%s is %s, want %s, %v", command, cmd.Line, want, err)
		}
	}
}

// What cannot be one word of every host is an error that names the hosts.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct{ command, value, want string }{
		{"date +%F", "", `unknown token "%F"`}, {"echo 100%", "", "nothing follows the last %"}, {"echo %{a b}", "", `unknown token "%{a b}"`}, {"echo %{x", "", `unknown token "%{"`},
		{"echo %{}", "", `unknown token "%{}"`}, {"echo %é", "", `unknown token "%é"`},
		{"echo %{rack} %{dc}", "", "%{dc} has no value for web[1-3]; %{rack} has no value for web[2-3]"},
		{"echo %{x}", "a\x00b", "%{x} has a zero byte, which no command can hold, for web[1-3]"},
		{"echo %{x}", strings.Repeat("x", expand.MaxValue+1), "%{x} is longer than 100 KiB for web[1-3]"},
		{"echo %{x}", strings.Repeat("'", expand.MaxValue), "the command is longer than 127 KiB for web[1-3]"},
		{`echo "%{x}"`, "$(id)", "a value that is empty or has special characters stands within quotes, or behind ` or << of the command for web[1-3]"},
	} {
		_, err := commandOf(hosts("web1", "web2", "web3"), tt.command, known(tt.value))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.command, err, tt.want)
		}
	}
	if _, err := expand.Of(hosts("web1"), nil, []byte("echo $SSHPACE_VAR_dc"), known("")); err == nil || !strings.Contains(err.Error(), "%{dc} has no value for web1") {
		t.Error(err)
	}
}

// places are commands that print a value between < and >, wherever a token may stand.
var places = []string{
	"printf %%s '<'%{x}'>'", "printf '<%%s>' %{x}", "printf '<%%s>' \"\"%{x}", `printf '<%%s>' "%{x}"`, `printf '<%%s>' '%{x}'`, `printf '<%%s>' "$(printf %%s "%{x}")"`,
	"printf '<%%s>' `printf %%s %{x}`", `printf '<%%s>' \%{x}`, "# don't\nprintf '<%%s>' '%{x}'", "printf '<%%s>' \"${none:-%{x}}\"",
	"printf '<%%s>' \"$(cat <<E\n%{x}\nE\n)\"", `printf '<%%s>' "\"%{x}" | tr -d '"'`, "printf '<%%s>' $(:)%{x}", "A=%{x}; printf '<%%s>' \"$A\"",
	`case %{x} in *) printf '<%%s>' %{x};; esac`, `printf '<%%s>' "$(echo 'a' >/dev/null; printf %%s '%{x}')"`,
	`eval : ; printf '<%%s>' "it's %{x}" | sed "s/it.s //"`, `printf '<%%s>' $((1))%{x} | sed 's/1//'`, `: # "` + "\nprintf '<%%s>' %{x}",
}

// odd are places where a value is not itself, whatever it is.
var odd = []string{`printf '<%%s>' $%{x}`, `printf '<%%s>' $'\'%{x}'`, "echo %{x} >/dev/null # %{x}", "echo $((%{x})) 2>&1", "exec 2>&1; : ${%{x}}"}

// posix are login shells that read a command as sh does; others do so where nothing is special.
var posix, others = []string{"sh", "dash", "bash", "ksh", "mksh"}, []string{"zsh", "fish", "tcsh"}

// TestOneWord: in every place a shell has the value back, or the command is refused; nothing of it
// is ever run.
func TestOneWord(t *testing.T) {
	pieces := []string{"a", "b c", "'", `"`, "$(echo ran>ran)", "`echo ran>ran`", "; echo ran>ran;", "\n", "\\", "$HOME", "*", "~", "#", "!", "\xff", "é", "\t", "&& echo ran>ran", "-n", "}", "E\n", "\r", "%h", "%%", "=", "{x,y}"}
	count, seed := seedtest.Cases(t, 60)
	random := rand.New(rand.NewPCG(seed, 0))
	t.Chdir(t.TempDir())
	accepted := map[string]int{}
	for i := range count {
		var value string
		for range 1 + random.IntN(4) {
			value += pieces[random.IntN(len(pieces))]
		}
		if i == 0 {
			value = "plain-1.example"
		}
		for at, command := range slices.Concat(places, odd) {
			cmd, err := commandOf(hosts("web1"), command, known(value))
			if err != nil {
				continue
			}
			accepted[command]++
			shells := posix
			if cmd.Input != nil || at < 2 { // the host's sh reads it, or no word is special to any shell
				shells = slices.Concat(posix, others)
			}
			shell := shells[random.IntN(len(shells))]
			if got := login(shell, cmd); at < len(places) && got != "<"+value+">" {
				t.Errorf("%s, place %d, seed %d: %q came back as %q:\n%s", shell, at, seed, value, got, command)
			}
			if _, err := os.Stat("ran"); err == nil {
				t.Fatalf("%q was run:\n%s", value, command)
			}
		}
	}
	for _, at := range []int{0, 1, 2, 12, 13, 14} {
		if n := accepted[places[at]]; n != count {
			t.Errorf("%s: %d values of %d were accepted", places[at], n, count)
		}
	}
	big := strings.Repeat("x y", expand.MaxValue/3)
	for _, shell := range slices.Concat(posix, others) {
		cmd, err := commandOf(hosts("web1"), "printf %%s %{x}", known(big))
		if out := login(shell, cmd); err != nil || out != big {
			t.Errorf("%s: %d bytes of %d came back, %v", shell, len(out), len(big), err)
		}
	}
}

// TestPath: a value in the path of a directory is a part of one name, which leads nowhere else.
func TestPath(t *testing.T) {
	all := hosts("web1")
	for value, want := range map[string]string{
		"db": "out/db/x", "": "out/%/x", ".": "out/%2E/x", "..": "out/%2E./x", "../../etc": "out/%2E.%2F..%2Fetc/x", "/etc": "out/%2Fetc/x",
		"a\n\x1b[0m": "out/a%0A%1B%5B0m/x", "%h": "out/%25h/x",
	} {
		v, err := expand.Of(all, []string{"out/%{x}/x"}, nil, known(value))
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Path("out/%{x}/x", all[0]); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
	v, _ := expand.Of(all, []string{"%{x}"}, nil, known(strings.Repeat("x", 1000)))
	if got := v.Path("%{x}", all[0]); len(got) > 255 {
		t.Errorf("a name of %d bytes", len(got))
	}
}

// TestScript: a script has the values in its environment, and those of its arguments that are
// tokens; variables that it does not name are not sent. Its own input follows.
func TestScript(t *testing.T) {
	value := "it's $(id)\n\"é\xff\""
	script := []byte("printf '<%s>' \"$SSHPACE_HOST\" \"$SSHPACE_NAME\" \"$SSHPACE_USER\" \"$SSHPACE_PORT\" \"$SSHPACE_INDEX\" \"$SSHPACE_VAR_x\" \"$@\"; cat; env | grep -c RACK_OF")
	all := hosts("web2", "web1")
	args := []string{"--at=%n", "%{rack}"}
	v, err := expand.Of(all[1:], args, script, known(value))
	if err != nil {
		t.Fatal(err)
	}
	cmd := v.Command(args)(fleet.Command{Input: fleet.SpoolBytes([]byte("own input"))}, all[1])
	input := cmd.Input.Reader()
	sent, _ := io.ReadAll(input)
	if strings.Contains(string(sent), "SSHPACE_VAR_rack") {
		t.Error("the script does not name rack")
	}
	run := exec.Command("sh", "-c", cmd.Line)
	run.Stdin = strings.NewReader(string(sent))
	out, _ := run.Output()
	if want := "<web1.example><web1><me><22><0><" + value + "><--at=web1><r 1>own input0\n"; string(out) != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// TestGiven: --var wins over files, a later file over an earlier one, both over inventories; a cell
// may hold anything, and an empty one is no value.
func TestGiven(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := file("a.csv", "\ufeffhost,role,x,none\r\nweb1,db,\"a, \"\"b\"\"\nc\",\r\nme@web2:2222,other,y,\r\n")
	second := file("b.csv", "host,role\nweb1,mail\n")
	variables, err := expand.Given{Vars: []string{"dc=a=b", "empty="}, Files: []string{first, second}}.Over(known("inventory").Variables)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"role", "x", "dc", "rack", "none", "empty"}
	got, err := variables(host.Host{Name: "web1"}, names)
	if want := map[string]string{"role": "mail", "x": "a, \"b\"\nc", "dc": "a=b", "rack": "r 1", "empty": ""}; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q, %v", got, want, err)
	}
	if got, _ = variables(host.Host{Name: "web2", User: "me", Port: 2222}, names); got["role"] != "other" {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]string{
		"host,a b\nweb1,1\n": `column 2: "a b"`, "host,a,a\nweb1,1,2\n": `column 3: "a"`, "host,a\nweb1,1\nweb1,2\n": `:3: host "web1": want each host once`,
		"host,a\n,1\n": `:2: host "": want each host once`, "host,a\nweb1\n": "wrong number of fields", "host,a\nweb1,\"x\n": "quote", "": "want a comma", "host;a\nweb1;1\n": "want a comma", "\xff\xfeh": "UTF-16",
	} {
		if _, err := (expand.Given{Files: []string{file("bad.csv", text)}}).Over(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := (expand.Given{Vars: []string{"a b=c"}}).Over(nil); err == nil {
		t.Error("a name with a blank")
	}
}
