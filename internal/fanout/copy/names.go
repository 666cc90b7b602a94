package copy

import (
	"encoding/binary"
	"iter"

	"sshpace/internal/ssh/sftp"
)

// names are the entries of a directory, of which there may be hundreds of thousands on each of many
// hosts, in little memory.
type names struct {
	chunks [][]byte // of whole entries
	size   int      // bytes of the chunks
}

// nameChunk is the most that is allocated at once: less for few names, since most directories are
// small.
const nameChunk = 64 << 10

func (n *names) add(e sftp.Entry) {
	const most = 5 * binary.MaxVarintLen64
	last := len(n.chunks) - 1
	if last < 0 || cap(n.chunks[last])-len(n.chunks[last]) < most+len(e.Name) {
		room := max(min(nameChunk, n.size), most+len(e.Name), 1<<10)
		n.chunks = append(n.chunks, make([]byte, 0, room))
		n.size += room
		last++
	}
	b := n.chunks[last]
	for _, number := range []uint64{uint64(e.Attrs.Has), e.Attrs.Size, uint64(e.Attrs.Mode), uint64(e.Attrs.Mtime), uint64(len(e.Name))} {
		b = binary.AppendUvarint(b, number)
	}
	n.chunks[last] = append(b, e.Name...)
}

// all yields the entries, with the attributes that a copy needs. It does not keep entries that it
// has yielded.
func (n *names) all() iter.Seq[sftp.Entry] {
	return func(yield func(sftp.Entry) bool) {
		for i, b := range n.chunks {
			n.chunks[i] = nil
			for len(b) > 0 {
				var numbers [5]uint64
				for k := range numbers {
					v, size := binary.Uvarint(b)
					numbers[k], b = v, b[size:]
				}
				name := string(b[:numbers[4]])
				b = b[len(name):]
				if !yield(sftp.Entry{Name: name, Attrs: sftp.Attrs{Has: uint32(numbers[0]), Size: numbers[1], Mode: uint32(numbers[2]), Mtime: uint32(numbers[3])}}) {
					return
				}
			}
		}
	}
}
