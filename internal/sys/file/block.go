package file

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Block is text with marks around it, so that it can be found and replaced.
type Block struct {
	Name string // distinguishes this block from others in the file; one line
	Text string
	// After is the line that must separate the block from the rest of the file, such as "Host *"
	// where the block ends in the scope of one host.
	After string
	// Last puts a new block at the end instead of at the top, so that everything else in the file
	// wins over it.
	Last bool
}

// ErrEdited says that a block was edited by somebody else.
var ErrEdited = errors.New("was changed since it was written")

func (b Block) begin() string { return "# BEGIN sshpace " + b.Name }
func (b Block) end() string   { return "# END sshpace " + b.Name }

// text returns the block with the line ends of the file. The last line holds a checksum, so that
// user's lines between the marks are noticed.
func (b Block) text(file []byte) string {
	body := strings.TrimRight(b.Text, "\n") + "\n"
	if b.After != "" {
		body += b.After + "\n"
	}
	text := b.begin() + "\n" + body + b.end() + " " + checksum(body) + "\n"
	return strings.ReplaceAll(text, "\n", lineEnd(file))
}

// checksum ignores blanks and line ends that an editor adds at the ends of lines.
func checksum(body string) string {
	sum := crc32.NewIEEE()
	for line := range strings.Lines(body) {
		fmt.Fprintln(sum, strings.TrimRight(line, " \t\r\n"))
	}
	return fmt.Sprintf("%08x", sum.Sum32())
}

func lineEnd(text []byte) string {
	if line, _, _ := bytes.Cut(text, []byte("\n")); bytes.HasSuffix(line, []byte("\r")) {
		return "\r\n"
	}
	return "\n"
}

// Into puts the block into a file: in the place of an older block of its name, otherwise at the
// top, because ssh and sshd take the first value that they find (ssh_config(5), sshd_config(5)), or
// at the end. Marks that do not match are an error, and so is a block that was edited.
func (b Block) Into(old []byte) ([]byte, error) {
	from, to, err := b.find(old)
	if err != nil {
		return nil, err
	}
	if from < 0 {
		return b.insert(old), nil
	}
	return slices.Concat(old[:from], []byte(b.text(old)), old[to:]), nil
}

// find returns the place of the block, with its marks; from is -1 where there is none.
func (b Block) find(text []byte) (from, to int, err error) {
	damaged := fmt.Errorf("the marks of the block %q are damaged: remove the rest of it by hand", b.Name)
	var body strings.Builder
	var sum string
	from, to = -1, -1
	at := 0
	for whole := range bytes.Lines(text) {
		line := string(bytes.TrimRight(whole, " \t\r\n"))
		found, isEnd := b.endOf(line)
		switch inside := from >= 0 && to < 0; {
		case line == b.begin() && from < 0:
			from = at
		case line == b.begin(), isEnd && !inside:
			return 0, 0, damaged
		case isEnd:
			to, sum = at+len(whole), found
		case inside:
			body.Write(whole)
		}
		at += len(whole)
	}
	switch {
	case from >= 0 && to < 0:
		return 0, 0, damaged
	case from >= 0 && sum != checksum(body.String()):
		return 0, 0, fmt.Errorf("the block %q %w", b.Name, ErrEdited)
	}
	return from, to, nil
}

// endOf returns the checksum in a line, if it is the last line of the block.
func (b Block) endOf(line string) (sum string, ok bool) {
	sum, ok = strings.CutPrefix(line, b.end())
	sum = strings.TrimPrefix(sum, " ")
	return sum, ok && (line == b.end() || len(line) == len(b.end())+len(" 00000000") && !strings.Contains(sum, " "))
}

func (b Block) insert(old []byte) []byte {
	text, end := []byte(b.text(old)), []byte(lineEnd(old))
	switch {
	case len(old) == 0:
		return text
	case !b.Last:
		return slices.Concat(text, end, old)
	case !bytes.HasSuffix(old, []byte("\n")):
		return slices.Concat(old, end, end, text)
	}
	return slices.Concat(old, end, text)
}

// Without removes the blocks whose name is this one or begins with it and a blank, and the empty
// line that came with each. n counts them. Marks that do not match are an error, and so is a block
// that was edited.
func Without(old []byte, name string) (text []byte, n int, err error) {
	text = bytes.Clone(old)
	end := []byte(lineEnd(old))
	for {
		b, found := named(text, name)
		if !found {
			return text, n, nil
		}
		from, to, err := b.find(text)
		if err != nil {
			return nil, 0, err
		}
		before, after := text[:from:from], text[to:]
		if shorter, blank := bytes.CutSuffix(before, end); from == 0 {
			after = bytes.TrimPrefix(after, end)
		} else if len(after) == 0 && blank && bytes.HasSuffix(shorter, []byte("\n")) {
			before = shorter
		}
		text = slices.Concat(before, after)
		n++
	}
}

// named finds the first block whose name is this one or begins with it and a blank.
func named(text []byte, name string) (b Block, found bool) {
	for line := range strings.Lines(string(text)) {
		rest, ours := strings.CutPrefix(strings.TrimRight(line, " \t\r\n"), "# BEGIN sshpace ")
		if ours && (rest == name || strings.HasPrefix(rest, name+" ")) {
			return Block{Name: rest}, true
		}
	}
	return b, false
}

// Diff shows the change as a unified diff; "" is none.
func (c *Change) Diff() string {
	name := c.Path
	if !c.Existed {
		name = "/dev/null"
	}
	_, text, _ := bytes.Cut(diff.Diff(name, c.Old, c.Path, c.New), []byte("\n")) // without the arguments of diff
	return string(text)
}
