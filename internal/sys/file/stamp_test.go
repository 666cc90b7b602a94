package file

import (
	"testing"
	"time"
)

// Times in names sort, and those of earlier versions are known.
func TestStamp(t *testing.T) {
	at := time.Date(2026, 11, 21, 20, 0, 0, 5_000_000, time.FixedZone("", 3600))
	if one, next := Stamp(at), Stamp(at.Add(1)); one >= next || one != "20261121T190000.005000000Z" || !IsStamp(one) {
		t.Errorf("%s, %s", one, next)
	}
	for text, want := range map[string]bool{"20261121T190000.005Z": true, "20261121T190000Z": false, "20261121": false, "": false} {
		if IsStamp(text) != want {
			t.Errorf("%q is a time: %v", text, !want)
		}
	}
}
