package copy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/ssh/sftp"
)

// Placing is how files come to their places on the hosts.
type Placing struct {
	Mkdir  bool   // missing directories above the destination are made
	Backup string // end of the name under which a replaced file stays; "" = it does not
	Owner  string // USER[:GROUP] of files; "" = whoever writes them
	// Exact is set where an owner or a mode is asked for: a file without them does not get its
	// name.
	Exact  bool
	AsRoot bool // root writes, by sudo
}

// owner holds the numbers of the user and the group of the files.
type owner struct{ uid, gid uint32 }

// findOwner asks the host for the numbers of the owner, and whether we are root there. Where
// nothing can be asked, as of an account for SFTP only, numbers will do.
func (p *put) findOwner() error {
	user, group, named := strings.Cut(p.Owner, ":")
	number := func(name, ask string) string {
		if _, err := strconv.ParseUint(name, 10, 32); err == nil {
			return "; echo " + name
		}
		return "; " + ask
	}
	program := "exec 2>/dev/null; id -u" + number(user, "id -u "+shell.Word(user))
	if named {
		program += number(group, fmt.Sprintf("{ getent group %[1]s || grep ^%[1]s: /etc/group; } | head -n 1 | cut -d: -f3", shell.Word(group)))
	} else {
		program += "; id -g " + shell.Word(user)
	}
	said, err := p.shell(query{program: program})
	var self uint32
	var who owner
	switch answers, _ := fmt.Sscan(said, &self, &who.uid, &who.gid); answers {
	case 0:
		if n, _ := fmt.Sscanf(p.Owner, "%d:%d", &who.uid, &who.gid); n < 2 {
			return fault.WithHint(fmt.Errorf("the host cannot be asked about %s: %w", p.Owner, cmp.Or(err, errors.New("it does not answer"))), "give numbers, as in --owner 1000:1000")
		}
	case 1, 2:
		return fault.WithHint(fmt.Errorf("the host has no user or group %s", p.Owner), "make it there first, or name another one")
	}
	p.owner, p.AsRoot = &who, p.AsRoot || self == 0
	return nil
}

// attrsOf returns the attributes that an item gets on the host.
func (p *put) attrsOf(it *item) sftp.Attrs {
	at := uint32(it.modified.Unix())
	a := sftp.Attrs{Has: sftp.HasMode | sftp.HasTimes, Mode: it.mode(), Atime: at, Mtime: at}
	if p.owner != nil && it.kind == 0 {
		a.Has, a.UID, a.GID = a.Has|sftp.HasOwner, p.owner.uid, p.owner.gid
	}
	return a
}

// suits reports whether a file has the wanted mode and owner.
func (p *put) suits(to *placed, a sftp.Attrs) bool {
	return a.Perm() == to.perm && (p.owner == nil || a.Has&sftp.HasOwner != 0 && owner{a.UID, a.GID} == *p.owner)
}

// dressed is the tally's, except that a refusal is a failure if the user asked for the attributes.
func (p *put) dressed(kind fs.FileMode, err error) error {
	switch {
	case !p.Exact || kind != 0 || err == nil:
		return p.tally.dressed(kind, err)
	case p.owner != nil && !p.AsRoot:
		return fmt.Errorf("its owner and mode cannot be set: %w; root can, as with --sudo", err)
	}
	return fmt.Errorf("its owner and mode cannot be set: %w", err)
}

// confirm looks whether a file has the attributes that were asked for: some servers ignore them.
func (p *put) confirm(to *placed, name string) error {
	if !p.Exact || p.Dry {
		return nil
	}
	a, err := p.client.Lstat(name)
	if err == nil && !p.suits(to, a) {
		err = errors.New("the host does not give it the owner and mode that were asked for")
	}
	return err
}

// settled returns the destination as a name that only root can lead elsewhere. Where another user
// can change a directory of it, that user could put a link into its place at any moment, and root
// would write where the link leads.
func (p *put) settled(dest string) (string, error) {
	at, rest := path.Clean(dest), ""
	for at != path.Dir(at) {
		if a, err := p.client.Stat(at); err == nil && a.IsDir() {
			break
		}
		at, rest = path.Dir(at), path.Join(path.Base(at), rest)
	}
	if strings.HasSuffix(dest, "/") {
		rest += "/"
	}
	real, err := p.client.RealPath(at).Wait()
	if err != nil {
		return "", err
	}
	for directory := real; ; directory = path.Dir(directory) {
		a, err := p.client.Lstat(directory)
		if err == nil {
			err = p.guarded(directory, a, directory != real)
		}
		if err != nil {
			return "", err
		}
		if directory == path.Dir(directory) {
			return strings.TrimSuffix(real, "/") + "/" + rest, nil
		}
	}
}

// guarded refuses a directory that others than root can change. In one with a sticky bit above the
// destination nobody else can rename what is root's.
func (p *put) guarded(name string, a sftp.Attrs, above bool) error {
	const sticky, others = 0o1000, 0o022
	switch isOpen := a.Mode&others != 0 && !(above && a.Mode&sticky != 0); {
	case a.IsLink():
		return fmt.Errorf("%s is a link, which root does not follow there", name)
	case !a.IsDir():
		return errors.New("is not a directory on the host")
	case a.Has&sftp.HasOwner == 0 || a.UID != 0:
		who := strconv.Itoa(int(a.UID))
		said, _ := p.shell(query{program: "exec ls -ld -- " + shell.Quote(name)})
		if words := strings.Fields(said); len(words) > 2 {
			who = words[2]
		}
		return fault.WithHint(fmt.Errorf("%s belongs to %s, who could lead root to other files", name, who), "copy as its owner: --sudo="+shell.Word(who))
	case isOpen:
		return fault.WithHint(fmt.Errorf("others than root can write to %s, and could lead root to other files", name), "choose a directory that only root can change, or copy as one of them: --sudo=USER")
	}
	return nil
}
