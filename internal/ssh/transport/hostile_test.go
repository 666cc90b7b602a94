package transport

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/sshtest"
)

// hostile is a server that says whatever a test wants, under the right keys: this package's own
// packets, from the other side.
type hostile struct {
	*Conn
	t   testing.TB
	key ssh.Signer
}

// say sends packets at once; the other end may have gone.
func (h *hostile) say(packets ...[]byte) {
	for _, p := range packets {
		h.queue(p)
	}
	_ = h.flush()
}

// hear is the next packet; nil at the end of the connection.
func (h *hostile) hear() []byte {
	p, err := h.raw()
	if err != nil {
		return nil
	}
	return p
}

// drain reads on to the end.
func (h *hostile) drain() {
	for h.hear() != nil {
	}
}

// exchangeKeys is the server's half of the first key exchange; extra is said before its NEWKEYS.
func (h *hostile) exchangeKeys(extra ...[]byte) error {
	line, err := h.in.line()
	if err != nil {
		return err
	}
	h.greeting.Version = strings.TrimRight(string(line), "\r\n")
	h.out = append(h.out, h.ours+"\r\n"...)
	m := h.init()
	m.Kex = []string{ssh.KeyExchangeCurve25519, strictServer}
	if h.ours == asNewOpenSSH {
		m.Kex = append(m.Kex, extInfoServer)
	}
	ours := m.marshal()
	h.say(ours)
	theirs, err := h.raw()
	if err != nil {
		return err
	}
	ask, err := h.raw()
	if err != nil {
		return err
	}
	public := channel.FieldsOf(ask).Text()
	method := methodNamed(ssh.KeyExchangeCurve25519)
	o, err := method.make()
	if err != nil {
		return err
	}
	secret, err := o.secret(public)
	if err != nil {
		return err
	}
	sum := method.hash.New()
	blob := h.key.PublicKey().Marshal()
	hashed(sum, []byte(h.greeting.Version), []byte(h.ours), theirs, ours, blob, public, o.public())
	sum.Write(secret)
	h.session = sum.Sum(nil)
	signature, err := h.key.Sign(rand.Reader, h.session)
	if err != nil {
		return err
	}
	reply := []byte{msgKexECDHReply}
	for _, part := range [][]byte{blob, o.public(), ssh.Marshal(signature)} {
		reply = channel.AppendText(reply, part)
	}
	h.say(append([][]byte{reply}, extra...)...)
	h.say([]byte{msgNewKeys})
	k := &keys{hash: method.hash, secret: secret, exchange: h.session, session: h.session}
	first := direction{cipher: suites[0].name} // the client's
	down, err := k.cipher(first, 'B', 'D', 'F')
	if err != nil {
		return err
	}
	up, err := k.cipher(first, 'A', 'C', 'E')
	if err != nil {
		return err
	}
	h.sealer, h.send = down, count{}
	if p, err := h.raw(); err != nil || p[0] != msgNewKeys {
		return errors.Join(err, errShort)
	}
	h.opener, h.recv = up, count{}
	return nil
}

// signer counts what it signs.
type signer struct {
	ssh.MultiAlgorithmSigner
	signed *int
}

func (s signer) SignWithAlgorithm(r io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	*s.signed++
	return s.MultiAlgorithmSigner.SignWithAlgorithm(r, data, algorithm)
}

// limit is how long a client may take that should end by itself.
const limit = 2 * time.Minute

// against logs in to a server that talks as talk does after the key exchange, with keys whose
// signatures are counted.
func against(t *testing.T, version string, direct bool, keys int, talk func(*hostile), extra ...[]byte) (c *Conn, signed int, err error) {
	t.Helper()
	login := Login{User: "tester", Direct: direct, Ahead: &Command{Line: "true"}}
	for range keys {
		multi, err := ssh.NewSignerWithAlgorithms(sshtest.NewKey(t).(ssh.AlgorithmSigner), []string{ssh.KeyAlgoED25519})
		if err != nil {
			t.Fatal(err)
		}
		login.Keys = append(login.Keys, signer{multi, &signed})
	}
	c, err = loginTo(t, version, login, talk, extra...)
	return c, signed, err
}

// loginTo logs in to a server that talks as talk does after the key exchange.
func loginTo(t *testing.T, version string, login Login, talk func(*hostile), extra ...[]byte) (c *Conn, err error) {
	t.Helper()
	hostKey := sshtest.NewKey(t)
	var serving sync.WaitGroup
	address := sshtest.Answering(t, func(raw net.Conn) {
		defer serving.Done()
		config := &Config{HostKeys: []string{ssh.KeyAlgoED25519}}
		h := &hostile{Conn: &Conn{net: raw, config: config, opener: plain{}, sealer: plain{}, ours: version}, t: t, key: hostKey}
		h.in = newInput(raw)
		if h.exchangeKeys(extra...) == nil {
			talk(h)
		}
	})
	serving.Add(1)
	raw, err := net.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	raw.SetDeadline(time.Now().Add(limit))
	defer serving.Wait()
	defer raw.Close()
	c, err = Handshake(raw, &Config{Version: "SSH-2.0-test", HostKeys: []string{ssh.KeyAlgoED25519}, HostKey: func(ssh.PublicKey) error { return nil }})
	if err == nil {
		err = c.Authenticate(login)
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("it waited until its time was over: %v", err)
	}
	return c, err
}

