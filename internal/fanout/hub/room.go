package hub

import (
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/sched"
)

// The room on a disk is looked at every lookEvery. The hub keeps nothing more when less than
// reserve is free, or an eighth of a small disk: the server gives up a stream that it cannot write.
const (
	lookEvery    = 100 * time.Millisecond
	reserve      = 64 << 20
	afterFailure = 10 * time.Second // a quota cannot be seen beforehand
)

// watch keeps the server from filling its disk, and starts it anew where that has happened.
func (s *Server) watch() {
	var until time.Time
	for full := false; sched.For(s.life, lookEvery); {
		free, total, err := space(s.dir.Path())
		if err != nil {
			continue
		}
		want := min(reserve, total/8)
		if free >= want && s.broken() {
			s.say("the hub could not write; it starts anew, and keeps nothing for %s", afterFailure)
			s.stop()
			if err := s.start(s.life); err != nil {
				s.say("the hub cannot start: %v", err)
				continue
			}
			full, until = false, time.Now().Add(afterFailure)
		}
		now := free < want || time.Now().Before(until)
		switch {
		case now == full:
			continue
		case free < want:
			s.say("%s has only %d MiB left: the hub keeps nothing more until %d MiB are free", s.dir.Path(), free>>20, want>>20)
		case !now:
			s.say("the hub keeps entries again")
		}
		if s.bus.prepare(s.life, s.params.Limits, now) == nil {
			full = now
		}
	}
}

// broken reports whether the server has given up writing.
func (s *Server) broken() bool {
	s.mu.Lock()
	log := s.log
	s.mu.Unlock()
	return log.failed()
}

// space returns the free bytes on the disk of a path that our user may fill, and all of them.
func space(path string) (free, total int64, err error) {
	var fs unix.Statfs_t
	err = unix.Statfs(path, &fs)
	return int64(fs.Bavail) * int64(fs.Bsize), int64(fs.Blocks) * int64(fs.Bsize), err
}
