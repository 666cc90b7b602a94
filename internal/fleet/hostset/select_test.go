package hostset

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
)

const hostsText = `# fleet
gate.example   # the way in

%web
root@web1:2222
web[2-3]
ssh://deploy@web4
%db
[2001:db8::1]:22
web2
%
mail, backup
`

func hostsFile(t *testing.T) *HostsFile {
	t.Helper()
	f, err := ReadHosts(strings.NewReader(hostsText), "hosts.txt")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func texts(hosts []host.Host) string {
	var list []string
	for _, h := range hosts {
		list = append(list, h.String())
	}
	return strings.Join(list, " ")
}

func TestSelection(t *testing.T) {
	f := hostsFile(t)
	tests := []struct {
		name string
		sel  Selection
		want string
	}{
		{"file", Selection{Files: []*HostsFile{f}}, "gate.example root@web1:2222 web2 web3 deploy@web4 [2001:db8::1]:22 mail backup"},
		{"label", Selection{Files: []*HostsFile{f}, Labels: []string{"db"}}, "[2001:db8::1]:22 web2"},
		{"sets and file", Selection{Sets: []string{"a", "web3"}, Files: []*HostsFile{f}, Labels: []string{"web"}}, "a web3 root@web1:2222 web2 deploy@web4"},
		{"exclude name", Selection{Sets: []string{"root@a:22,a,b"}, Exclude: []string{"a"}}, "b"},
		{"exclude target", Selection{Sets: []string{"root@a:22,a,b"}, Exclude: []string{"root@a:22"}}, "a b"},
		{"exclude glob", Selection{Sets: []string{"web[1-3]", "db1"}, Exclude: []string{"web*!web2", "none*"}}, "web2 db1"},
		{"same target once", Selection{Sets: []string{"ssh://a:22", "a:22"}}, "a:22"},
	}
	for _, tt := range tests {
		got, err := tt.sel.Hosts()
		if err != nil || texts(got) != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, texts(got), err, tt.want)
		}
	}
}

func TestSelectionRemembersWhere(t *testing.T) {
	got, err := Selection{Files: []*HostsFile{hostsFile(t)}, Labels: []string{"web"}}.Hosts()
	if err != nil {
		t.Fatal(err)
	}
	want := host.Host{Name: "web1", User: "root", Port: 2222, Label: "web", Origin: "hosts.txt:5"}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSelectionRefuses(t *testing.T) {
	f := hostsFile(t)
	bad, err := ReadHosts(strings.NewReader("ok\n\n-oProxyCommand=id\n"), "bad.txt")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		sel  Selection
		want string
	}{
		{"nothing", Selection{}, "no hosts are named"},
		{"all excluded", Selection{Sets: []string{"a,b"}, Exclude: []string{"a,b"}}, "all 2 are excluded"},
		{"unknown label", Selection{Files: []*HostsFile{f}, Labels: []string{"wbe"}}, "labels are: db web"},
		{"unsafe line", Selection{Files: []*HostsFile{bad}}, "bad.txt:3: "},
		{"unsafe name", Selection{Sets: []string{"a;id"}}, "must not contain"},
		{"bad exclusion", Selection{Sets: []string{"a"}, Exclude: []string{"n[1"}}, "-x: "},
	}
	for _, tt := range tests {
		if got, err := tt.sel.Hosts(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v; want an error with %q", tt.name, texts(got), err, tt.want)
		}
	}
}

func TestReadHostsBoundsLines(t *testing.T) {
	if _, err := ReadHosts(strings.NewReader("a\n"+strings.Repeat("x", maxLine+1)), "big"); err == nil || !strings.HasPrefix(err.Error(), "big:2: ") {
		t.Errorf("error = %v", err)
	}
}

// The cap is on all lines together: on sets, on files, and on what is excluded.
func TestSelectionIsCapped(t *testing.T) {
	file := func(text string) *HostsFile {
		f, err := ReadHosts(strings.NewReader(text), "hosts")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	opt := Options{Max: 10}
	for name, s := range map[string]Selection{
		"sets":       {Sets: []string{"a[1-9]", "b[1-2]"}, Options: opt},
		"file":       {Files: []*HostsFile{file("a[1-9]\nb[1-2]\n")}, Options: opt},
		"same again": {Files: []*HostsFile{file("a[1-9]\na[1-2]\n")}, Options: opt},
		"excluded":   {Sets: []string{"z"}, Exclude: []string{"a[1-9]", "b[1-2]"}, Options: opt},
	} {
		if _, err := s.Hosts(); err == nil || !strings.Contains(err.Error(), "more than 10 names") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if hosts, err := (Selection{Sets: []string{"a[1-9]", "b"}, Options: opt}).Hosts(); err != nil || len(hosts) != 10 {
		t.Errorf("%d hosts, %v", len(hosts), err)
	}
}

// Lines of pssh's files name a user behind the host; sets of standard input do not.
func TestUsersBehindHosts(t *testing.T) {
	const text = "\ufeff198.18.1.99 root\nweb1\tdeploy # why\ndb.example:2222 user7\n10.0.0.1 web2\nr[1-2] ann\n2001:db8::1 root\nweb3 web4\na b c\na.example b.example\njoe@x1 y\nx2,x3 y2\n"
	for _, test := range []struct {
		read func(io.Reader, string) (*HostsFile, error)
		want string
	}{
		{ReadHosts, "root@198.18.1.99 deploy@web1 user7@db.example:2222 web2@10.0.0.1 ann@r1 ann@r2 root@2001:db8::1 web3 web4 a b c a.example b.example joe@x1 y x2 x3 y2"},
		{ReadSets, "198.18.1.99 root web1 deploy db.example:2222 user7 10.0.0.1 web2 r1 r2 ann 2001:db8::1 web3 web4 a b c a.example b.example joe@x1 y x2 x3 y2"},
	} {
		f, err := test.read(strings.NewReader(text), "hosts")
		if err != nil {
			t.Fatal(err)
		}
		hosts, err := Selection{Files: []*HostsFile{f}}.Hosts()
		if got := texts(hosts); got != test.want || err != nil {
			t.Errorf("%s, %v\nwant %s", got, err, test.want)
		}
	}
}
