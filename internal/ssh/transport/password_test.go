package transport

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/sshtest"
)

// person knows a password, which is tried by each method once.
type person struct {
	tried []string
	asked []Question
	told  string
}

func (p *person) login(methods ...string) Login {
	return Login{User: "tester", Ahead: &Command{Line: "true"},
		Method: func(can []string, _ bool) string {
			i := slices.IndexFunc(methods, func(m string) bool { return slices.Contains(can, m) && !slices.Contains(p.tried, m) })
			if i < 0 {
				return ""
			}
			p.tried = append(p.tried, methods[i])
			return methods[i]
		},
		Answer: func(asked Asked) (answers []string, err error) {
			p.told += asked.Name + asked.Instruction
			for _, q := range asked.Questions {
				p.asked, answers = append(p.asked, q), append(answers, "hidden word")
			}
			return answers, nil
		}}
}

// refusal lists what can go on.
func refusal(methods string, partial byte) []byte {
	return append(channel.AppendText([]byte{msgUserauthFailure}, methods), partial)
}

// ask is a request for answers; echo is of all.
func ask(echo byte, questions ...string) []byte {
	p := []byte{msgUserauthMore}
	for range 3 {
		p = channel.AppendText(p, "\x1b]0;evil\x07")
	}
	p = channel.AppendNumber(p, uint32(len(questions)))
	for _, q := range questions {
		p = append(channel.AppendText(p, q), echo)
	}
	return p
}

// requested is the method of a request to log in, with what it has behind that.
func requested(p []byte) (method string, rest []byte) {
	if len(p) == 0 || p[0] != msgUserauthRequest {
		return "", nil
	}
	f := channel.FieldsOf(p)
	f.Text()
	f.Text()
	return string(f.Text()), f.Rest
}

// TestPasswords: the server's messages and ours, by both methods; a command leaves once the login
// has succeeded and not before.
func TestPasswords(t *testing.T) {
	for _, test := range []struct {
		name, methods string // that can go on
		says          [][]byte
		want          []string // of us
		asked         []Question
	}{
		{"password", "publickey,password", nil, []string{"none", "password \x00\x00\x00\x00\vhidden word"}, []Question{{passwordQuestion, false}}},
		{"a question", "keyboard-interactive", [][]byte{ask(0, "Password: ")},
			[]string{"none", "keyboard-interactive \x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x01\x00\x00\x00\vhidden word"}, []Question{{"Password: ", false}}},
		{"nothing to ask", "keyboard-interactive", [][]byte{ask(0), ask(1, "a")},
			[]string{"none", "keyboard-interactive \x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x00", "\x00\x00\x00\x01\x00\x00\x00\vhidden word"}, []Question{{"a", true}}},
		{"the second method", "keyboard-interactive,password", [][]byte{refusal("password", 0)},
			[]string{"none", "keyboard-interactive \x00\x00\x00\x00\x00\x00\x00\x00", "password \x00\x00\x00\x00\vhidden word"}, []Question{{passwordQuestion, false}}},
		{"both", "password,keyboard-interactive", [][]byte{refusal("password", 1)},
			[]string{"none", "keyboard-interactive \x00\x00\x00\x00\x00\x00\x00\x00", "password \x00\x00\x00\x00\vhidden word"}, []Question{{passwordQuestion, false}}},
	} {
		var p person
		var got []string
		commands := 0
		c, err := loginTo(t, asOpenSSH, p.login("keyboard-interactive", "password"), func(h *hostile) {
			h.accept()
			says := append([][]byte{refusal(test.methods, 0)}, append(test.says, []byte{msgUserauthSuccess})...)
			for m := h.hear(); m != nil; m = h.hear() {
				switch method, rest := requested(m); {
				case method != "":
					got = append(got, strings.TrimSpace(method+" "+string(rest)))
				case m[0] == msgUserauthAnswers:
					got = append(got, string(m[1:]))
				default:
					if m[0] == msgRequest {
						commands++
					}
					if len(says) > 0 {
						t.Errorf("%s: message %d before the login has succeeded", test.name, m[0])
					}
					continue
				}
				if len(says) > 0 {
					h.say(says[0])
					says = says[1:]
				}
			}
		})
		if err != nil || !c.Asked() || commands > 1 || !slices.Equal(got, test.want) || !slices.Equal(p.asked, test.asked) {
			t.Errorf("%s: %v; asked %+v, said %q", test.name, err, p.asked, got)
		}
	}
}

