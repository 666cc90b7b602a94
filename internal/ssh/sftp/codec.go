package sftp

import (
	"encoding/binary"
	"io/fs"
	"time"
)

// encoder makes the body of a request.
type encoder struct{ b []byte }

func (e *encoder) uint32(v uint32) { e.b = binary.BigEndian.AppendUint32(e.b, v) }
func (e *encoder) uint64(v uint64) { e.b = binary.BigEndian.AppendUint64(e.b, v) }
func (e *encoder) text(s string)   { e.uint32(uint32(len(s))); e.b = append(e.b, s...) }

// decoder reads the body of a reply; bad says that it was too short.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.rest) {
		d.bad, d.rest = true, nil
		return make([]byte, max(min(n, 8), 0))
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) uint32() uint32 { return binary.BigEndian.Uint32(d.take(4)) }
func (d *decoder) uint64() uint64 { return binary.BigEndian.Uint64(d.take(8)) }

func (d *decoder) text() string {
	n := int(d.uint32())
	if n > len(d.rest) {
		d.bad, d.rest = true, nil
		return ""
	}
	return string(d.take(n))
}

// Attrs are the attributes of a file (draft section 5), as far as the server
// tells or is to set them.
type Attrs struct {
	Has   uint32 // which fields hold, of the Has constants
	Size  uint64
	UID   uint32
	GID   uint32
	Mode  uint32 // with the type, as in stat(2)
	Atime uint32 // seconds since 1970
	Mtime uint32
}

// What Attrs may hold.
const (
	HasSize  = 1
	HasOwner = 2
	HasMode  = 4
	HasTimes = 8
	hasMore  = 1 << 31
)

// Types of files in Mode, as in stat(2) everywhere.
const (
	typeMask    = 0o170000
	typeDir     = 0o040000
	typeRegular = 0o100000
	typeLink    = 0o120000
)

// IsDir tells whether it is known to be a folder.
func (a *Attrs) IsDir() bool { return a.is(typeDir) }

// IsRegular tells whether it is known to be a file with content.
func (a *Attrs) IsRegular() bool { return a.is(typeRegular) }

// IsLink tells whether it is known to be a symbolic link.
func (a *Attrs) IsLink() bool { return a.is(typeLink) }

func (a *Attrs) is(kind uint32) bool { return a.Has&HasMode != 0 && a.Mode&typeMask == kind }

// Perm is the permission bits.
func (a *Attrs) Perm() fs.FileMode { return fs.FileMode(a.Mode & 0o777) }

// Modified is when the content last changed.
func (a *Attrs) Modified() time.Time { return time.Unix(int64(a.Mtime), 0) }

func (e *encoder) attrs(a Attrs) {
	e.uint32(a.Has)
	if a.Has&HasSize != 0 {
		e.uint64(a.Size)
	}
	if a.Has&HasOwner != 0 {
		e.uint32(a.UID)
		e.uint32(a.GID)
	}
	if a.Has&HasMode != 0 {
		e.uint32(a.Mode)
	}
	if a.Has&HasTimes != 0 {
		e.uint32(a.Atime)
		e.uint32(a.Mtime)
	}
}

func (d *decoder) attrs() Attrs {
	a := Attrs{Has: d.uint32()}
	if a.Has&HasSize != 0 {
		a.Size = d.uint64()
	}
	if a.Has&HasOwner != 0 {
		a.UID, a.GID = d.uint32(), d.uint32()
	}
	if a.Has&HasMode != 0 {
		a.Mode = d.uint32()
	}
	if a.Has&HasTimes != 0 {
		a.Atime, a.Mtime = d.uint32(), d.uint32()
	}
	if a.Has&hasMore != 0 {
		for n := d.uint32(); n > 0 && !d.bad; n-- {
			d.text()
			d.text()
		}
	}
	return a
}