var (
	serviceAccept = channel.AppendText([]byte{msgServiceAccept}, serviceUserauth)
	failure       = append(channel.AppendText([]byte{msgUserauthFailure}, "publickey"), 0)
)

// accept accepts the service that is asked for first.
func (h *hostile) accept() {
	h.hear()
	h.say(serviceAccept)
}

// login is a request by a key.
type login struct {
	signed    bool
	algorithm string
	key       []byte
}

func parseLogin(p []byte) login {
	f := channel.FieldsOf(p)
	for range 3 { // user, service, method
		f.Text()
	}
	return login{f.Bool(), string(f.Text()), f.Text()}
}

// question reads on to the next request by a key.
func (h *hostile) question() (algorithm string, key []byte) {
	for p := h.hear(); p != nil; p = h.hear() {
		if p[0] == msgUserauthRequest {
			l := parseLogin(p)
			return l.algorithm, l.key
		}
	}
	return "", nil
}

func pkOK(algorithm string, key []byte) []byte {
	return channel.AppendText(channel.AppendText([]byte{msgUserauthMore}, algorithm), key)
}

const (
	asOpenSSH    = "SSH-2.0-OpenSSH_9.5"
	asNewOpenSSH = "SSH-2.0-OpenSSH_9.9" // it takes EXT_INFO
	asOther      = "SSH-2.0-other"
)

// TestAcceptedOnce: a server that says again and again that a key would do gets one signature for
// one question, and none for another key, whoever it says it is.
func TestAcceptedOnce(t *testing.T) {
	other := sshtest.NewKey(t).PublicKey().Marshal()
	for _, version := range []string{asOpenSSH, asOther} {
		for _, test := range []struct {
			name   string
			direct bool
			answer func(algorithm string, key []byte) [][]byte
			want   int // signatures
		}{
			{"again and again", false, func(a string, k []byte) [][]byte { return [][]byte{pkOK(a, k), pkOK(a, k), pkOK(a, k)} }, 1},
			{"unasked", true, func(a string, k []byte) [][]byte { return [][]byte{pkOK(a, k)} }, 1},
			{"another key", false, func(a string, _ []byte) [][]byte { return [][]byte{pkOK(a, other)} }, 0},
			{"another algorithm", false, func(_ string, k []byte) [][]byte { return [][]byte{pkOK(ssh.KeyAlgoRSASHA512, k)} }, 0},
			{"nothing", false, func(string, []byte) [][]byte { return [][]byte{{msgUserauthMore}} }, 0},
			{"more", false, func(a string, k []byte) [][]byte { return [][]byte{append(pkOK(a, k), 0)} }, 0},
		} {
			_, signed, err := against(t, version, test.direct, 1, func(h *hostile) {
				h.accept()
				h.say(test.answer(h.question())...)
				h.drain()
			})
			if err == nil || signed != test.want {
				t.Errorf("%s, %s: %d signatures, %v", version, test.name, signed, err)
			}
		}
	}
}

// TestAcceptedByType: some servers name the type of a key where they accept it.
func TestAcceptedByType(t *testing.T) {
	if _, signed, err := against(t, asOther, false, 1, func(h *hostile) {
		h.accept()
		_, key := h.question()
		h.say(pkOK(ssh.KeyAlgoED25519, key))
		h.question()
		h.say([]byte{msgUserauthSuccess})
		h.drain()
	}); err != nil || signed != 1 {
		t.Errorf("%d signatures, %v", signed, err)
	}
}

// signatures is an EXT_INFO that says which signatures a server takes.
func signatures(names string) []byte {
	return append(channel.AppendNumber([]byte{msgExtInfo}, 1), channel.Text("server-sig-algs", names)...)
}

