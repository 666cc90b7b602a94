// Package watch shows a run on the whole terminal while it goes on: a line for each host, those
// that failed first, all that a host has sent, and how two hosts differ.
package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/terminal"
)

// Options of a view.
type Options struct {
	Screen *terminal.Screen // the view covers it
	Color  bool
	Stop   context.Context // ends when the run was interrupted: the view does not stay then
}

// Usable refuses to watch where there is no terminal to draw on and to type at.
func Usable(s output.Streams) error {
	if terminal.Width(s.Out, s.Getenv) == 0 || terminal.Width(s.Err, s.Getenv) == 0 {
		return fault.Usage("leave --watch out; -b and --rows are for pipes and files", "--watch needs a terminal that can be redrawn, for standard output and standard error")
	}
	return nil
}

// Over shows a run, and passes it on to sink, which has the terminal once the view has been left.
func Over(sink fleet.Sink, opt Options) (fleet.Sink, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, fault.Usage("leave --watch out", "--watch: %s", terminal.ErrNobody)
	}
	v := newView(opt)
	v.program = tea.NewProgram(model{v}, tea.WithInput(keyboard{tty}), tea.WithOutput(tty), tea.WithoutSignalHandler(),
		tea.WithFPS(keysEach), tea.WithColorProfile(colorprofile.ANSI))
	v.tty = tty
	return output.Tee{v, sink}, nil
}

// keyboard is the terminal to type at. One that has gone is the end of the run, also where a
// process above us keeps the signal of that from us, as su does.
type keyboard struct{ *os.File }

func (k keyboard) Read(p []byte) (int, error) {
	n, err := k.File.Read(p)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGHUP)
	}
	return n, err
}

const (
	// redraw is the interval in which the run is drawn, keysEach how often a second keys are.
	redraw   = 250 * time.Millisecond
	keysEach = 20
	// maxLine is where a line is cut into pieces, in bytes.
	maxLine = 4 << 10
	// inMemory is how much output is kept in memory, in bytes. The rest goes to a file.
	inMemory = 16 << 20
)

// view is the state of the run and of its view.
type view struct {
	fleet.Nothing
	opt     Options
	program *tea.Program
	tty     *os.File
	left    chan struct{} // the program has ended
	ended   sync.WaitGroup

	mu    sync.Mutex
	start fleet.Start
	so    fleet.Summary
	over  bool // the run
	hosts []*hostView
	names int   // columns of the longest name
	order []int // hosts as they are listed
	store file.Store
	lines output.HostLines
	buf   []byte

	width, height int
	pages         []*page // the list, and what was opened above it
	typed         *string // text to search for, while it is typed
	sought        string
	notice        string // below the page, until the next key
	interrupts    int
	leaving       bool // the last key asked for it
}

// hostView is a host of the run.
type hostView struct {
	index   int
	name    string
	since   time.Time // the connection began; zero: it has not
	last    [2]string // lines of the streams
	latest  fleet.Stream
	content file.Content
	marked  bool
	result  *fleet.Result // nil: not yet
}

var (
	_ fleet.Sink     = (*view)(nil)
	_ terminal.Cover = (*view)(nil)
)

func newView(opt Options) *view {
	v := &view{opt: opt, left: make(chan struct{}), store: file.Store{What: "output", Limit: inMemory}, width: text.Columns, height: 24}
	v.lines.Max = maxLine
	v.pages = []*page{{source: v.list(), rows: true}}
	return v
}

// Begin shows the view.
func (v *view) Begin(s fleet.Start) error {
	v.start = s
	for i, h := range s.Hosts {
		name := termsafe.Line(h.String())
		v.hosts, v.order = append(v.hosts, &hostView{index: i, name: name}), append(v.order, i)
		v.names = max(v.names, text.Width(name))
	}
	if v.program == nil {
		return nil
	}
	v.opt.Screen.Cover(v)
	v.ended.Go(func() {
		_, err := v.program.Run()
		close(v.left)
		v.opt.Screen.Cover(nil)
		if err != nil { // which does not end the run
			fmt.Fprintf(v.opt.Screen, "sshpace: warning: the view has ended: %s\n", termsafe.OneLine(err.Error()))
		}
	})
	return nil
}

// Started records that a host is being connected to.
func (v *view) Started(index int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hosts[index].since = time.Now()
	return nil
}

// Output keeps the complete lines of a piece of output.
func (v *view) Output(e fleet.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.hosts[e.Index]
	h.last[e.Stream], h.latest = output.LastSaid(e, h.last[e.Stream]), e.Stream
	v.buf = v.buf[:0]
	v.lines.Feed(e, func(p output.Piece) { v.keep(e.Stream, p) })
	return output.Loss(v.store.Add(&h.content, v.buf))
}

// The kinds of lines that are kept, before each of them.
const (
	ofStdout = '-'
	ofStderr = '='
	goesOn   = '+'
	ofEnd    = ':'
)

func (v *view) keep(stream fleet.Stream, p output.Piece) {
	kind := byte(ofStdout)
	switch {
	case p.Continues:
		kind = goesOn
	case stream == fleet.Stderr:
		kind = ofStderr
	}
	v.buf = append(append(append(v.buf, kind), p.Text...), '\n')
}

// ending keeps a line about the end of a host.
func (v *view) ending(before, s string) {
	if s != "" {
		s = before + termsafe.OneLine(s)
		v.buf = append(append(append(v.buf, ofEnd), s[:min(len(s), maxLine)]...), '\n')
	}
}

// Done records the end of a host.
func (v *view) Done(r fleet.Result, so fleet.Summary) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.hosts[r.Index]
	v.buf = v.buf[:0]
	v.lines.End(r.Index, v.keep)
	v.ending("note: ", r.Note)
	v.ending("", output.Explain(&r))
	v.ending("hint: ", r.Hint)
	err := v.store.Add(&h.content, v.buf)
	v.store.Settle(&h.content)
	h.result, v.so = &r, so
	return output.Loss(err)
}

// End waits until the view has been left.
func (v *view) End(so fleet.Summary) error {
	v.mu.Lock()
	v.over, v.so = true, so
	v.mu.Unlock()
	if v.program == nil {
		return v.store.Close()
	}
	stop := context.AfterFunc(v.opt.Stop, v.program.Quit)
	v.ended.Wait()
	stop()
	_ = v.tty.Close()
	return v.store.Close()
}

// Written shows the last line of a text that others write.
func (v *view) Written(p []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notice = termsafe.Line(text.LastLine(string(p)))
}

// Aside returns the terminal while do has it.
func (v *view) Aside(do func()) {
	done := make(chan struct{})
	once := sync.OnceFunc(func() { defer close(done); do() })
	go v.program.Send(aside(once))
	select {
	case <-done:
	case <-v.left:
		once()
	}
}
