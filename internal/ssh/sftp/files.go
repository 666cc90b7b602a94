package sftp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"sshpace/internal/ssh/channel"
)

// Status codes (draft section 7).
const (
	statusOK          = 0
	statusEOF         = 1
	statusNoSuchFile  = 2
	statusPermission  = 3
	statusUnsupported = 8
)

// Failure is the status of an error without a number in the protocol.
const Failure = 4

// maxText is how much of a server's message is kept.
const maxText = 300

// StatusError is a server's answer to a request that failed. It is fs.ErrNotExist or
// fs.ErrPermission for those codes, io.EOF at an end and errors.ErrUnsupported for an unknown
// request.
type StatusError struct {
	Code uint32
	Text string // the server's words; not to be shown as they are
}

func (e *StatusError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("SFTP status %d", e.Code)
	}
	return e.Text
}

// Is compares with errors of the standard library.
func (e *StatusError) Is(target error) bool {
	switch e.Code {
	case statusEOF:
		return target == io.EOF
	case statusNoSuchFile:
		return target == fs.ErrNotExist
	case statusPermission:
		return target == fs.ErrPermission
	case statusUnsupported:
		return target == errors.ErrUnsupported
	}
	return false
}

// status parses a reply with a status only.
func (x *call) status() error {
	if x.kind != typeStatus {
		return broken("reply %d where a status was to come", x.kind)
	}
	d := &channel.Fields{Rest: x.body}
	code := d.Number()
	text := string(d.Text()) // OpenSSH before 2.3 had none
	if code == statusOK {
		return nil
	}
	return &StatusError{code, text[:min(len(text), maxText)]}
}

// unexpected returns an error of the server, or of a reply of the wrong kind.
func (x *call) unexpected() error {
	if err := x.status(); err != nil {
		return err
	}
	return broken("success where an answer was to come")
}

// simple makes a request that only succeeds or fails.
func (c *Client) simple(kind byte, body []byte) error {
	x, err := c.ask(kind, body)
	if err != nil {
		return err
	}
	return x.status()
}

// Pending is a request whose outcome is unknown.
type Pending struct {
	client *Client
	call   *call
	err    error
}

// Wait returns the outcome. It must be called exactly once.
func (p Pending) Wait() error {
	if err := p.answered(); err != nil {
		return err
	}
	return p.call.status()
}

// answered waits for any reply.
func (p Pending) answered() error {
	if p.err != nil {
		return p.err
	}
	return p.client.wait(p.call)
}

func (c *Client) begin(kind byte, body, data []byte) Pending {
	x, err := c.send(kind, body, data, nil)
	return Pending{c, x, err}
}

// path returns the beginning of a body: one name, or several.
func path(names ...string) []byte { return channel.Text(names...) }

// Lstat asks for the attributes of a name, without following a link if the server can do so.
func (c *Client) Lstat(name string) (Attrs, error) { return c.AskLstat(name).Wait() }

// Stat asks for the attributes of a name, and follows links.
func (c *Client) Stat(name string) (Attrs, error) { return c.AskStat(name).Wait() }

// AskLstat begins Lstat.
func (c *Client) AskLstat(name string) PendingAttrs {
	return PendingAttrs{name, typeLstat, c.begin(typeLstat, path(name), nil)}
}

// AskStat begins Stat.
func (c *Client) AskStat(name string) PendingAttrs {
	return PendingAttrs{name, typeStat, c.begin(typeStat, path(name), nil)}
}

// PendingAttrs are attributes that have not arrived yet.
type PendingAttrs struct {
	name  string
	kind  byte
	asked Pending
}

// Wait returns the attributes. It must be called at most once.
func (p PendingAttrs) Wait() (Attrs, error) {
	a, err := p.asked.attrs()
	if !mayLack(err) {
		return a, err
	}
	other := byte(typeStat)
	if p.kind == typeStat {
		other = typeLstat
	}
	b, failed := p.asked.client.begin(other, path(p.name), nil).attrs()
	if mayLack(failed) || other == typeLstat && b.IsLink() {
		return a, err
	}
	return b, failed
}

// mayLack reports whether an error may be that of a server without the request.
func mayLack(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported)
}

func (p Pending) attrs() (Attrs, error) {
	if err := p.answered(); err != nil {
		return Attrs{}, err
	}
	x := p.call
	if x.kind != typeAttrs {
		return Attrs{}, x.unexpected()
	}
	d := &channel.Fields{Rest: x.body}
	a := readAttrs(d)
	if d.Err() != nil {
		return a, broken("attributes that end early")
	}
	return a, nil
}

// Setstat begins to change attributes.
func (c *Client) Setstat(name string, a Attrs) Pending {
	return c.begin(typeSetstat, appendAttrs(path(name), a), nil)
}

