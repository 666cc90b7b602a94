package page

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"sshpace/internal/base/sched"
)

// A page is made anew at most every refresh, and takes a tenth of the time at most. A browser that
// does not read for patience is left.
const (
	refresh  = time.Second
	patience = 10 * time.Second
	watchers = 32 // browsers at most
)

// events sends the parts of a page as they change (Server-Sent Events).
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	defer s.watching.Add(-1)
	if s.watching.Add(1) > watchers {
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	sent, to, last := map[string]string{}, http.NewResponseController(w), time.Time{}
	for r.Context().Err() == nil {
		begin, text := time.Now(), ""
		for name, part := range s.parts(r.Context(), r.FormValue("job")) {
			if sent[name] != part {
				text += fmt.Sprintf("event: %s\ndata: %s\n\n", name, strings.ReplaceAll(part, "\n", "\ndata: "))
				sent[name] = part
			}
		}
		took := time.Since(begin)
		if text != "" || begin.Sub(last) > patience { // otherwise nobody notices that a browser is gone
			_ = to.SetWriteDeadline(time.Now().Add(patience))
			if _, err := fmt.Fprint(w, text, ": \n\n"); err != nil || to.Flush() != nil {
				return
			}
			last = begin
		}
		sched.For(r.Context(), max(refresh, 9*took))
	}
}
