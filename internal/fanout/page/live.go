package page

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"sshpace/internal/base/sched"
)

// A page is made anew at most every refresh, and takes at most a part of the time, however long it
// takes. A browser that does not read for patience is left.
const (
	refresh  = time.Second
	patience = 10 * time.Second
	watchers = 64 // at most, of all pages
)

// feed is a page that browsers watch. It is made once for all of them, as long as there are any.
type feed struct {
	watchers int
	end      context.CancelFunc
	parts    map[string]string
	changed  chan struct{} // closed by the next change
}

// watch adds a browser to those of a feed; nil: there are too many.
func (s *server) watch(id string) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := 1
	for _, f := range s.feeds {
		all += f.watchers
	}
	if all > watchers {
		return nil
	}
	f := s.feeds[id]
	if f == nil {
		ctx, end := context.WithCancel(context.Background())
		f = &feed{end: end, changed: make(chan struct{})}
		s.feeds[id] = f
		go s.feed(ctx, id, f)
	}
	f.watchers++
	return f
}

// leave takes a browser away from a feed.
func (s *server) leave(id string, f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.watchers--; f.watchers == 0 {
		f.end()
		delete(s.feeds, id)
	}
}

// feed keeps a feed current.
func (s *server) feed(ctx context.Context, id string, f *feed) {
	for ctx.Err() == nil {
		begin := time.Now()
		parts := s.parts(ctx, id)
		s.mu.Lock()
		if !maps.Equal(f.parts, parts) {
			f.parts = parts
			close(f.changed)
			f.changed = make(chan struct{})
		}
		s.mu.Unlock()
		sched.For(ctx, max(refresh, 10*time.Since(begin)))
	}
}

// events sends the parts of a page as they change (Server-Sent Events). A browser that is slow gets
// the newest ones.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	id := r.FormValue("job")
	f := s.watch(id)
	if f == nil {
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	defer s.leave(id, f)
	w.Header().Set("Content-Type", "text/event-stream")
	sent, to := map[string]string{}, http.NewResponseController(w)
	for r.Context().Err() == nil {
		s.mu.Lock()
		parts, changed := f.parts, f.changed
		s.mu.Unlock()
		if to.SetWriteDeadline(time.Now().Add(patience)) != nil {
			return
		}
		text := ": here\n\n" // a browser that is gone is noticed
		for name, part := range parts {
			if sent[name] != part {
				text += fmt.Sprintf("event: %s\ndata: %s\n\n", name, strings.ReplaceAll(part, "\n", "\ndata: "))
			}
		}
		sent = parts
		if _, err := w.Write([]byte(text)); err != nil || to.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
		case <-time.After(patience):
		}
	}
}
