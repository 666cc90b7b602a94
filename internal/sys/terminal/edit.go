package terminal

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"sshpace/internal/base/sched"
)

// Editor reads lines that a person types on a terminal, with history and completion. Between two
// lines the terminal is as it was.
type Editor struct {
	in   *os.File
	out  io.Writer
	term *term.Terminal
}

// Typed are lines typed earlier; Add gets each new one.
type Typed = term.History

// NewEditor reads from in and echoes to out; nil if these are no terminal. complete returns the
// texts that a beginning may become.
func NewEditor(in io.Reader, out io.Writer, typed Typed, complete func(begun string) []string) *Editor {
	f, ok := in.(*os.File)
	if !ok || !IsInput(in) || !Is(out) {
		return nil
	}
	e := &Editor{in: f, out: fileOf(out)}
	e.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys{f}, e.out}, "")
	e.term.History = typed
	e.term.AutoCompleteCallback = func(line string, at int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		begun := completed(line[:at], complete(line[:at]))
		return begun + line[at:], len(begun), true
	}
	return e
}

// completed returns what all that a text may become begin with, the text itself where that is
// nothing more.
func completed(begun string, all []string) string {
	if len(all) == 0 {
		return begun
	}
	common := all[0]
	for _, text := range all[1:] {
		for !strings.HasPrefix(text, common) {
			common = common[:len(common)-1]
		}
	}
	if len(all) == 1 {
		common += " "
	}
	if !strings.HasPrefix(common, begun) {
		return begun
	}
	return common
}

// keys are what is typed. Ctrl-C clears the line: it goes to its end, and deletes to its beginning.
type keys struct{ from io.Reader }

func (k keys) Read(p []byte) (int, error) {
	n, err := k.from.Read(p[:max(1, len(p)/2)])
	return copy(p, slices.Clone(bytes.ReplaceAll(p[:n], []byte{3}, []byte{5, 21}))), err
}

// Line reads a line. io.EOF is Ctrl-D on an empty one.
func (e *Editor) Line(ctx context.Context, prompt string) (string, error) {
	before, err := term.MakeRaw(int(e.in.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(e.in.Fd()), before)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer close(resized)
	defer signal.Stop(resized)
	resized <- syscall.SIGWINCH
	go func() {
		for range resized {
			if width, height, err := term.GetSize(int(e.in.Fd())); err == nil {
				e.term.SetSize(width, height)
			}
		}
	}()
	e.term.SetPrompt(prompt)
	line, err := sched.Await(ctx, e.term.ReadLine)
	if err != nil {
		io.WriteString(e.out, "\r\n")
	}
	return line, err
}
