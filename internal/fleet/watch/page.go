package watch

import (
	"sshpace/internal/base/text"
	"sshpace/internal/sys/terminal"
)

// source is text that can be shown from any of its lines on. A place is where a line begins.
type source interface {
	title() string
	// line returns the line at a place, without its first columns and cut at a width, if that is
	// not 0, with its color, and the place of the next line. At the end that is the same place.
	line(at int64, skip, width int) (line, color string, next int64)
	before(at int64) int64 // the place of the line before one, 0 where there is none
	end() int64            // behind the last line
}

// page is a source on the screen.
type page struct {
	source
	rows bool  // one of the lines has the cursor; places are their numbers
	at   int64 // place of the cursor, or of the first line on the screen
	top  int64 // place of the first line on the screen
	skip int   // columns left of the screen
	tail bool  // the end stays on the screen while there comes more
}

// sideways is how many columns a key moves.
const sideways = 8

// press carries out a key that moves; room is the number of lines on the screen.
func (p *page) press(name string, room int) {
	switch name {
	case "up", "k":
		p.move(-1, room)
	case "down", "j":
		p.move(1, room)
	case "pgup", "b":
		p.move(-room, room)
	case "pgdown", "f":
		p.move(room, room)
	case "home", "g":
		p.at, p.tail = 0, false
	case "end", "G":
		p.last(room)
	case "left":
		p.skip = max(0, p.skip-sideways)
	case "right":
		p.skip += sideways
	}
}

// move moves by lines, at most to the first one or to the last screen.
func (p *page) move(by, room int) {
	if by < 0 {
		p.at, p.tail = p.back(p.at, -by), false
		return
	}
	limit := p.limit(room)
	for ; by > 0 && p.at < limit; by-- {
		_, _, p.at = p.line(p.at, 0, 1)
	}
	p.tail = !p.rows && p.at >= limit
}

func (p *page) last(room int) { p.at, p.tail = p.limit(room), !p.rows }

// limit is the last place of the cursor, or that of the last screen.
func (p *page) limit(room int) int64 {
	if p.rows {
		room = 1
	}
	return p.back(p.end(), room)
}

func (p *page) back(at int64, lines int) int64 {
	for ; lines > 0 && at > 0; lines-- {
		at = p.before(at)
	}
	return at
}

// lines returns the part that is on the screen.
func (p *page) lines(width, room int, colored bool) (shown []string) {
	if p.tail {
		p.at = p.limit(room)
	}
	if p.top = min(p.top, p.at); !p.rows {
		p.top = p.at
	} else if p.at-p.top >= int64(room) {
		p.top = p.at - int64(room) + 1
	}
	for at := p.top; len(shown) < room; {
		line, color, next := p.line(at, p.skip, width)
		if next == at {
			break
		}
		if p.rows && at == p.at {
			line = inverse(line, width)
		} else if color != "" {
			line = terminal.Paint(colored, color, line)
		}
		shown, at = append(shown, line), next
	}
	return shown
}

func inverse(s string, width int) string {
	return terminal.Paint(true, "7", text.Pad(text.Clip(s, width), width))
}

// numbered is a source whose places are numbers of lines.
type numbered struct {
	name  func() string
	count func() int
	row   func(i, skip, width int) (line, color string)
}

func (n numbered) title() string { return n.name() }

func (n numbered) line(at int64, skip, width int) (line, color string, next int64) {
	if at >= n.end() {
		return "", "", at
	}
	line, color = n.row(int(at), skip, width)
	return line, color, at + 1
}

func (n numbered) before(at int64) int64 { return max(0, at-1) }
func (n numbered) end() int64            { return int64(n.count()) }

// fixed is a short text.
func fixed(name string, lines []string) source {
	return numbered{func() string { return name }, func() int { return len(lines) },
		func(i, skip, width int) (line, color string) { return part(lines[i], skip, width), "" }}
}

// part is what is on the screen of a line.
func part(s string, skip, width int) string {
	if skip > 0 {
		s = text.Rest(s, skip)
	}
	if width > 0 {
		s = text.Clip(s, width)
	}
	return s
}

// help fits on a narrow terminal.
var help = []string{
	"Enter      the output of a host:",
	"           -> out, => err, =: its end",
	"Space d    mark two hosts, compare them",
	"Up Down    line     PgUp PgDn   screen",
	"Home End   ends     Left Right  columns",
	"/ n        find a text, find it again",
	"q Esc      back, leave",
	"Ctrl-C     end the run; again: at once",
}
