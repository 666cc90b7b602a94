package copy

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sshpace/internal/base/shell"
)

const (
	// worthwhile is how many files are worth a command on the host, which costs it as
	// much as that many files by SFTP.
	worthwhile = 64
	// packFiles and packBytes bound a pack: of an interrupted one nothing is kept.
	packFiles = 4096
	packBytes = 64 << 20
	// mostRemovals is how often, once a second, a folder is removed into which another copy
	// still writes.
	mostRemovals = 30
	// wideTar has GNU tar, which takes 10 KiB at a time, read by 512 KiB; see widePipe.
	// It replaces what the host's user has there. Other tars know no TAR_OPTIONS.
	wideTar = "-b1024"
)

// packed sends the small files of which there are many, and returns the others: a
// pack is a stream for the host's tar(1), a third of what five requests a file cost
// the host. It is unpacked in a folder that is ours alone, compared there, and put
// into place: new folders with all that is in them, other files one by one, so that
// nothing half done is seen. That folder is inside the one that is there already, for
// its group, its access lists and its file system are what files in it are to have.
func (p *put) packed(files []*placed) (others []*placed) {
	for len(files) > 0 {
		groups := map[string][]*placed{}
		var bases []string
		for _, to := range files {
			base := p.nearest(to)
			if !isPackable(base, to) {
				others = append(others, to)
				continue
			}
			if groups[base] == nil {
				bases = append(bases, base)
			}
			groups[base] = append(groups[base], to)
		}
		files = nil
		for _, base := range bases {
			group := groups[base]
			n := fitting(base, group)
			if n < worthwhile || p.noTar || !p.asks() || p.over() {
				others = append(others, group...)
				continue
			}
			others = append(others, p.pack(base, group[:n])...)
			files = append(files, group[n:]...)
		}
	}
	return others
}

// nearest is the innermost folder above a file that is there.
func (p *put) nearest(to *placed) string {
	folder := path.Dir(to.name)
	for p.fresh[folder] && !p.there[folder] {
		folder = path.Dir(folder)
	}
	return folder
}

// below is a name as seen from a folder above it.
func below(folder, name string) string {
	if folder == "." {
		return name
	}
	return strings.TrimPrefix(name, strings.TrimSuffix(folder, "/")+"/")
}

// isPackable tells whether tar takes a file and cksum can say what became of it: it
// has to read it, and writes some names otherwise.
func isPackable(base string, to *placed) bool {
	name := below(base, to.name)
	for at := name; at != "."; at = path.Dir(at) {
		if _, _, fits := splitName(at); !fits {
			return false
		}
	}
	return to.size < large && to.perm&0o400 != 0 && !strings.ContainsAny(name, "\n\r\\")
}

// fitting is how many of the files are not too much for one pack.
func fitting(base string, files []*placed) int {
	var size int64
	program := 0
	for n, to := range files {
		size += to.size
		program += len(shell.Quote(below(base, to.name))) + 1
		if n == packFiles || size > packBytes || program > maxProgram {
			return n
		}
	}
	return len(files)
}

// pack sends files that are to be below a folder, and returns those that are not in
// their place then, to be sent otherwise.
func (p *put) pack(base string, files []*placed) (others []*placed) {
	own := newPart(p.host, path.Join(base, "files"))
	for _, old := range p.left.take(own) {
		p.clear(own, old.name)
	}
	stage := own.fresh()
	if p.client.Mkdir(stage, 0o700).Wait() != nil {
		return files
	}
	if !p.unpack(base, stage, files) {
		p.clear(own, stage)
		return files
	}
	others = p.move(base, stage, files)
	if len(others) > 0 || p.client.Rmdir(stage) != nil {
		p.clear(own, stage)
	}
	return others
}

// clear removes a folder with all that is in it. It is renamed before, lest what another
// copy puts into place from it is not whole; that one's tar may still write into it, which
// ends when the folder is gone.
func (p *put) clear(own part, stage string) {
	if p.over() {
		return
	}
	if away := own.fresh(); p.client.Rename(stage, away).Wait() == nil {
		stage = away
	}
	p.shell(fmt.Sprintf("n=0; until rm -rf -- %s || [ $n -ge %d ]; do n=$((n + 1)); sleep 1; done", shell.Quote(stage), mostRemovals), nil, 0)
}

