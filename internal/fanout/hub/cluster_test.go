package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"sshpace/internal/fanout/job"
	"sshpace/internal/sys/safedir"
)

// cluster starts three servers of NATS that know each other, as an administrator would set them up,
// and returns their URLs and a credential file of a role.
func cluster(t *testing.T) (at string, servers []*server.Server, creds func(job.Role) string) {
	t.Helper()
	dir, err := safedir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	k, err := openKeys(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	var routes []*url.URL
	var ports []int
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
		l.Close()
	}
	for i := range 3 {
		o := &server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: -1, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), Routes: routes,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i]},
		}
		if err := k.trust(o, time.Time{}); err != nil {
			t.Fatal(err)
		}
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		servers = append(servers, s)
	}
	for i, s := range servers {
		if !s.ReadyForConnections(10 * time.Second) {
			t.Fatal("not ready")
		}
		if i > 0 {
			at += ","
		}
		at += s.ClientURL()
	}
	return at, servers, func(r job.Role) string { return credentialFile(t, dir.Path(), r, time.Hour) }
}

// On a cluster that keeps each entry three times everything is as on a hub of ours, also while one
// of its servers is away.
func TestCluster(t *testing.T) {
	t.Parallel()
	at, servers, creds := cluster(t)
	address := func(r job.Role) job.Address {
		return job.Address{Role: r, URL: at, Cluster: true, Credential: creds(r)}
	}
	admin := address(itself)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := NATS{}.Serve(ctx, job.Serving{Cluster: &admin, Limits: job.Limits{Bytes: 64 << 20, Replicas: 3}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	open := func(r job.Role) job.Bus {
		b, err := NATS{}.Dial(ctx, address(r))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	client, a, b := open(job.RoleClient), open(job.LauncherRole("web")), open(job.LauncherRole("web"))
	if err := client.Put(ctx, job.Entry{Subject: "batch.web.j-1.0"}); err != nil {
		t.Fatal(err)
	}
	w, err := a.Take(ctx, "web", 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var after uint64
	const n = 30
	for i := range n {
		if i == n/2 {
			servers[0].Shutdown()
		}
		entry := job.Entry{Subject: event, Data: []byte(fmt.Sprint(i))}
		seq, err := a.Append(ctx, entry, after, fmt.Sprint(i))
		if err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
		if again, err := a.Append(ctx, entry, after, fmt.Sprint(i)); err != nil || again != seq {
			t.Errorf("entry %d again: %d, %v, want %d", i, again, err, seq)
		}
		if _, err := b.Append(ctx, entry, after, fmt.Sprint("b", i)); !errors.Is(err, job.ErrConflict) {
			t.Errorf("entry %d by another one: %v", i, err)
		}
		after = seq
	}
	if err := w.Done(ctx); err != nil {
		t.Error(err)
	}
	if all := collect(t, client, event, 0); len(all) != n || string(all[n-1].Data) != fmt.Sprint(n-1) {
		t.Errorf("%d entries", len(all))
	}
	if status, err := client.Status(ctx); err != nil || status.Taken["web"]+status.Waiting["web"] != 0 {
		t.Errorf("%+v, %v", status, err)
	}
}
