package dial

import (
	"context"
	"strings"
	"testing"
	"time"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/transport"
)

// given is a password that any host gets.
type given struct{ right, known bool }

func (*given) Offer(context.Context, string) error { return nil }
func (*given) Text() string                        { return "hidden word" }
func (g *given) Told(_ string, right, known bool)  { g.right, g.known = right, known }

// TestNewPassword: a host that wants another password first says nothing about this one on other
// hosts.
func TestNewPassword(t *testing.T) {
	for _, test := range []struct {
		says  error
		hint  string
		known bool
	}{
		{transport.ErrNewPassword, "changed first; log in there with ssh once", false},
		{&transport.DeniedError{Methods: []string{"password"}}, "the password was refused", true},
	} {
		g := &given{}
		ctx := patient(t.Context(), time.Minute)
		defer ctx.end()
		l := &login{ctx: ctx, turn: &turn{}, target: &Target{User: "u", HostName: "h", PasswordMethods: []string{"password"}, Prompter: PasswordAlone{g}}, set: &keySet{}}
		if m := l.method([]string{"publickey", "password"}, false); m != "password" {
			t.Fatalf("method %q", m)
		}
		answers, err := l.answer(transport.Asked{Questions: []transport.Question{{Text: "Password: "}}})
		if err != nil || len(answers) != 1 || answers[0] != g.Text() {
			t.Fatalf("%q, %v", answers, err)
		}
		err = l.failed(test.says)
		own, ok := err.(*Error)
		if !ok || own.Class != fleet.AuthFailed || !strings.Contains(own.Hint, test.hint) {
			t.Errorf("%v: %#v", test.says, err)
		}
		if l.reported(err); g.right || g.known != test.known {
			t.Errorf("%v: told %+v", test.says, g)
		}
		if m := l.method([]string{"password"}, false); m != "" {
			t.Errorf("%v: again by %s", test.says, m)
		}
	}
}
