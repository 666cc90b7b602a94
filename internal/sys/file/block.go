package file

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Block is text with marks around it, so that it can be found and replaced.
type Block struct {
	Name string // what tells this block from others in the file; one line
	Text string
	// After is what must stand between the block and the rest of the file, such
	// as "Host *" where the block ends in the scope of one host.
	After string
	// Last puts a new block at the end instead of at the top, so that everything
	// else in the file wins over it.
	Last bool
}

func (b Block) begin() string { return "# BEGIN sshpace " + b.Name + "\n" }
func (b Block) end() string   { return "# END sshpace " + b.Name + "\n" }

func (b Block) text() string {
	text := b.begin() + strings.TrimRight(b.Text, "\n") + "\n"
	if b.After != "" {
		text += b.After + "\n"
	}
	return text + b.end()
}

// Into puts the block into a file: in the place of an older one of its name, or
// at the top, because ssh and sshd take the first value that they find
// (ssh_config(5), sshd_config(5)), or at the end. Marks that do not match are an error.
func (b Block) Into(old []byte) ([]byte, error) {
	from, to, err := b.find(old)
	if err != nil {
		return nil, err
	}
	if from < 0 {
		return b.insert(old), nil
	}
	out := append([]byte(nil), old[:from]...)
	out = append(out, b.text()...)
	return append(out, old[to:]...), nil
}

// find is where the block stands, with its marks; from is -1 where there is none.
func (b Block) find(text []byte) (from, to int, err error) {
	begin, end := []byte(b.begin()), []byte(b.end())
	from, to = lineIndex(text, begin), lineIndex(text, end)
	if from < 0 && to < 0 {
		return -1, -1, nil
	}
	if from < 0 || to < from || lineIndex(text[from+len(begin):], begin) >= 0 {
		return 0, 0, fmt.Errorf("the marks of the block %q are damaged: remove what is left of it by hand", b.Name)
	}
	return from, to + len(end), nil
}

func (b Block) insert(old []byte) []byte {
	switch {
	case len(old) == 0:
		return []byte(b.text())
	case !b.Last:
		return append([]byte(b.text()+"\n"), old...)
	}
	out := append([]byte(nil), old...)
	if !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	return append(out, "\n"+b.text()...)
}

// Without takes the blocks out whose name is this one or begins with it and a blank,
// and the empty line that came with each. n is how many there were. Marks that do
// not match are an error.
func Without(old []byte, name string) (text []byte, n int, err error) {
	text = bytes.Clone(old)
	for {
		b, found := named(text, name)
		if !found {
			return text, n, nil
		}
		from, to, err := b.find(text)
		if err != nil {
			return nil, 0, err
		}
		switch {
		case from == 0 && bytes.HasPrefix(text[to:], []byte("\n")):
			to++
		case to == len(text) && bytes.HasSuffix(text[:from], []byte("\n\n")):
			from--
		}
		text = append(text[:from:from], text[to:]...)
		n++
	}
}

// named is the first block whose name is this one or begins with it and a blank.
func named(text []byte, name string) (b Block, found bool) {
	for line := range strings.Lines(string(text)) {
		rest, ours := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "# BEGIN sshpace ")
		if ours && (rest == name || strings.HasPrefix(rest, name+" ")) {
			return Block{Name: rest}, true
		}
	}
	return b, false
}

// lineIndex is where a whole line stands, or -1. The last line may lack its end.
func lineIndex(text, line []byte) int {
	if bytes.HasPrefix(text, line) {
		return 0
	}
	if i := bytes.Index(text, append([]byte("\n"), line...)); i >= 0 {
		return i + 1
	}
	return -1
}

// Diff shows the change as a unified diff; "" is none.
func (c *Change) Diff() string {
	name := c.Path
	if !c.Existed {
		name = "/dev/null"
	}
	_, text, _ := bytes.Cut(diff.Diff(name, c.Old, c.Path, c.New), []byte("\n")) // without the call of diff
	return string(text)
}
