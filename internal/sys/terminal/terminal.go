// Package terminal is the terminal, if there is one, that a command asks and writes to. It knows
// nothing about the text.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Is reports whether a writer leads to a terminal.
func Is(w io.Writer) bool {
	f := fileOf(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// Same reports whether two writers write to one file or pipe, as after 2>&1.
func Same(a, b io.Writer) bool {
	f, g := fileOf(a), fileOf(b)
	if f == nil || g == nil {
		return false
	}
	one, err := f.Stat()
	other, otherErr := g.Stat()
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// IsInput reports whether a reader reads from a terminal.
func IsInput(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width returns the columns of a terminal; 0 where w cannot be redrawn.
func Width(w io.Writer, getenv func(string) string) int {
	if getenv("TERM") == "dumb" {
		return 0
	}
	return Columns(w)
}

// Columns returns the columns of a terminal; 0 for anything else.
func Columns(w io.Writer) int {
	if !Is(w) {
		return 0
	}
	width, _, err := term.GetSize(int(fileOf(w).Fd()))
	if err != nil || width <= 0 {
		return 80
	}
	return width
}

// fileOf returns the file of a writer, nil if there is none.
func fileOf(w io.Writer) *os.File {
	switch x := w.(type) {
	case *os.File:
		return x
	case *Output:
		return fileOf(x.w)
	case *Screen:
		return fileOf(x.w)
	}
	return nil
}

// Paint colors a text (ECMA-48 8.3.117, SGR), if wanted.
func Paint(wanted bool, color, text string) string {
	if !wanted {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}
