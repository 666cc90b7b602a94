package dial_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/copy"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/sshtest"
)

// copyTrips counts the round trips of a copy, a cold login included. The dialogue is made anew for
// each try.
func copyTrips(t *testing.T, s server, dialogue func(try int) fleet.Dialogue) {
	try := 0
	countTrips(t, s.port, s.want, func(port int) {
		try++
		tg := dial.Target{User: s.user, Port: port, HostKeys: anyKey{}, ConnectTimeout: time.Minute, Identity: dial.Identity{Files: []string{s.key}}}
		told := &sshtest.Told{}
		if r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "sftp", Dialogue: dialogue(try)}, told)[0]; r.Status() != fleet.OK {
			t.Fatalf("%+v", r)
		}
	})
}

// TestRoundTripsOfCopies: beside the login (4) and the beginning of SFTP (1), what does not depend
// on an answer is asked with it.
func TestRoundTripsOfCopies(t *testing.T) {
	sshd := sshtest.StartSshd(t)
	s := server{"OpenSSH", sshd.User, sshd.Key, sshd.Port, 0}
	dir := t.TempDir()
	for i := range 10 {
		name := filepath.Join(dir, "folder", fmt.Sprint(i))
		if os.MkdirAll(filepath.Dir(name), 0o755) != nil || os.WriteFile(name, []byte(strings.Repeat("x", 100)), 0o644) != nil {
			t.Fatal("no files")
		}
	}
	there := filepath.Join(dir, "there")
	for try := range 33 {
		os.MkdirAll(fmt.Sprint(there, "/", try), 0o755)
	}
	source, _ := os.ReadFile(dir + "/folder/1")
	os.WriteFile(there+"/old", source, 0o644)
	then := time.Now().Add(-time.Hour)
	os.Chtimes(there+"/old", then, then)
	os.Chtimes(dir+"/folder/1", then, then)
	upload := func(name, to string) fleet.Dialogue {
		u := copy.Upload{Dest: to, Sources: func(host.Host) ([]*copy.Source, error) {
			source, err := copy.Scan(name, nil)
			return []*copy.Source{source}, err
		}}
		return u.Dialogue
	}
	for _, tt := range []struct {
		name     string
		want     int
		dialogue func(try int) fleet.Dialogue
	}{
		{"a new file", 10, func(try int) fleet.Dialogue {
			return upload(dir+"/folder/1", fmt.Sprint(there, "/new", try))
		}},
		{"an unchanged file", 6, func(int) fleet.Dialogue { return upload(dir+"/folder/1", there+"/old") }},
		{"a folder", 12, func(try int) fleet.Dialogue {
			return upload(dir+"/folder", fmt.Sprint(there, "/", try))
		}},
		{"fetch", 9, func(try int) fleet.Dialogue {
			d := copy.Download{Sources: []string{dir + "/folder/1"}, Dir: fmt.Sprint(dir, "/fetched", try)}
			return d.Dialogue
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := s
			s.want = tt.want
			copyTrips(t, s, tt.dialogue)
		})
	}
}
