package watch

import (
	"cmp"
	"io"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
)

// model is the view as the library has it.
type model struct{ *view }

type tick struct{}

// aside is another user of the terminal.
type aside func()

// Run lets them have it.
func (a aside) Run() error        { a(); return nil }
func (aside) SetStdin(io.Reader)  {}
func (aside) SetStdout(io.Writer) {}
func (aside) SetStderr(io.Writer) {}

// Init begins to draw.
func (m model) Init() tea.Cmd { return next() }

func next() tea.Cmd { return tea.Tick(redraw, func(time.Time) tea.Msg { return tick{} }) }

// Update carries out a message.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(1, msg.Width), msg.Height
	case tick:
		m.arrange()
		return m, next()
	case aside:
		return m, tea.Exec(msg, nil)
	case tea.KeyPressMsg:
		return m, m.press(msg.String(), msg.Text)
	}
	return m, nil
}

// View draws the page.
func (m model) View() tea.View {
	m.mu.Lock()
	defer m.mu.Unlock()
	lines := append([]string{inverse(m.page().title(), m.width)}, m.page().lines(m.width, m.room(), m.opt.Color)...)
	for len(lines) <= m.room() {
		lines = append(lines, "")
	}
	lines = append(lines, text.Clip(m.foot(), m.width))
	return tea.View{Content: strings.Join(lines, "\n"), AltScreen: true}
}

func (v *view) page() *page { return v.pages[len(v.pages)-1] }

// room is how many lines of a page are shown, between the first line of the screen and the last.
func (v *view) room() int { return max(1, v.height-2) }

// foot is the last line.
func (v *view) foot() string {
	switch {
	case v.typed != nil:
		return "/" + *v.typed
	case v.notice != "":
		return v.notice
	case !v.page().rows:
		return "q back  ? help  / find  n next"
	case v.over:
		return "The run has ended.  q leave  ? help  Enter output  Space mark  d compare  / find"
	}
	return "? help  Enter output  Space mark  d compare  / find  Ctrl-C end the run"
}

// press carries out a key.
func (v *view) press(key, typed string) tea.Cmd {
	if key == "ctrl+c" {
		return v.interrupt()
	}
	if v.typed != nil {
		v.typing(key, typed)
		return nil
	}
	asked := v.leaving
	v.notice, v.leaving = "", false
	switch key {
	case "q", "esc":
		return v.back(asked)
	case "?":
		v.open(fixed("Keys", help))
	case "/":
		v.typed = new("")
	case "n":
		v.find(false)
	case "ctrl+z":
		return tea.Suspend
	case "enter":
		if h := v.host(); h != nil {
			v.open(&sent{view: v, host: h})
			v.page().last(v.room())
		}
	case "space":
		if h := v.host(); h != nil {
			h.marked = !h.marked
		}
		v.page().press("down", v.room())
	case "d":
		v.compare()
	default:
		v.page().press(key, v.room())
	}
	return nil
}

// host is the one with the cursor, nil where there is no cursor.
func (v *view) host() *hostView {
	if p := v.page(); p.rows && p.at < p.end() {
		return v.hosts[v.order[p.at]]
	}
	return nil
}

func (v *view) open(s source) { v.pages = append(v.pages, &page{source: s}) }

// back leaves the page. A run that goes on is left when that is asked for twice.
func (v *view) back(asked bool) tea.Cmd {
	switch {
	case len(v.pages) > 1:
		v.pages = v.pages[:len(v.pages)-1]
	case v.over || asked:
		return tea.Quit
	default:
		v.leaving, v.notice = true, "q again: leave, and the run goes on; Ctrl-C: end it"
	}
	return nil
}

// interrupt does as Ctrl-C without a view: the first one ends the run politely, the second one at
// once. A third one would end the process, which has to give the terminal back before.
func (v *view) interrupt() tea.Cmd {
	if v.interrupts++; v.over || v.interrupts > 2 {
		return tea.Quit
	}
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGINT)
	return nil
}

// typing takes a key of the text to search for.
func (v *view) typing(key, typed string) {
	switch key {
	case "esc":
		v.typed = nil
	case "enter":
		v.sought, v.typed = cmp.Or(*v.typed, v.sought), nil
		v.find(true)
	case "backspace":
		runes := []rune(*v.typed)
		*v.typed = string(runes[:max(0, len(runes)-1)])
	default:
		*v.typed += termsafe.Line(typed)
	}
}

// seekLines is how many lines are searched at once: what hosts send waits meanwhile.
const seekLines = 500_000

// find goes to the next line with the text that is searched for, past the end from the beginning;
// here: the line on top may be it.
func (v *view) find(here bool) {
	p := v.page()
	from := p.at
	if !here {
		_, _, from = p.line(from, 0, 1)
	}
	wrapped, at := false, from
	for range seekLines {
		line, _, next := p.line(at, 0, 0)
		switch {
		case next == at && !wrapped:
			wrapped, next = true, 0
		case v.sought == "", next == at, wrapped && at >= from:
			v.notice = "not found: " + v.sought
			return
		case strings.Contains(line, v.sought):
			p.at, p.tail = at, false
			return
		}
		at = next
	}
	p.at, p.tail, v.notice = at, false, "not found up to here; n goes on"
}
