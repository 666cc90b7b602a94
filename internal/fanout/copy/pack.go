package copy

import (
	"archive/tar"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/shell"
	"sshpace/internal/fleet"
)

const (
	// worthwhile is the number of files from which on a command on the host pays, which costs it as
	// much as that many files by SFTP.
	worthwhile = 64
	// packFiles and packBytes bound a pack: nothing of an interrupted one is kept.
	packFiles = 4096
	packBytes = 64 << 20
	// wideTar makes GNU tar, which reads 10 KiB at a time by default, read by 512 KiB; see
	// widePipe. It replaces the user's own setting. Other tars know no TAR_OPTIONS.
	wideTar = "-b1024"
)

// packed sends many small files together, and returns the others: a pack is a stream for the host's
// tar(1), a third of the cost of five requests a file. It is unpacked in a directory that is ours
// alone, compared there, and put into place: new directories with all their content, other files
// one by one, so that nothing unfinished is visible. That directory is inside the existing one,
// because files need its group, its access lists and its file system.
func (p *put) packed(files []*placed) (others []*placed) {
	for len(files) > 0 {
		groups := map[string][]*placed{}
		var bases []string
		for _, to := range files {
			base := p.nearest(to)
			if !isPackable(base, to) || p.Backup != "" && to.exists {
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
			n := p.split(base, group)
			if len(n) == 0 || p.noTar || !p.asks() || p.over() {
				others = append(others, group...)
				continue
			}
			var packs [][]*placed
			for _, n := range n {
				packs, group = append(packs, group[:n]), group[n:]
			}
			left, refused := p.pack(base, packs)
			others, files = append(others, left...), append(append(files, refused...), group...)
		}
	}
	return others
}

// nearest returns the innermost existing directory above a file.
func (p *put) nearest(to *placed) string {
	directory := path.Dir(to.name)
	for p.fresh[directory] && !p.there[directory] {
		directory = path.Dir(directory)
	}
	return directory
}

// below returns a name relative to a directory above it.
func below(directory, name string) string {
	if directory == "." {
		return name
	}
	return strings.TrimPrefix(name, strings.TrimSuffix(directory, "/")+"/")
}

// isPackable reports whether tar takes a file and cksum can check it: it has to be able to read it,
// and writes some names differently.
func isPackable(base string, to *placed) bool {
	return to.size < large && to.perm&0o400 != 0 && !strings.ContainsAny(below(base, to.name), "\n\r\\")
}

// split returns how many of the files the next packs take, none if it is not worth one. Packs side
// by side use the windows of their sessions, where the path is long.
func (p *put) split(base string, files []*placed) (packs []int) {
	var size int64
	for _, to := range files {
		size += to.size
	}
	lanes := p.wanted(size)
	for len(packs) < lanes {
		n := fitting(base, files, size/int64(lanes))
		if n < worthwhile {
			break
		}
		packs, files = append(packs, n), files[n:]
	}
	return packs
}

// fitting is how many of the files fit into one pack of about as many bytes.
func fitting(base string, files []*placed, wanted int64) int {
	var size int64
	program := 0
	for n, to := range files {
		if n >= worthwhile && size > wanted {
			return n
		}
		size += to.size
		program += len(shell.Quote(below(base, to.name))) + 1
		if n == packFiles || size > packBytes || program > maxProgram {
			return n
		}
	}
	return len(files)
}

// stageIn returns the directory of ours for files that come into another one.
func (p *put) stageIn(base string) part { return newPart(p.host, path.Join(base, "files")) }

// pack sends packs of files into a directory, beside one another. It returns the files that are not
// in their place then, to be sent another way, and those for which the host gave no session.
func (p *put) pack(base string, packs [][]*placed) (others, refused []*placed) {
	p.begin(len(packs))
	p.listing.Wait()
	own := p.stageIn(base)
	stages, unpacked, errs := make([]string, len(packs)), make([]bool, len(packs)), make([]error, len(packs))
	sched.Do(len(packs), len(packs), func(i int) {
		stages[i] = own.fresh()
		unpacked[i], errs[i] = p.unpack(base, stages[i], packs[i], len(packs) > 1)
	})
	moves := make([][]*moving, len(packs))
	left := slices.Clone(packs)
	for i, files := range packs {
		if !unpacked[i] {
			continue
		}
		moves[i] = p.move(base, stages[i], files)
		if i == 0 { // the others see which directories are there now
			left[0] = p.moved(moves[0])
		}
	}
	for i := range packs {
		if i > 0 && unpacked[i] {
			left[i] = p.moved(moves[i])
		}
	}
	sched.Do(len(packs), len(packs), func(i int) {
		switch {
		case p.over(): // tidy removes it
		case len(left[i]) == 0 && p.removeStage(stages[i], base, moves[i]):
			p.made.done(stages[i])
		case p.made.has(stages[i]):
			p.clear(own, stages[i])
		}
	})
	for i := range packs {
		if len(packs) > 1 && errors.Is(errs[i], fleet.ErrNoExec) {
			p.beside.refuse()
			refused = append(refused, left[i]...)
			continue
		}
		if errs[i] != nil {
			p.noTar = true
		} else {
			p.beside.has()
		}
		others = append(others, left[i]...)
	}
	return others, refused
}

// removeStage removes a directory from which everything was moved, and reports whether it is gone.
func (p *put) removeStage(stage, base string, moves []*moving) bool {
	var directories []string
	for _, m := range moves {
		for directory := path.Dir(m.top); len(directory) > len(base) && !slices.Contains(directories, directory); directory = path.Dir(directory) {
			directories = append(directories, directory)
		}
	}
	slices.SortFunc(directories, func(a, b string) int { return len(b) - len(a) })
	for _, directory := range directories {
		if p.client.Rmdir(path.Join(stage, below(base, directory))) != nil {
			return false
		}
	}
	return p.client.Rmdir(stage) == nil
}

// unpack lets the host's tar unpack the files in stage, and reports whether they are right. The
// directory is made when there is a session for tar; more is set for a session beside others.
func (p *put) unpack(base, stage string, files []*placed, more bool) (right bool, err error) {
	program := strings.Builder{}
	fmt.Fprintf(&program, "CDPATH=; "+widePipe+"cd -- %s && TAR_OPTIONS=%s tar -xpof -", shell.Quote(stage), wideTar)
	if p.owner != nil {
		fmt.Fprintf(&program, " && find . -type f -exec chown %d:%d {} +", p.owner.uid, p.owner.gid)
	}
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
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := p.archive(w, base, files, p.modesOf(base))
		w.Close()
		packed <- err
	}()
	begin := func() error {
		p.made.add(stage, made{directory: true})
		return p.client.Mkdir(stage, 0o700).Wait()
	}
	said, err := p.shell(query{program: program.String(), input: r, size: size, before: begin, more: more})
	r.Close() // a tar that reads no more of it ends it
	changed := <-packed
	return err == nil && changed == nil && !slices.Contains(lines(said, list), false), err
}

