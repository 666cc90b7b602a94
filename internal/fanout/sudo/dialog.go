package sudo

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"sync"

	"sshpace/internal/fleet"
)

// dialog is the conversation with sudo on one host. sudo's prompt and the word that marks the start
// of the command are random, so that no output of a host, a login script or a program can be
// mistaken for either.
type dialog struct {
	prompt, began []byte
	program       []byte // program for the host's sh
	input         fleet.Input

	asked   chan struct{} // closed at the first prompt
	started chan struct{} // closed when the command begins
	answer  chan string   // one answer: the password
	close   chan struct{} // closed when there is none

	mu      sync.Mutex
	secret  []byte // the password that was given
	clean   [2]redactor
	held    []byte // part of standard error that may be the beginning of a word
	last    []byte // the end of the text before the command began
	prompts int
	wrapped bool // the end of a prompt of sudo-rs is still to come
	newline bool // and then the end of its line, once sudo-rs has read the password
	running bool
	shut    bool
}

func newDialog(input fleet.Input) *dialog {
	return &dialog{
		prompt: []byte("sshpace-" + rand.Text()), began: []byte("sshpace-" + rand.Text()), input: input,
		asked: make(chan struct{}), started: make(chan struct{}), answer: make(chan string, 1), close: make(chan struct{}),
	}
}

// beginning is the program that writes the word for its start. The word is not in it: sudo repeats
// the program when it refuses to run it.
func (d *dialog) beginning() string {
	return fmt.Sprintf("printf %%s%%s %s %s >&2; ", d.began[:len(d.began)/2], d.began[len(d.began)/2:])
}

// give answers the prompt. A host may send the password back, and a terminal does.
func (d *dialog) give(password string) {
	d.mu.Lock()
	d.secret = []byte(password)
	d.mu.Unlock()
	d.answer <- password
}

// filter removes sudo's words and the password from the output of a host.
func (d *dialog) filter(s fleet.Stream, data []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s == fleet.Stderr && !d.running {
		data = d.listen(data)
	}
	out := d.clean[s].take(data, d.concealed())
	if s == fleet.Stderr && !d.running {
		d.last = append(d.last, out...)
		d.last = d.last[max(0, len(d.last)-400):]
	}
	return out
}

// concealed returns the text that must not be shown. mu is held.
func (d *dialog) concealed() []byte {
	if d.running && len(d.secret) < leastLater {
		return nil
	}
	return d.secret
}

// wrapper begins the prompt of sudo-rs, "[sudo: PROMPT] Password: ", the end of which is PAM's.
// sudo-rs ends the line when it has read the password, in some releases.
const wrapper = "[sudo: "

// listen returns standard error without sudo's prompts, and notes that there were some. mu is held.
func (d *dialog) listen(data []byte) []byte {
	d.held = append(d.held, data...)
	var out []byte
	for {
		d.unwrap()
		at, prompted := d.next()
		if at < 0 {
			break
		}
		if !prompted {
			d.running = true
			out = append(append(out, d.held[:at]...), d.held[at+len(d.began):]...)
			d.held = nil
			close(d.started)
			return out
		}
		before, wrapped := bytes.CutSuffix(d.held[:at], []byte(wrapper))
		out, d.wrapped = append(out, before...), wrapped
		d.held = d.held[at+len(d.prompt):]
		d.hear()
	}
	keep := min(len(d.held), len(wrapper)+len(d.prompt)-1)
	if !d.wrapped {
		out = append(out, d.held[:len(d.held)-keep]...)
	}
	d.held = bytes.Clone(d.held[len(d.held)-keep:])
	return out
}

// unwrap removes the rest of a prompt that sudo-rs wraps into a message of its own, as far as it
// has come. mu is held.
func (d *dialog) unwrap() {
	if d.wrapped {
		d.unwrapMessage()
	}
	if d.newline && len(d.held) > 0 {
		d.held, d.newline = bytes.TrimPrefix(d.held, []byte("\n")), false
	}
}

func (d *dialog) unwrapMessage() {
	end := d.held
	if at, _ := d.next(); at >= 0 {
		end = d.held[:at]
	}
	line, _, ended := bytes.Cut(end, []byte("\n"))
	message, _, whole := bytes.Cut(line, []byte(": "))
	switch {
	case whole:
		line = line[:len(message)+len(": ")]
	case !ended && len(end) == len(d.held): // no word of ours comes next
		return
	}
	d.held, d.wrapped, d.newline = d.held[len(line):], false, true
}

// next finds the first word; -1: there is none.
func (d *dialog) next() (at int, prompted bool) {
	prompt, began := bytes.Index(d.held, d.prompt), bytes.Index(d.held, d.began)
	if prompt >= 0 && (began < 0 || prompt < began) {
		return prompt, true
	}
	return began, false
}

// hear counts a prompt. Asked again, sudo gets nothing: one try per host.
func (d *dialog) hear() {
	d.prompts++
	switch d.prompts {
	case 1:
		close(d.asked)
	case 2:
		d.hangUp()
	}
}

// hangUp ends the input. mu is held.
func (d *dialog) hangUp() {
	if !d.shut {
		d.shut = true
		close(d.close)
	}
}

// leave ends the input of a host where no command begins any more.
func (d *dialog) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hangUp()
}

// rest returns held output of a stream when the host has ended.
func (d *dialog) rest(s fleet.Stream) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s != fleet.Stderr {
		return d.clean[s].rest()
	}
	if d.wrapped {
		d.held = nil
	}
	rest := append(d.clean[s].take(d.held, d.concealed()), d.clean[s].rest()...)
	d.last, d.held = append(d.last, rest...), nil
	return rest
}

// facts returns how the conversation went.
func (d *dialog) facts() (prompts int, running bool, last string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.prompts, d.running, string(d.last)
}

// Reader returns the input of the host: the program, the password if sudo asks for it, and the
// command's own input once it has begun.
func (d *dialog) Reader() io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(d.feed(w)) }()
	return r
}

func (d *dialog) feed(w io.Writer) error {
	if _, err := w.Write(d.program); err != nil {
		return err
	}
	for {
		select {
		case password := <-d.answer:
			if _, err := io.WriteString(w, password+"\n"); err != nil {
				return err
			}
		case <-d.close:
			return nil
		case <-d.started:
			return d.copy(w)
		}
	}
}

func (d *dialog) copy(w io.Writer) error {
	if d.input == nil {
		return nil
	}
	in := d.input.Reader()
	defer in.Close()
	_, err := io.Copy(struct{ io.Writer }{w}, struct{ io.Reader }{in})
	return err
}
