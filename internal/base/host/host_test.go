package host

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want Host
	}{
		{"web1", Host{Name: "web1"}},
		{"root@web1", Host{Name: "web1", User: "root"}},
		{"root@web1:2222", Host{Name: "web1", User: "root", Port: 2222}},
		{"web1:22", Host{Name: "web1", Port: 22}},
		{"a@b@web1", Host{Name: "web1", User: "a@b"}},
		{`CORP\ann@web1`, Host{Name: "web1", User: `CORP\ann`}},
		{"ssh://root@web1:2222", Host{Name: "web1", User: "root", Port: 2222}},
		{"SSH://web1/", Host{Name: "web1"}},
		{"ssh://web1.", Host{Name: "web1"}},
		{"ssh://u@web1.:22", Host{Name: "web1", User: "u", Port: 22}},
		{"web1.", Host{Name: "web1."}},
		{"ssh://a%40b@web1", Host{Name: "web1", User: "a@b"}},
		{"ssh://[web1]:22", Host{Name: "web1", Port: 22}},
		{"[::1]:22", Host{Name: "::1", Port: 22}},
		{"[::1]", Host{Name: "::1"}},
		{"root@[::1]", Host{Name: "::1", User: "root"}},
		{"::1", Host{Name: "::1"}},
		{"root@fe80::1%eth0", Host{Name: "fe80::1%eth0", User: "root"}},
		{"127.0.0.1:22", Host{Name: "127.0.0.1", Port: 22}},
		{"[web1]:2222", Host{Name: "web1", Port: 2222}},
		{"prod/web1", Host{Name: "prod/web1"}},
		{"käse", Host{Name: "käse"}},
		{"web1=192.0.2.1", Host{Name: "web1", Address: "192.0.2.1"}},
		{"web1=root@192.0.2.1:22", Host{Name: "web1", Address: "192.0.2.1", User: "root", Port: 22, Known: true}},
		{"root@web1=[2001:db8::1]:2222", Host{Name: "web1", Address: "2001:db8::1", User: "root", Port: 2222}},
	}
	for _, tt := range tests {
		got, err := Parse(tt.text)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.text, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	texts := []string{
		"", "@web1", "root@", "-oProxyCommand=id", "root@-oX", "-x@web1", "web1:", "web1:0", "web1:65536",
		"web1:+22", "web1:-1", "web1:22x", "[::1", "[::1]22", "[::1]:", "a b", "a\tb", "a\nb", "a\x00b", "a\x1bb",
		"a;b", "a&b", "a|b", "a`b", "a$b", "a'b", `a"b`, `a\b`, "a(b", "a{b", "a<b", "*", "a?", "!a", "a,b", "#a",
		"a=", "=b", "a=b=c", "a=u@b=c", "u@a=v@b", "a=@b", "ssh://u=v@b", "a=b c", "a=-b", "a:1=b", "a%b", "a\x80", "a\u202eb", "a\u200bb", "a\u0085b", "1:2:3", "fe80::1%$(id)", "us$er@web1", "u;x@web1",
		"u\n@web1", `u\@web1`, "ssh://web1/path", "ssh://", "ssh://a%zz@web1", "ssh://a%0ab@web1", "ssh://%2dx@web1",
		"ssh://[::1]", "ssh://[2001:db8::1]:22", "ssh://u@[::1]/", "ssh://::1", "ssh://a@b@web1", // as ssh does
		strings.Repeat("a", 256), strings.Repeat("u", 256) + "@web1",
	}
	for _, text := range texts {
		h, err := Parse(text)
		if _, ok := errors.AsType[*ParseError](err); !ok {
			t.Errorf("Parse(%q) = %+v, %v; want a *ParseError", text, h, err)
		}
	}
}

func TestTargetIgnoresWhereItWasNamed(t *testing.T) {
	a := Host{Name: "web1", Label: "eu", Origin: "-w"}
	b := Host{Name: "web1", Origin: "hosts.txt:3"}
	if a.Endpoint() != b.Endpoint() {
		t.Errorf("endpoints differ: %v, %v", a.Endpoint(), b.Endpoint())
	}
}

// What a record keeps reads back to the same target; people are shown the name.
func TestExactReadsBack(t *testing.T) {
	for _, text := range []string{
		"web1", "root@web1:2222", "[::1]:22", "web1=192.0.2.1", "root@web1=192.0.2.1:22", "web1=root@192.0.2.1:22", "web1=root@web1", "web1=[2001:db8::1]:22", "root@web1=2001:db8::1",
	} {
		h, err := Parse(text)
		if err != nil || h.Exact() != text {
			t.Errorf("%q is %+v, %v, and reads %q", text, h, err, h.Exact())
		}
		before, _, named := strings.Cut(text, "=")
		if shown := h.String(); shown != before && named {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
}

// What Parse accepts is safe as an argument and reads back to itself.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"web1", "root@web1:22", "[::1]:22", "ssh://u@h:1", "fe80::1%eth0", "-oX", "a b", "a@b@c", "[a]:1", "u:p@h", "a=u@b:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := Parse(text)
		if err != nil {
			return
		}
		if h.Name[0] == '-' || strings.ContainsAny(h.Name+h.User, "\x00\n\r\t\x1b'`\";&<>|(){}$") {
			t.Fatalf("Parse(%q) accepted unsafe %+v", text, h)
		}
		again, err := Parse(h.Exact())
		if err != nil || again != h {
			t.Fatalf("Parse(%q) = %+v, its text %q reads as %+v, %v", text, h, h.Exact(), again, err)
		}
	})
}
