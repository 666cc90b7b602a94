package output

import (
	"bytes"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// Words are found in the output of a record, however JSON writes it, and nowhere else in it.
func TestSays(t *testing.T) {
	var record bytes.Buffer
	j := NewRecord(&record, How{})
	list := []host.Host{{Name: "web1"}}
	j.Begin(fleet.Start{ID: "id", Command: "cat secret", Hosts: list})
	for _, text := range []string{"Kernel PANIC at <here>\n", "a \"quoted\"\tword\n", "\xff binary thing\n", "Größe\n"} {
		j.Output(fleet.Event{Host: "web1", Data: []byte(text)})
	}
	j.Done(fleet.Result{Host: list[0], Outcome: fleet.Outcome{Err: "refused"}}, fleet.Summary{})
	for _, tt := range []struct {
		words []string
		want  bool
	}{
		{[]string{"panic"}, true}, {[]string{"kernel panic", "BINARY"}, true}, {[]string{"\"quoted\"\t"}, true}, {[]string{"<here>"}, true}, {[]string{"größe"}, true},
		{[]string{"panic", "nosuch"}, false}, {[]string{"web1"}, false}, {[]string{"stdout"}, false}, {[]string{"secret"}, false}, {[]string{"refused"}, false},
	} {
		if got := Says(bytes.NewReader(record.Bytes()), tt.words); got != tt.want {
			t.Errorf("%q: %v", tt.words, got)
		}
	}
}
