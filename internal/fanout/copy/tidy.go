package copy

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sftp"
)

// courtesy is the time after the end of the run for removing unfinished files on the host.
const courtesy = fleet.TermGrace

// unplaced lists files that a copy has made on the host and neither put into place nor removed.
type unplaced struct {
	mu    sync.Mutex
	names map[string]made
}

// made describes a file with such a name.
type made struct{ directory, keep bool } // worth keeping for the next run

func (u *unplaced) add(name string, what made) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names == nil {
		u.names = map[string]made{}
	}
	u.names[name] = what
}

func (u *unplaced) done(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.names, name)
}

func (u *unplaced) has(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.names[name]
	return ok
}

// drop removes a useless file of ours.
func (p *put) drop(name string) {
	if err := p.client.Remove(name); err == nil || errors.Is(err, fs.ErrNotExist) {
		p.made.done(name)
	}
}

// tidy removes at the end the files that are not in their place. After an interruption it leaves
// parts that are worth resuming, and names them. Of files that the host does not remove it names
// the first.
func (p *put) tidy() {
	all := maps.Clone(p.made.names) // nothing else runs by now
	names := slices.Sorted(maps.Keys(all))
	sched.Do(p.atOnce(), len(names), func(i int) {
		switch what := all[names[i]]; {
		case what.keep && p.ctx.Err() != nil:
		case what.directory:
			p.removeDirectory(names[i])
		default:
			p.drop(names[i])
		}
	})
	if p.fatal != nil && p.ctx.Err() == nil { // the connection is lost, which is reported
		return
	}
	var stays []string
	for _, name := range slices.Sorted(maps.Keys(p.made.names)) {
		if all[name].keep && p.ctx.Err() != nil {
			p.say(name, "stays on the host; run the same copy again to continue it")
		} else {
			stays = append(stays, name)
		}
	}
	if len(stays) > 0 {
		p.say(stays[0], "cannot be removed from the host; it holds %s of this copy", unit.Count(len(stays), "unfinished file"))
	}
}

// discard removes useless leftovers of earlier copies. A file that stands aside goes back if its
// place is free.
func (p *put) discard(own part, old leftover) {
	if own.aside().has(old.name) {
		if _, err := p.client.Lstat(own.place); errors.Is(err, fs.ErrNotExist) && p.client.Rename(old.name, own.place).Wait() == nil {
			return
		}
	}
	p.client.Remove(old.name)
}

// clear removes a directory of parts. It is renamed before, so that another copy cannot put
// incomplete directories from it into place.
func (p *put) clear(own part, stage string) {
	if away := own.fresh(); p.client.Rename(stage, away).Wait() == nil {
		p.made.done(stage)
		p.made.add(away, made{directory: true})
		stage = away
	}
	p.removeDirectory(stage)
}

// mostRemovals is how often, mostly once a second, a directory is removed into which another copy's
// tar still writes, which ends when the directory is gone.
const mostRemovals = 30

func (p *put) removeDirectory(name string) {
	for range mostRemovals {
		removed, err := p.removeAll(name, 0)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			p.made.done(name)
			return
		}
		if removed == 0 || !sched.For(p.last, time.Second/2) {
			return
		}
	}
}

// removeAll removes a directory with all its content, and counts the removed files.
func (p *put) removeAll(directory string, depth int) (removed int64, err error) {
	var files, directories []string
	p.client.ReadDir(directory, func(e sftp.Entry) error {
		switch {
		case !isName(e.Name) || e.Name == "." || e.Name == "..":
		case e.Attrs.IsDir():
			directories = append(directories, path.Join(directory, e.Name))
		default:
			files = append(files, path.Join(directory, e.Name))
		}
		if len(files)+len(directories) > maxListed || depth > maxDepth {
			return errors.New("too many names")
		}
		return nil
	})
	var gone atomic.Int64
	for _, name := range directories {
		n, err := p.removeAll(name, depth+1)
		if err == nil {
			n++
		}
		gone.Add(n)
	}
	sched.Do(p.atOnce(), len(files), func(i int) {
		if p.client.Remove(files[i]) == nil {
			gone.Add(1)
		}
	})
	return gone.Load(), p.client.Rmdir(directory)
}
