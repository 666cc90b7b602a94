package copy

import (
	"errors"
	"io/fs"
	"path"
)

// link is a symbolic link to make.
type link struct {
	*placed
	taken bool   // something has its name
	now   string // its target, "" if it is not a link
}

// neededLinks drops the links that the host has already.
func (p *put) neededLinks(links []*placed) (missing []*link) {
	all := make([]*link, len(links))
	for i, to := range links {
		all[i] = &link{placed: to}
	}
	each(&p.side, p.atOnce(), all, func(l *link) {
		if p.fresh[path.Dir(l.name)] {
			return
		}
		now, err := p.client.Readlink(l.name)
		l.taken, l.now = !errors.Is(err, fs.ErrNotExist), now
	})
	for _, l := range all {
		if l.taken && l.now == l.target {
			p.add(func(t *tally) { t.identical++ })
		} else {
			missing = append(missing, l)
		}
	}
	return missing
}

// mostTries is the number of directories in which learnLinks tries to make a link.
const mostTries = 8

// learnLinks finds out how the host treats links, while files are copied.
func (p *put) learnLinks(links []*link) (learned <-chan error) {
	end := make(chan error, 1)
	go func() {
		var err error
		tried := map[string]bool{}
		for _, l := range links {
			if directory := path.Dir(l.name); !tried[directory] && len(tried) < mostTries {
				tried[directory] = true
				if err = p.learnIn(newPart(p.host, l.name)); err == nil || p.over() {
					break
				}
			}
		}
		end <- err
	}()
	return end
}

// learnIn finds out the order of the arguments of SSH_FXP_SYMLINK by links in one directory, once.
func (p *put) learnIn(own part) error {
	p.learning.Lock()
	defer p.learning.Unlock()
	if p.learned {
		return nil
	}
	name := own.fresh()
	p.made.add(name, made{})
	err := p.client.LearnLinks(name)
	p.learned = err == nil
	if !p.isOver(err) {
		p.drop(name)
	}
	return err
}

// makeLinks makes links in the host's way, which is known by then.
func (p *put) makeLinks(links []*link, learned <-chan error) {
	unable := <-learned
	each(&p.side, p.atOnce(), links, func(l *link) {
		err := unable
		switch {
		case err != nil:
		case p.client.ResolvesLinks() && l.now != "" && path.Clean(l.now) == l.from():
			p.add(func(t *tally) { t.identical++ })
			return
		default:
			err = p.link(l)
		}
		if err != nil {
			p.fail(l.name, err)
			return
		}
		p.add(func(t *tally) { t.copied++ })
	})
}

// from returns the target of a link, relative to the host's first directory.
func (l *link) from() string {
	if path.IsAbs(l.target) {
		return path.Clean(l.target)
	}
	return path.Join(path.Dir(l.name), l.target)
}

// link makes a link: under its own name if that is free, otherwise in place of the old one, in one
// step if the host renames links.
func (p *put) link(l *link) error {
	p.change(l.placed)
	part := p.left.claim(newPart(p.host, l.name), nil, p.discard)
	begin := func() error { return p.client.Symlink(l.target, l.name) }
	var refused error
	if !l.taken {
		if refused = begin(); !isStatus(refused) {
			return refused
		}
		if l.now, _ = p.client.Readlink(l.name); l.now == l.target { // another copy was quicker
			return nil
		}
	}
	if l.now == "" {
		now, err := p.client.Lstat(l.name)
		switch {
		case err != nil && refused != nil:
			return refused
		case errors.Is(err, fs.ErrNotExist):
			return begin()
		case err != nil:
			return err
		case now.IsDir():
			return errIsDirectory
		case now.IsSpecial():
			return errSpecial
		}
	}
	if err := p.backup(l.name); err != nil {
		return err
	}
	if p.client.RenamesLinks() {
		p.made.add(part, made{})
		err := p.client.Symlink(l.target, part)
		if err != nil {
			return err
		}
		if err = p.client.Replace(part, l.name).Wait(); err == nil {
			p.made.done(part)
		}
		if !isStatus(err) {
			return err
		}
		p.drop(part)
	}
	return p.instead(l.name, begin)
}