// Mkdir makes a directory.
func (c *Client) Mkdir(name string, perm fs.FileMode) Pending {
	return c.begin(typeMkdir, appendAttrs(path(name), Attrs{Has: HasMode, Mode: uint32(perm.Perm())}), nil)
}

// Remove removes a file or link.
func (c *Client) Remove(name string) error { return c.simple(typeRemove, path(name)) }

// Replace renames a file. If the server can (posix-rename@openssh.com), it replaces an existing
// file with the new name in one step; another server may refuse, and then has done nothing.
func (c *Client) Replace(from, to string) Pending {
	if c.posix {
		return c.begin(typeExtended, path("posix-rename@openssh.com", from, to), nil)
	}
	return c.Rename(from, to)
}

// Rename renames a file or directory if nothing has the new name yet.
func (c *Client) Rename(from, to string) Pending {
	return c.begin(typeRename, path(from, to), nil)
}

// Link gives a file a second name (hardlink@openssh.com), if the server can.
func (c *Client) Link(name, second string) Pending {
	if !c.hardLinks {
		return Failed(&StatusError{Code: statusUnsupported})
	}
	return c.begin(typeExtended, path("hardlink@openssh.com", name, second), nil)
}

// Rmdir removes an empty directory.
func (c *Client) Rmdir(name string) error { return c.simple(typeRmdir, path(name)) }

// Symlink makes a symbolic link. The order of its arguments is OpenSSH's (PROTOCOL section 4.1), or
// the draft's where LearnLinks has found that.
func (c *Client) Symlink(target, name string) error {
	if c.links.turned {
		target, name = name, target
	}
	return c.simple(typeSymlink, path(target, name))
}

// links describes how a server treats symbolic links.
type links struct {
	turned   bool // it takes the name before the target, as the draft has it
	follows  bool // it looks at and renames the file that a link points to
	resolves bool // its target of a link is already resolved
}

// errElsewhere says that a server changes the target of a link.
var errElsewhere = errors.New("the host makes links that lead elsewhere")

// LearnLinks finds out the server's order of the two names of a link, by a link to its own
// directory with an unused name: in the other order the link would get the name of the directory,
// which no server permits. No other request about links may be running.
func (c *Client) LearnLinks(name string) error {
	c.links = links{}
	refused := c.Symlink(".", name)
	if refused != nil {
		if c.links.turned = true; c.Symlink(".", name) != nil {
			return refused
		}
	}
	a, err := c.Lstat(name)
	if err != nil {
		return err
	}
	leads, err := c.Readlink(name)
	if a.IsLink() {
		if err == nil && leads != "." {
			return errElsewhere
		}
		return nil
	}
	c.links.follows, c.links.resolves = true, leads != "."
	return err
}

// RenamesLinks reports whether a link is renamed itself, ResolvesLinks whether Readlink returns a
// target resolved from the server's first directory; both as far as LearnLinks was called.
func (c *Client) RenamesLinks() bool  { return !c.links.follows }
func (c *Client) ResolvesLinks() bool { return c.links.resolves }

// Readlink returns the target of a symbolic link.
func (c *Client) Readlink(name string) (string, error) { return c.oneName(typeReadlink, path(name)) }

// Expand returns the absolute name of ~ or ~user (expand-path@openssh.com), errors.ErrUnsupported
// where the server does not support it.
func (c *Client) Expand(name string) (string, error) {
	if !c.expands {
		return "", errors.ErrUnsupported
	}
	return c.oneName(typeExtended, path("expand-path@openssh.com", name))
}

// RealPath begins to ask for the absolute name of a name, from the server's first directory.
func (c *Client) RealPath(name string) PendingName {
	return PendingName{c.begin(typeRealpath, path(name), nil)}
}

// oneName makes a request with one name in its reply.
func (c *Client) oneName(kind byte, body []byte) (string, error) {
	return PendingName{c.begin(kind, body, nil)}.Wait()
}

// PendingName is a name that has not arrived yet.
type PendingName struct{ asked Pending }

// Wait returns the name. It must be called at most once.
func (p PendingName) Wait() (string, error) {
	if err := p.asked.answered(); err != nil {
		return "", err
	}
	name := ""
	n, err := p.asked.call.names(func(e Entry) error { name = e.Name; return nil })
	if err == nil && n != 1 {
		err = broken("%d names for one", n)
	}
	return name, err
}

// Entry is one name in a directory.
type Entry struct {
	Name  string
	Attrs Attrs
}

