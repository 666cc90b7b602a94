package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"sshpace/internal/fanout/job"
)

// user connects to the hub of a directory as a program of its own would: with the credential of a
// role, and whatever it likes to send.
func user(t *testing.T, dir string, r job.Role) *nats.Conn {
	t.Helper()
	d := &dialer{ctx: t.Context(), open: func(ctx context.Context) (net.Conn, credential, error) { return local(ctx, dir, r) }}
	nc, err := nats.Connect("nats://hub", nats.SetCustomDialer(d), nats.SkipHostLookup(), nats.UserJWT(d.token, d.sign), nats.CustomInboxPrefix(inbox(r)),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// A launcher of the pool web sees and changes nothing of the pool db, and nothing of the hub.
func TestLauncherSeesItsPool(t *testing.T) {
	t.Parallel()
	s := serve(t, job.Serving{})
	dir := s.params.Dir
	client, db := busOf(t, s, job.RoleClient), busOf(t, s, job.LauncherRole("db"))
	ctx := soon(t)
	for _, pool := range []string{"web", "db"} {
		if err := client.Put(ctx, job.Entry{Subject: "job." + pool + ".j-1.0", Data: []byte("secret of " + pool)}); err != nil {
			t.Fatal(err)
		}
		if err := client.Put(ctx, job.Entry{Subject: "batch." + pool + ".j-1.0"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Append(ctx, job.Entry{Subject: "event.db.j-1.0", Data: []byte("secret of db")}, 0, "1"); err != nil {
		t.Fatal(err)
	}
	before, err := client.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	evil := user(t, dir, job.LauncherRole("web"))
	// What is its own works.
	for _, ask := range []string{"$JS.API.DIRECT.GET.JOBS.job.web.j-1.0", "$JS.API.CONSUMER.CREATE.BATCHES.web.batch.web.>"} {
		data := []byte(`{"stream_name":"BATCHES","config":{"durable_name":"web","filter_subject":"batch.web.>","ack_policy":"explicit"}}`)
		if strings.Contains(ask, "DIRECT") {
			data = nil
		}
		if m, err := evil.Request(ask, data, 5*time.Second); err != nil || bytes.Contains(m.Data, []byte(`"error"`)) {
			t.Errorf("%s: %v, %s", ask, err, m.Data)
		}
	}
	create := func(stream, name, filter, inside string) (string, string) {
		return "$JS.API.CONSUMER.CREATE." + stream + "." + name + "." + filter,
			fmt.Sprintf(`{"stream_name":%q,"config":{"name":%q,"filter_subject":%q,"ack_policy":"none","mem_storage":true,"inactive_threshold":60000000000}}`, stream, name, inside)
	}
	asks := [][2]string{
		{"event.db.j-1.0", "forged"}, {"alive.db.evil", "{}"}, {"job.web.j-1.1", "forged"}, {"job.db.j-1.1", ""}, {"batch.db.j-1.1", ""}, {"batch.web.j-1.1", ""}, {"stop.db.j-1.0", "{}"},
		{"$JS.API.DIRECT.GET.JOBS.job.db.j-1.0", ""}, {"$JS.API.DIRECT.GET.EVENTS.event.db.j-1.0", ""}, {"$JS.API.DIRECT.GET.JOBS", `{"last_by_subj":"job.db.j-1.0"}`},
		{"$JS.API.STREAM.MSG.GET.JOBS", `{"last_by_subj":"job.db.j-1.0"}`}, {"$JS.API.STREAM.INFO.JOBS", `{"subjects_filter":">"}`}, {"$JS.API.STREAM.NAMES", ""}, {"$JS.API.INFO", ""},
		{"$JS.API.STREAM.PURGE.EVENTS", ""}, {"$JS.API.STREAM.DELETE.EVENTS", ""}, {"$JS.API.STREAM.CREATE.X", `{"name":"X","subjects":["x"]}`}, {"$JS.API.STREAM.UPDATE.JOBS", "{}"},
		{"$JS.API.CONSUMER.NAMES.JOBS", ""}, {"$JS.API.CONSUMER.LIST.BATCHES", ""}, {"$JS.API.CONSUMER.DELETE.BATCHES.db", ""}, {"$JS.API.CONSUMER.MSG.NEXT.BATCHES.db", "1"},
		{"$JS.API.CONSUMER.CREATE.JOBS", `{"stream_name":"JOBS","config":{"ack_policy":"none"}}`}, {"$JS.API.CONSUMER.CREATE.JOBS.x", `{"stream_name":"JOBS","config":{"name":"x","ack_policy":"none"}}`},
		{"$JS.API.CONSUMER.DURABLE.CREATE.BATCHES.web", `{"stream_name":"BATCHES","config":{"durable_name":"web","ack_policy":"explicit"}}`},
		{"$JS.ACK.BATCHES.db.1.1.1.1.0", "+ACK"}, {"$SYS.REQ.SERVER.PING", ""}, {"_INBOX.client.x", "forged"}, {"_INBOX.work.db.x", "forged"},
	}
	for _, c := range [][4]string{{"JOBS", "x", "job.db.>", "job.db.>"}, {"JOBS", "x", "job.web.>", "job.db.>"}, {"EVENTS", "x", "event.>", "event.>"}, {"BATCHES", "db", "batch.db.>", "batch.db.>"}, {"BATCHES", "x", "batch.web.>", "batch.web.>"}} {
		subject, data := create(c[0], c[1], c[2], c[3])
		asks = append(asks, [2]string{subject, data})
	}
	for _, filters := range []string{`"filter_subjects":["job.db.>"]`, `"filter_subject":"job.web.>","filter_subjects":["job.web.>","job.db.>"]`, `"filter_subject":"job.web.>","FILTER_SUBJECT":"job.db.>"`} {
		asks = append(asks, [2]string{"$JS.API.CONSUMER.CREATE.JOBS.x.job.web.>", `{"stream_name":"JOBS","config":{"name":"x",` + filters + `,"ack_policy":"none","mem_storage":true}}`})
	}
	for _, body := range []string{`{"last_by_subj":"job.db.j-1.0"}`, `{"seq":2}`, `{"batch":10,"multi_last":["job.>"]}`} {
		m, err := evil.Request("$JS.API.DIRECT.GET.JOBS.job.web.j-1.0", []byte(body), time.Second)
		if err == nil && bytes.Contains(m.Data, []byte("secret of db")) {
			t.Errorf("%s is answered: %s", body, m.Data)
		}
	}
	for _, a := range asks {
		if m, err := evil.Request(a[0], []byte(a[1]), 100*time.Millisecond); err == nil && !bytes.Contains(m.Data, []byte(`"error"`)) {
			t.Errorf("%s is answered: %s", a[0], m.Data)
		}
	}
	for _, subject := range []string{">", "event.>", "job.db.>", "_INBOX.>", "_INBOX.client.>", "_INBOX.work.db.>", "$JS.>", "$SYS.>"} {
		sub, err := evil.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = db.Append(ctx, job.Entry{Subject: "event.db.j-1.0", Data: []byte("secret")}, 0, "again")
		if m, err := sub.NextMsg(100 * time.Millisecond); err == nil {
			t.Errorf("%s: it hears %s", subject, m.Data)
		}
	}
	// The server itself would write for it: answers to a subject of others, and consumers that
	// deliver to one.
	for name, send := range map[string]func(*nats.Conn) error{
		"an answer to a batch": func(nc *nats.Conn) error { return nc.PublishRequest("alive.web.evil", "batch.db.j-1.1", []byte("{}")) },
		"an answer to a journal": func(nc *nats.Conn) error {
			return nc.PublishRequest("$JS.API.DIRECT.GET.JOBS.job.web.j-1.0", "event.db.j-1.0", nil)
		},
		"with headers": func(nc *nats.Conn) error {
			return nc.PublishMsg(&nats.Msg{Subject: "event.web.j-1.0", Reply: "event.db.j-1.0", Header: nats.Header{"Owner": {"x"}}})
		},
		"a consumer that delivers": func(nc *nats.Conn) error {
			subject, data := create("ALIVE", "y", "alive.web.>", "alive.web.>")
			_, err := nc.Request(subject, []byte(strings.Replace(data, `"ack_policy"`, `"Deliver_\u0053ubject":"event.db.j-1.0","ack_policy"`, 1)), time.Second)
			return err
		},
	} {
		nc := user(t, dir, job.LauncherRole("web"))
		_ = send(nc)
		if nc.FlushTimeout(5*time.Second) == nil {
			t.Errorf("%s: the connection lives", name)
		}
	}
	after, err := client.Status(ctx)
	for i := range after.Streams {
		if err != nil || after.Streams[i].Messages != before.Streams[i].Messages {
			t.Errorf("%s: %d entries, there were %d; %v", after.Streams[i].Name, after.Streams[i].Messages, before.Streams[i].Messages, err)
		}
	}
	if got := collect(t, client, "event.db.*.*", 0); len(got) != 1 || string(got[0].Data) != "secret of db" {
		t.Errorf("the journal of db: %+v", got)
	}
	web := busOf(t, s, job.LauncherRole("web"))
	if _, err := web.Append(ctx, job.Entry{Subject: "event.db.j-1.0"}, 1, "2"); !errors.Is(err, job.ErrRefused) {
		t.Errorf("a journal of others: %v", err)
	}
}

// What is not the protocol as our clients speak it ends the connection, and does not reach the
// server.
func TestFilter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"PING\r\n":                             true,
		"PUB a.b 2\r\nhi\r\n":                  true,
		"PUB a.b _INBOX.x.y 0\r\n\r\nPING\r\n": true,
		"HPUB a.b _INBOX.x 12 14\r\nNATS/1.0\r\n\r\nhi\r\n": true,
		"SUB _INBOX.x.> 1\r\n":                              true,
		"PUB a.b event.x 2\r\nhi\r\n":                       false,
		"PUB a.b\t_INBOX.x\tevent.x 2\r\nhi\r\n":            false,
		"PUB  a.b 2\r\nhi\r\n":                              false,
		"PUB a.b 2\nhi\r\n":                                 false,
		"pub a.b 2\r\nhi\r\n":                               false,
		"PUB a.b -2\r\nhi\r\n":                              false,
		"PUB a.b 99999999\r\nhi\r\n":                        false,
		"HPUB a.b event.x 12 14\r\nNATS/1.0\r\n\r\nhi\r\n":  false,
		"HPUB a.b 14 12\r\nNATS/1.0\r\n\r\nhi\r\n":          false,
		"A+ a\r\n": false,
		"PUB $JS.API.CONSUMER.CREATE.X.y 36\r\n{\"config\":{\"deliver_subject\":\"a.b\"}} \r\n": false,
		"PUB $JS.API.CONSUMER.CREATE.X.y 4\r\n{} x\r\n":                                         false,
	} {
		var got bytes.Buffer
		err := filter(&got, strings.NewReader(text))
		if passed := errors.Is(err, io.EOF) && got.String() == text; passed != want || !want && got.Len() > 0 {
			t.Errorf("%q: %v, passed %q", text, err, &got)
		}
	}
}

// credentialFile makes one, as its users keep it.
func credentialFile(t *testing.T, dir string, r job.Role, valid time.Duration) string {
	t.Helper()
	text, err := NATS{}.Credential(dir, r, valid)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "creds")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A credential that expires ends its connection; a new one in its file lets the user go on.
func TestCredentialExpires(t *testing.T) {
	t.Parallel()
	s := serve(t, job.Serving{Listen: "127.0.0.1:0"})
	at := "nats://" + s.doors[1].Addr().String()
	path := credentialFile(t, s.params.Dir, job.LauncherRole("web"), 3*time.Second)
	said := make(chan error, 100)
	b, err := NATS{}.Dial(t.Context(), job.Address{Role: job.LauncherRole("web"), URL: at, Credential: path, Away: func(err error) { said <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Append(soon(t), job.Entry{Subject: event}, 0, "1"); err != nil {
		t.Fatal(err)
	}
	if err := <-said; err == nil {
		t.Fatal("it is not away")
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := b.Append(short, job.Entry{Subject: event}, 1, "2"); !errors.Is(err, job.ErrAway) {
		t.Errorf("with an expired credential: %v", err)
	}
	for name, want := range map[string]string{path: "has expired on", credentialFile(t, s.params.Dir, job.RoleClient, time.Hour): `is for the role "client", not "work:web"`} {
		if _, err := (NATS{}).Dial(t.Context(), job.Address{Role: job.LauncherRole("web"), URL: at, Credential: name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	fresh, err := os.ReadFile(credentialFile(t, s.params.Dir, job.LauncherRole("web"), time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, fresh, 0o600); err != nil {
		t.Fatal(err)
	}
	if seq, err := b.Append(soon(t), job.Entry{Subject: event}, 1, "2"); err != nil || seq != 2 {
		t.Errorf("with a new one: %d, %v", seq, err)
	}
	if err := <-said; err != nil {
		t.Errorf("it is said: %v", err)
	}
}

// Credentials that were taken back are refused by a hub that is started anew; new ones are not.
func TestRevoked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, job.Serving{Dir: dir}).Close()
	old := credentialFile(t, dir, job.RoleClient, time.Hour)
	// They have whole seconds, and the clock of files is some milliseconds behind.
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 50*time.Millisecond)))
	if err := os.WriteFile(filepath.Join(dir, revokedFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, job.Serving{Dir: dir, Listen: "127.0.0.1:0"})
	a := job.Address{Role: job.RoleClient, URL: "nats://" + s.doors[1].Addr().String(), Credential: old}
	if _, err := (NATS{}).Dial(t.Context(), a); !errors.Is(err, job.ErrRefused) {
		t.Errorf("an old one: %v", err)
	}
	a.Credential = credentialFile(t, dir, job.RoleClient, time.Hour)
	b, err := NATS{}.Dial(t.Context(), a)
	if err != nil {
		t.Fatalf("a new one: %v", err)
	}
	b.Close()
}

// Credentials of another hub, others' files and what is not a credential are refused in words.
func TestBadCredentials(t *testing.T) {
	t.Parallel()
	s, other := serve(t, job.Serving{Listen: "127.0.0.1:0"}), serve(t, job.Serving{})
	foreign := credentialFile(t, other.params.Dir, job.RoleClient, time.Hour)
	open := credentialFile(t, s.params.Dir, job.RoleClient, time.Hour)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	nothing := filepath.Join(t.TempDir(), "creds")
	if err := os.WriteFile(nothing, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{foreign: "the hub does not permit it", open: "is open to others", nothing: "is not a credential", filepath.Join(t.TempDir(), "none"): "no such file"} {
		_, err := NATS{}.Dial(t.Context(), job.Address{Role: job.RoleClient, URL: "nats://" + s.doors[1].Addr().String(), Credential: path})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := (NATS{}).Dial(t.Context(), job.Address{Role: "work:a.b", Dir: s.params.Dir}); err == nil {
		t.Error("a pool with a dot")
	}
}