// TestKeyAndPassword: a key that is not enough is followed by the password, and a password that is
// not enough by a key.
func TestKeyAndPassword(t *testing.T) {
	for _, test := range []struct{ first, then, want string }{ // a question whether a key would do, then the signature
		{"publickey", "password", "publickey publickey password"},
		{"password", "publickey", "publickey password publickey publickey"},
	} {
		var p person
		byKeys := p.login("password")
		signed := 0
		multi, err := ssh.NewSignerWithAlgorithms(sshtest.NewKey(t).(ssh.AlgorithmSigner), []string{ssh.KeyAlgoED25519})
		if err != nil {
			t.Fatal(err)
		}
		byKeys.Keys = []ssh.MultiAlgorithmSigner{signer{multi, &signed}}
		var got []string
		_, err = loginTo(t, asOther, byKeys, func(h *hostile) {
			h.accept()
			can := test.first
			for m := h.hear(); m != nil; m = h.hear() {
				method, _ := requested(m)
				got = append(got, method)
				l := login{}
				if method == "publickey" {
					l = parseLogin(m)
				}
				switch {
				case method != can:
					h.say(refusal(can, 0))
				case method == "publickey" && !l.signed:
					h.say(pkOK(l.algorithm, l.key))
				case method == test.then:
					h.say([]byte{msgUserauthSuccess})
					h.drain()
					return
				default:
					can = test.then
					h.say(refusal(can, 1))
				}
			}
		})
		if text := strings.Join(got, " "); err != nil || text != test.want || signed != 1 {
			t.Errorf("%s, then %s: %s; %d signatures, %v", test.first, test.then, text, signed, err)
		}
	}
}

// TestHostileQuestions: what is no question gets no answer, and a wish for a new password is said
// to be one.
func TestHostileQuestions(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		says   []byte
		want   string
	}{
		"a new password": {"password", channel.AppendText(channel.AppendText([]byte{msgUserauthMore}, "expired"), ""), ErrNewPassword.Error()},
		"nothing":        {"keyboard-interactive", []byte{msgUserauthMore}, "wrong length"},
		"too few":        {"keyboard-interactive", ask(0, "Password: ")[:50], "wrong length"},
		"four billion":   {"keyboard-interactive", append(ask(0)[:len(ask(0))-4], 0xff, 0xff, 0xff, 0xff), "wrong length"},
		"more":           {"keyboard-interactive", append(ask(0, "Password: "), 0), "wrong length"},
		"unasked":        {"", ask(0, "Password: "), "unexpected message type 60"},
	} {
		var p person
		_, err := loginTo(t, asOther, p.login("password", "keyboard-interactive"), func(h *hostile) {
			h.accept()
			h.hear()
			if test.method != "" {
				h.say(refusal(test.method, 0))
				h.hear()
			}
			h.say(test.says)
			if m := h.hear(); m != nil {
				t.Errorf("%s: it was answered with %q", name, m)
			}
		})
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, ErrNewPassword) != (test.method == "password") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLengthOfPassword: how long a password is does not show.
func TestLengthOfPassword(t *testing.T) {
	for _, s := range suites {
		sizes := map[int]bool{}
		for n := range 20 {
			made, err := s.make(make([]byte, s.key), make([]byte, s.iv), macs[0].keyed(nil))
			if err != nil {
				t.Fatal(err)
			}
			sizes[len(made.seal(nil, 0, []byte{msgUserauthRequest}, make([]byte, n)))] = true
			sizes[len(made.seal(nil, 1, []byte{msgUserauthAnswers}, make([]byte, n)))] = true
		}
		if len(sizes) != 1 {
			t.Errorf("%s: %v", s.name, sizes)
		}
	}
}