// unpack has the host's tar unpack the files in stage, and tells whether they are as
// they should be.
func (p *put) unpack(base, stage string, files []*placed) bool {
	a := &archive{side: &p.side, base: base, files: files, made: map[string]bool{}}
	defer a.close()
	program := strings.Builder{}
	fmt.Fprintf(&program, "CDPATH=; "+widePipe+"cd -- %s && TAR_OPTIONS=%s tar -xpof -", shell.Quote(stage), wideTar)
	var list []checked
	var size int64
	if !p.NoVerify {
		program.WriteString(" && exec cksum --")
		for _, to := range files {
			name := below(base, to.name)
			list = append(list, to.checked(name))
			program.WriteString(" " + shell.Quote(name))
			size += to.size
		}
	}
	said, err := p.shell(program.String(), a, size)
	if err == nil {
		return a.err == nil && !slices.Contains(lines(said, list), false)
	}
	p.noTar = true
	return false
}

// move puts into place what is in stage, and returns the files with which that failed.
func (p *put) move(base, stage string, files []*placed) (others []*placed) {
	moves := map[string]*moving{}
	var order []*moving
	for _, to := range files {
		name := below(base, to.name)
		top, _, inFolder := strings.Cut(name, "/")
		m := moves[top]
		if m == nil {
			m = &moving{}
			if from, to := path.Join(stage, top), path.Join(base, top); inFolder {
				m.wait = p.client.Rename(from, to)
			} else {
				m.wait = p.client.Replace(from, to)
			}
			moves[top], order = m, append(order, m)
		}
		m.files = append(m.files, to)
	}
	for _, m := range order {
		if m.wait.Wait() != nil {
			others = append(others, m.files...)
			continue
		}
		for _, to := range m.files {
			p.change(to)
			p.arrived(to)
			for folder := path.Dir(to.name); p.fresh[folder] && !p.there[folder]; folder = path.Dir(folder) {
				p.there[folder] = true
				p.changed[path.Dir(folder)] = true
			}
		}
	}
	return others
}

// moving is a file, or a folder with files, on its way to its place.
type moving struct {
	wait  interface{ Wait() error }
	files []*placed
}

// archive is a pack as tar(1) reads it: the folders and files below base, in the
// format of POSIX.1-1988 (ustar), made while it is read.
type archive struct {
	*side
	base  string
	files []*placed
	made  map[string]bool // folders that it has already

	rest   []byte // of blocks that are being read
	buf    []byte // of rest
	data   io.ReaderAt
	done   func() // closes data
	offset int64  // in data
	size   int64
	ended  bool
	err    error // why what was read is not the files
}

var _ io.Reader = (*archive)(nil)

// Read fills p as far as the archive goes.
func (a *archive) Read(p []byte) (n int, err error) {
	for n < len(p) {
		switch {
		case len(a.rest) > 0:
			took := copy(p[n:], a.rest)
			a.rest = a.rest[took:]
			n += took
		case a.offset < a.size:
			n += a.content(p[n:])
		case a.ended:
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		default:
			a.next()
		}
	}
	a.Limit.wait(a.ctx, n)
	return n, nil
}

// content reads data of the file that is under way; what is missing of it here is
// zeros there, and no file that is kept.
func (a *archive) content(p []byte) int {
	p = p[:min(int64(len(p)), a.size-a.offset)]
	got := 0
	if a.data != nil {
		var err error
		if got, err = a.data.ReadAt(p, a.offset); got < len(p) && err != nil {
			a.err = cmp.Or(a.err, err)
		}
	}
	clear(p[got:])
	a.offset += int64(len(p))
	if a.offset == a.size {
		a.rest = zeros[:(tarBlock-a.size%tarBlock)%tarBlock]
	}
	return len(p)
}

// next begins the next file, or the end.
func (a *archive) next() {
	a.close()
	a.offset, a.size = 0, 0
	if len(a.files) == 0 {
		a.rest, a.ended = zeros[:], true
		return
	}
	to := a.files[0]
	a.files = a.files[1:]
	name := below(a.base, to.name)
	a.buf = a.buf[:0]
	a.folder(path.Dir(name))
	a.buf = appendTarHeader(a.buf, name, tarFile, uint32(to.perm), to.size, to.modified.Unix())
	a.rest = a.buf
	a.size = to.size
	var err error
	if a.data, a.done, err = to.open(); err != nil {
		a.data, a.done, a.err = nil, nil, cmp.Or(a.err, err)
	}
}

// folder appends a folder, and before it those above it.
func (a *archive) folder(name string) {
	if name == "." || a.made[name] {
		return
	}
	a.made[name] = true
	a.folder(path.Dir(name))
	a.buf = appendTarHeader(a.buf, name, tarFolder, 0o700, 0, 0)
}

// close closes the file that is under way.
func (a *archive) close() {
	if a.done != nil {
		a.done()
	}
	a.data, a.done = nil, nil
}
