package sftp

import (
	"io/fs"
	"time"

	"sshpace/internal/ssh/channel"
)

// Attrs are the attributes of a file (draft section 5), as far as the server sends them or should
// set them.
type Attrs struct {
	Has   uint32 // which fields hold, of the Has constants
	Size  uint64
	UID   uint32
	GID   uint32
	Mode  uint32 // with the type, as in stat(2)
	Atime uint32 // seconds since 1970
	Mtime uint32
}

// The attributes that Attrs may hold.
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

// IsDir reports whether the attributes are known to be a directory's.
func (a *Attrs) IsDir() bool { return a.is(typeDir) }

// IsRegular reports whether the attributes are known to be those of a regular file.
func (a *Attrs) IsRegular() bool { return a.is(typeRegular) }

// IsLink reports whether the attributes are known to be a symbolic link's.
func (a *Attrs) IsLink() bool { return a.is(typeLink) }

// IsSpecial reports whether the attributes are known to be those of a device, FIFO or socket.
func (a *Attrs) IsSpecial() bool {
	return a.Has&HasMode != 0 && a.Mode&typeMask != 0 && !a.IsDir() && !a.IsRegular() && !a.IsLink()
}

func (a *Attrs) is(kind uint32) bool { return a.Has&HasMode != 0 && a.Mode&typeMask == kind }

// Perm returns the permission bits.
func (a *Attrs) Perm() fs.FileMode { return fs.FileMode(a.Mode & 0o777) }

// Modified returns the time of the last change of the content.
func (a *Attrs) Modified() time.Time { return time.Unix(int64(a.Mtime), 0) }

func appendAttrs(p []byte, a Attrs) []byte {
	p = channel.AppendNumber(p, a.Has)
	if a.Has&HasSize != 0 {
		p = channel.AppendLong(p, a.Size)
	}
	for _, fields := range []struct {
		has    uint32
		values []uint32
	}{{HasOwner, []uint32{a.UID, a.GID}}, {HasMode, []uint32{a.Mode}}, {HasTimes, []uint32{a.Atime, a.Mtime}}} {
		if a.Has&fields.has != 0 {
			for _, v := range fields.values {
				p = channel.AppendNumber(p, v)
			}
		}
	}
	return p
}

func readAttrs(f *channel.Fields) Attrs {
	a := Attrs{Has: f.Number()}
	if a.Has&HasSize != 0 {
		a.Size = f.Long()
	}
	if a.Has&HasOwner != 0 {
		a.UID, a.GID = f.Number(), f.Number()
	}
	if a.Has&HasMode != 0 {
		a.Mode = f.Number()
	}
	if a.Has&HasTimes != 0 {
		a.Atime, a.Mtime = f.Number(), f.Number()
	}
	if a.Has&hasMore != 0 {
		for n := f.Number(); n > 0 && f.Err() == nil; n-- {
			f.Text()
			f.Text()
		}
	}
	return a
}
