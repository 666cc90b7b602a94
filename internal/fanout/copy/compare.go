package copy

import (
	"cmp"
	"errors"
	"io/fs"
	"path"

	"sshpace/internal/base/sched"
	"sshpace/internal/ssh/sftp"
)

// had is the kind of file that a host has under a name.
type had int

const (
	another had = iota // or nothing
	alike              // a file of the same size and time, or of the same size where checksums decide
	altered            // the same with another mode or time
	unknown            // an error, which was reported
)

// needed drops the files that the host has already.
func (p *put) needed(files []*placed) (missing []*placed) {
	each(&p.side, p.atOnce(), files, func(to *placed) {
		var err error
		if to.had, err = p.look(to); err != nil {
			p.fail(to.name, err)
		}
	})
	var same []*placed
	for _, to := range files {
		switch to.had {
		case another:
			missing = append(missing, to)
		case alike, altered:
			same = append(same, to)
		}
	}
	if p.Compare {
		var differ []*placed
		same, differ = p.compared(same)
		missing = append(missing, differ...)
	}
	each(&p.side, p.atOnce(), same, func(to *placed) {
		if to.had == altered {
			err := p.dressed(0, p.client.Setstat(to.name, p.attrsOf(to.item)).Wait())
			if err == nil {
				err = p.confirm(to, to.name)
			}
			if err != nil {
				p.fail(to.name, err)
				return
			}
			p.add(func(t *tally) { t.altered++ })
			p.would("set mode or time of", to.name)
		}
		p.add(func(t *tally) { t.identical++ })
	})
	return missing
}

// look examines the file with a name on the host.
func (p *put) look(to *placed) (had, error) {
	if p.fresh[path.Dir(to.name)] {
		return another, nil
	}
	a, err := p.lstat(to.name)
	to.isLink, to.exists, to.was = a.IsLink(), err == nil, a
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return another, nil
	case err != nil:
		return unknown, err
	case a.IsDir():
		return unknown, errIsDirectory
	case p.isSpecial(to.name, a):
		return unknown, errSpecial
	case !a.IsRegular() || a.Size != uint64(to.size):
		return another, nil
	}
	sameTime := a.Modified().Equal(to.modified)
	switch {
	case sameTime && p.suits(to, a):
		return alike, nil
	case sameTime || p.Compare:
		return altered, nil
	}
	return another, nil
}

// Files that no copy replaces.
var (
	errIsDirectory = errors.New("is a directory on the host")
	errSpecial     = errors.New("is a device, FIFO or socket on the host, which is not replaced")
)

// isSpecial reports whether a name is a device or the like, or leads to one, as /dev/stdout does.
func (p *put) isSpecial(name string, a sftp.Attrs) bool {
	if a.IsLink() {
		a, _ = p.client.Stat(name)
	}
	return a.IsSpecial()
}

// compared finds by checksums which files are the same on the host.
func (p *put) compared(files []*placed) (same, differ []*placed) {
	list := make([]checked, len(files))
	for i, to := range files {
		list[i] = to.checked(to.name)
	}
	good, asked := p.sums(list)
	if !asked {
		var numbers []int
		for i := range list {
			numbers = append(numbers, i)
		}
		each(&p.side, maxRequests, numbers, func(i int) { good[i] = p.readBack(list[i]) == nil })
	}
	for i, to := range files {
		if good[i] {
			same = append(same, to)
		} else {
			differ = append(differ, to)
		}
	}
	return same, differ
}

// checked returns the expected file under a name on the host.
func (to *placed) checked(name string) checked {
	sum, err := to.cksum()
	if err != nil { // it changed: no comparison may hold
		sum++
	}
	return checked{name, sum, to.size}
}

// verified compares the parts with the originals, and copies those once more that were resumed and
// differ, or that are gone.
func (p *put) verified(parts []*placed) (good []*placed) {
	if p.NoVerify {
		return parts
	}
	var unsure []*placed
	var list []checked
	for _, to := range parts {
		if to.poured {
			good = append(good, to)
		} else {
			unsure, list = append(unsure, to), append(list, to.checked(to.part))
		}
	}
	if len(list) == 0 || p.over() {
		return good
	}
	right, _ := p.sums(list)
	wrong := make([]error, len(unsure))
	sched.Do(p.atOnce(), len(wrong), func(i int) {
		if !right[i] {
			wrong[i] = p.readBack(list[i])
		}
	})
	for i, to := range unsure {
		err := wrong[i]
		again := func() error { return p.again(to) }
		if err != nil && to.begun && !p.isOver(err) {
			err = again()
		}
		if err = p.untilOurs(err, again); err == nil {
			good = append(good, to)
			continue
		}
		if !p.isOver(err) {
			p.drop(to.part)
		}
		p.fail(to.name, cmp.Or(to.err, err))
	}
	return good
}

// again writes a file once more, from its beginning, and compares it.
func (p *put) again(to *placed) error {
	p.drop(to.part)
	own, err := p.partOf(to)
	if err != nil {
		return err
	}
	own.lanes = own.holed != "" && p.wanted(to.size) > 1
	to.part, to.begun, to.from, to.kept = own.fresh(), false, 0, 0
	if err := cmp.Or(p.writePart(to, to.part), p.orDrop(to, to.part, to.ended())); err != nil || p.NoVerify {
		return err
	}
	return p.readBack(to.checked(to.part))
}

// readBack compares a file on the host by reading it.
func (s *side) readBack(c checked) error {
	f, err := s.open(s.client, c.name, sftp.Read, 0)
	if err != nil {
		return err
	}
	defer func() { f.Close().Wait() }()
	s.add(func(t *tally) { t.reread++ })
	sum := newCksum()
	if err := s.read(f, 0, c.size, func(p []byte, _ int64) error { _, err := sum.Write(p); return err }); err != nil {
		return err
	}
	if sum.sum() != c.sum {
		return errors.New("the copy differs from the original")
	}
	return nil
}