// move begins to move files out of stage into place.
func (p *put) move(base, stage string, files []*placed) (order []*moving) {
	moves := map[string]*moving{}
	for _, to := range files {
		top := to.name // or the outermost directory that is missing
		for directory := path.Dir(top); p.fresh[directory] && !p.there[directory]; directory = path.Dir(directory) {
			top = directory
		}
		m := moves[top]
		if m == nil {
			m = &moving{top: top}
			if from := path.Join(stage, below(base, top)); top != to.name {
				m.wait = p.client.Rename(from, top)
			} else {
				m.wait = p.client.Replace(from, top)
			}
			moves[top], order = m, append(order, m)
		}
		m.files = append(m.files, to)
	}
	return order
}

// moved waits for the moves, and returns the files for which that failed.
func (p *put) moved(order []*moving) (others []*placed) {
	for _, m := range order {
		if m.wait.Wait() != nil {
			others = append(others, m.files...)
			continue
		}
		for _, to := range m.files {
			p.change(to)
			p.arrived(to)
			for directory := path.Dir(to.name); p.fresh[directory] && !p.there[directory]; directory = path.Dir(directory) {
				p.there[directory] = true
				p.changed[path.Dir(directory)] = true
			}
		}
	}
	return others
}

// moving is a file, or a directory with files, during its move.
type moving struct {
	top   string // its name in place
	wait  interface{ Wait() error }
	files []*placed
}

// modesOf are the modes that directories below base are made with.
func (p *put) modesOf(base string) map[string]fs.FileMode {
	modes := map[string]fs.FileMode{}
	for _, to := range p.directories {
		modes[below(base, to.name)] = unfinished(to.perm)
	}
	return modes
}

// archive writes the directories and files below base as tar(1) reads them. If a part of a file is
// missing here, it writes zeros, and the file is not kept: the error says so.
func (s *side) archive(to io.Writer, base string, files []*placed, modes map[string]fs.FileMode) (changed error) {
	buffered := bufio.NewWriterSize(to, 64<<10)
	w, made := tar.NewWriter(buffered), map[string]bool{".": true}
	var directory func(name string) error
	directory = func(name string) error { // and those above it
		if made[name] {
			return nil
		}
		made[name] = true
		return cmp.Or(directory(path.Dir(name)), w.WriteHeader(&tar.Header{Format: tar.FormatGNU, Typeflag: tar.TypeDir, Name: name + "/", Mode: int64(modes[name])}))
	}
	for _, file := range files {
		name := below(base, file.name)
		// GNU's format: the others do not take long names, or names outside UTF-8.
		head := &tar.Header{Format: tar.FormatGNU, Typeflag: tar.TypeReg, Name: name, Mode: int64(file.perm), Size: file.size, ModTime: file.modified}
		if err := cmp.Or(directory(path.Dir(name)), w.WriteHeader(head)); err != nil {
			return err
		}
		missing, err := s.content(w, file)
		if err != nil {
			return err
		}
		changed = cmp.Or(changed, missing)
	}
	return cmp.Or(w.Close(), buffered.Flush(), changed)
}

// content writes the content of a file as listed, as far as it still exists.
func (s *side) content(to io.Writer, file *placed) (missing, err error) {
	r, done, missing := file.open()
	if missing != nil {
		r, done = strings.NewReader(""), func() {}
	}
	defer done()
	buf := buffers.Get().(*chunk)
	defer buffers.Put(buf)
	for offset := int64(0); offset < file.size; {
		p := buf[:min(int64(s.Limit.piece(len(buf))), file.size-offset)]
		n, failed := limited{r, s}.ReadAt(p, offset)
		if n < len(p) {
			missing = cmp.Or(missing, failed)
			clear(p[n:])
		}
		if _, err := to.Write(p); err != nil {
			return missing, err
		}
		offset += int64(len(p))
	}
	return missing, nil
}