// names calls use for the names of a reply, and counts them.
func (x *call) names(use func(Entry) error) (n int, err error) {
	if x.kind != typeName {
		return 0, x.unexpected()
	}
	d := &channel.Fields{Rest: x.body}
	for left := d.Number(); left > 0; left-- {
		name := string(d.Text())
		d.Text() // the line of ls -l
		attrs := readAttrs(d)
		if d.Err() != nil {
			return n, broken("a list of names that ends early")
		}
		if err := use(Entry{name, attrs}); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

const (
	// leastAhead ask for the names of a small directory, and for their end.
	leastAhead = 2
	// dirAhead is how many replies about a directory that fills one are requested at once: a reply
	// of OpenSSH's server has 100 names.
	dirAhead = 8
	// maxEmpty is how many of them may hold no name.
	maxEmpty = 100
)

// ReadDir lists a directory in the server's order, "." and ".." included, and calls use for each
// name. It keeps none; an error of use, which may not be io.EOF, ends it.
func (c *Client) ReadDir(name string, use func(Entry) error) error {
	handle, err := c.handle(typeOpendir, path(name))
	if err != nil {
		return err
	}
	defer func() { go c.begin(typeClose, path(handle), nil).Wait() }() // nothing depends on the answer
	empty := 0
	for ahead := leastAhead; err == nil; ahead = dirAhead {
		asked := make([]Pending, ahead)
		for i := range asked {
			asked[i] = c.begin(typeReaddir, path(handle), nil)
		}
		for _, reply := range asked {
			failed := reply.answered() // also of those that nobody waits for any more
			if err != nil {
				continue
			}
			n := 0
			if err = failed; err == nil {
				n, err = reply.call.names(use)
			}
			if n == 0 && err == nil {
				if empty++; empty > maxEmpty {
					err = broken("lists without a name")
				}
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (c *Client) handle(kind byte, body []byte) (string, error) {
	x, err := c.ask(kind, body)
	if err != nil {
		return "", err
	}
	if x.kind != typeHandle {
		return "", x.unexpected()
	}
	d := &channel.Fields{Rest: x.body}
	handle := string(d.Text())
	if d.Err() != nil || len(handle) > maxHandle {
		return "", broken("a handle of %d bytes", len(x.body))
	}
	return handle, nil
}

// How a file is opened (draft section 6.3).
const (
	Read   = 1
	Write  = 2
	Create = 8
	Trunc  = 16
	Excl   = 32
)

// File is an open file.
type File struct {
	client *Client
	handle string
}

// Open opens a file; perm is for a new one.
func (c *Client) Open(name string, how uint32, perm fs.FileMode) (*File, error) {
	body := channel.AppendNumber(path(name), how)
	handle, err := c.handle(typeOpen, appendAttrs(body, Attrs{Has: HasMode, Mode: uint32(perm.Perm())}))
	if err != nil {
		return nil, err
	}
	return &File{c, handle}, nil
}

// Chunk returns the most bytes of one request.
func (f *File) Chunk() int { return f.client.Chunk() }

// part returns the body of a request about size bytes at an offset.
func (f *File) part(offset int64, size int) []byte {
	return channel.AppendNumber(channel.AppendLong(path(f.handle), uint64(offset)), uint32(size))
}

// WriteAt begins to write at most Chunk bytes, which may be reused at once.
func (f *File) WriteAt(data []byte, offset int64) Pending {
	return f.client.begin(typeWrite, f.part(offset, len(data)), data)
}

// PendingRead is a read whose data have not arrived yet.
type PendingRead struct {
	client *Client
	call   *call
	err    error
}

// ReadAt begins to read at most Chunk bytes into a buffer that belongs to the client until Wait.
func (f *File) ReadAt(into []byte, offset int64) PendingRead {
	x, err := f.client.send(typeRead, f.part(offset, len(into)), nil, into)
	return PendingRead{f.client, x, err}
}

// Wait returns how many bytes came, io.EOF at the end of the file. It must be called exactly once.
func (p PendingRead) Wait() (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	if err := p.client.wait(p.call); err != nil {
		return 0, err
	}
	if p.call.kind != typeData {
		return 0, p.call.unexpected()
	}
	return p.call.n, nil
}

// Setstat begins to change attributes.
func (f *File) Setstat(a Attrs) Pending {
	return f.client.begin(typeFsetstat, appendAttrs(path(f.handle), a), nil)
}

// Close begins to close the file.
func (f *File) Close() Pending { return f.client.begin(typeClose, path(f.handle), nil) }

// Failed returns a request that failed before it was made.
func Failed(err error) Pending { return Pending{err: err} }

// Free returns how many bytes the user may still write near a name (statvfs@openssh.com); known is
// false where the server does not say.
func (c *Client) Free(name string) (free uint64, known bool) {
	x, err := c.ask(typeExtended, path("statvfs@openssh.com", name))
	if err != nil || x.kind != typeExtendedReply {
		return 0, false
	}
	d := &channel.Fields{Rest: x.body}
	d.Long() // block size
	fragment := d.Long()
	d.Long() // blocks
	d.Long() // free ones
	available := d.Long()
	return fragment * available, d.Err() == nil
}
