package shell

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"sshpace/internal/base/shell"
)

// driver is the program for the host's sh. One process of it reads what we send, also while a
// command runs: lines for the shell, or a request to end the command. It is a group of processes
// that gets the signals, if a server makes one for each session; its number is that of the first
// process, so that no other group can be meant. Jobs in the background do not get INT, as in any
// shell (POSIX 2.11).
//
// The shell is the other one. Its streams 8 and 9 are ours; its own lead nowhere, which hides
// traces of what we add from set -x.
const driver = `trap : INT TERM
{
trap '' INT TERM
while IFS= read -r c; do
case $c in
` + interrupt + `) kill -s INT -- "-$$" ;;
` + kill + `) kill -s KILL -- "-$$" ;;
*) printf '%%s\n' "$c" ;;
esac
done
} 2>/dev/null | {
trap : INT TERM
exec 8>&1 9>&2 2>/dev/null
say() { echo "$m$1$m" >&8; echo "$m$1$m" >&9; }
m=%[1]s
say ` + began + `
say "0 $PWD"
unset TMOUT
sh 8>&8 9>&9 >/dev/null
say "` + died + `$? $PWD"
}`

// The requests to the driver, and the words between its marks.
const (
	interrupt = "i"
	kill      = "k"
	began     = "b" // the command begins
	died      = "e" // before the exit status of the shell itself
)

// line is a line for the shell that runs a command, %[1]s, in the shell itself, so that cd, export
// and functions last. A loop of one round is left by break: in the command, and in the trap, which
// leaves the loops of the command, too. command(1) keeps the shell alive after a mistake in the
// syntax, and is a way past functions of the user's. The command finds the exit status of the one
// before in $?.
const line = `sshpace_c=%[1]s; sshpace_m=%[2]s; sshpace_q() { set -- "${sshpace_s:-0}"; sshpace_s=130; return "$1"; }; ` +
	`trap 'break 99 2>/dev/null' INT; command echo "${sshpace_m}` + began + `$sshpace_m" >&8; command echo "${sshpace_m}` + began + `$sshpace_m" >&9; ` +
	`for sshpace_i in 1; do sshpace_q; command eval "$sshpace_c" </dev/null >&8 2>&9 8>&- 9>&-; sshpace_s=$?; done; trap : INT; ` +
	`sshpace_c="$sshpace_m$sshpace_s ${PWD-}$sshpace_m"; command echo "$sshpace_c" >&8; command echo "$sshpace_c" >&9` + "\n"

// mark is the random text around our words.
type mark string

func newMark() mark { return mark(rand.Text()) }

func (m mark) driver() string { return fmt.Sprintf(driver, m) }

func (m mark) line(command string) []byte { return fmt.Appendf(nil, line, shell.Quote(command), m) }

// word is a word of ours between output.
type word struct {
	began     bool // it is the one before a command
	died      bool // the shell has ended
	exit      int
	directory string // working directory
}

// longest is the most that a word may have: a path.
const longest = 8 << 10

func parse(text string) (w word, ok bool) {
	if text == began {
		return word{began: true}, true
	}
	text, w.died = strings.CutPrefix(text, died)
	exit, directory, _ := strings.Cut(text, " ")
	var err error
	if w.exit, err = strconv.Atoi(exit); w.exit > 255 { // a signal, to ksh93
		w.exit = 128 | w.exit&127
	}
	w.directory = directory
	return w, err == nil
}

// stream is one stream of a shell: output, with words of ours between it.
type stream struct {
	mark mark
	held []byte // it may be the beginning of a word
}

// next returns the output before the next word in data, that word if it is there, and the rest.
func (s *stream) next(data []byte) (out []byte, w *word, rest []byte) {
	if len(s.held) > 0 {
		data = append(s.held, data...)
		s.held = nil
	}
	at := bytes.Index(data, []byte(s.mark))
	if at < 0 {
		at = len(data) - s.overlap(data)
		s.held = bytes.Clone(data[at:])
		return data[:at], nil, nil
	}
	text, rest, whole := bytes.Cut(data[at+len(s.mark):], []byte(s.mark+"\n"))
	if !whole && len(text) < longest {
		s.held = bytes.Clone(data[at:])
		return data[:at], nil, nil
	}
	if found, ok := parse(string(text)); whole && ok {
		return data[:at], &found, rest
	}
	at += len(s.mark) // a command prints it: no word of ours
	return data[:at], nil, data[at:]
}

// overlap returns how many of the last bytes of data may be the beginning of a mark.
func (s *stream) overlap(data []byte) int {
	n := min(len(s.mark)-1, len(data))
	for ; n > 0 && !bytes.HasSuffix(data, []byte(s.mark[:n])); n-- {
	}
	return n
}