// TestOtherSignatures: a server that says within the login that it takes other signatures, as sshd
// does where a block of Match is for the user, gets them; however often it says so, a key is not
// tried again and again.
func TestOtherSignatures(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	multi, err := ssh.NewSignerWithAlgorithms(key.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		before, within, takes string
		want                  bool
	}{
		{ssh.KeyAlgoED25519, "ssh-ed25519,rsa-sha2-512", ssh.KeyAlgoRSASHA512, true},
		{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA256, true},
		{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, "none", false},
	} {
		for _, direct := range []bool{false, true} {
			requests := 0
			_, err := loginTo(t, asNewOpenSSH, Login{User: "tester", Direct: direct, Keys: []ssh.MultiAlgorithmSigner{multi}}, func(h *hostile) {
				h.say(signatures(test.before))
				if p := h.hear(); !bytes.Equal(p, extInfo()) {
					t.Errorf("it said %q", p)
				}
				h.accept()
				within := []string{test.within, test.before} // and so on
				for p := h.hear(); p != nil; p = h.hear() {
					h.say(signatures(within[requests%2]))
					requests++
					switch l := parseLogin(p); {
					case l.algorithm != test.takes:
						h.say(failure)
					case l.signed:
						h.say([]byte{msgUserauthSuccess})
					default:
						h.say(pkOK(l.algorithm, l.key))
					}
				}
			})
			if (err == nil) != test.want || requests > 4 {
				t.Errorf("%s, then %s, direct %v: %d requests, %v", test.before, test.within, direct, requests, err)
			}
		}
	}
}

// msgRequest asks for the command, of which there is one in these logins.
const msgRequest = 98

// TestDeniedAgainAndAgain: a server that refuses everything, once or more than once, gets one
// signature for each key at most, and the command once.
func TestDeniedAgainAndAgain(t *testing.T) {
	const keys = 5
	for _, times := range []int{1, 3} {
		commands := 0
		c, signed, err := against(t, asOpenSSH, true, keys, func(h *hostile) {
			h.accept()
			for p := h.hear(); p != nil; p = h.hear() {
				if p[0] == msgRequest {
					commands++
				}
				if p[0] != msgUserauthRequest {
					continue
				}
				if l := parseLogin(p); l.signed {
					h.say(slices.Repeat([][]byte{failure}, times)...)
				} else {
					h.say(pkOK(l.algorithm, l.key))
				}
			}
		})
		if err == nil || c.Asked() || signed == 0 || signed > keys || commands != 1 {
			t.Errorf("refused %d times: %d signatures with %d keys, the command left %d times: %v", times, signed, keys, commands, err)
		}
	}
}

// TestProof: once the command has left, only what the server says under the keys shows that it does
// not run.
func TestProof(t *testing.T) {
	bye := channel.AppendText(channel.AppendText(channel.AppendNumber([]byte{msgDisconnect}, 2), "bye"), "")
	unknown := func(number uint32) []byte { return channel.AppendNumber([]byte{msgUnimplemented}, number) }
	const service, open, exec = 0, 2, 3 // numbers of packets, with strict key exchange
	for _, test := range []struct {
		name string
		says [][]byte
		ran  bool // it may have
	}{
		{"the end", nil, true},
		{"the service and the end", [][]byte{serviceAccept}, true},
		{"a banner and the end", [][]byte{serviceAccept, append([]byte{msgUserauthBanner}, make([]byte, 8)...)}, true},
		{"a refusal", [][]byte{serviceAccept, failure}, false},
		{"a farewell", [][]byte{bye}, false},
		{"a farewell without its end", [][]byte{bye[:6]}, false},
		{"the request is not known", [][]byte{serviceAccept, unknown(exec)}, false},
		{"another request is not known", [][]byte{serviceAccept, unknown(service), unknown(open)}, true},
		{"nonsense", [][]byte{serviceAccept, {200}}, true},
		{"granted before the service", [][]byte{{msgUserauthSuccess}}, true},
	} {
		c, _, err := against(t, asOpenSSH, true, 1, func(h *hostile) {
			for p := h.hear(); p != nil && p[0] != msgRequest; p = h.hear() {
			}
			h.say(test.says...)
		})
		if err == nil || c.Asked() != test.ran {
			t.Errorf("%s: may have run %v, %v", test.name, c.Asked(), err)
		}
	}
}

// TestKeysBeforeLogin: as ssh does, a key exchange that the server begins before the login has
// ended is refused at once, also where the server waits for us.
func TestKeysBeforeLogin(t *testing.T) {
	for _, version := range []string{asOpenSSH, asOther} {
		_, _, err := against(t, version, true, 1, func(h *hostile) {
			h.say(h.init().marshal())
			for p := h.hear(); p != nil && p[0] != msgKexInit; p = h.hear() {
			}
			h.hear()
		})
		if err == nil || !strings.Contains(err.Error(), "type 20") {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// TestStrictToTheLetter: nothing but its own messages comes in a strict key exchange, up to its
// end.
func TestStrictToTheLetter(t *testing.T) {
	for _, extra := range [][]byte{{msgIgnore, 0, 0, 0, 0}, {msgDebug, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {msgUnimplemented, 0, 0, 0, 0}, {msgExtInfo, 0, 0, 0, 0}} {
		_, signed, err := against(t, asOther, true, 1, func(h *hostile) { h.drain() }, extra)
		if err == nil || signed > 0 || !strings.Contains(err.Error(), "unexpected message") {
			t.Errorf("message %d: %d signatures, %v", extra[0], signed, err)
		}
	}
}
