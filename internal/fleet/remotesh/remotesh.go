// Package remotesh sends programs for a POSIX shell to hosts with any login shell: a server hands a
// command line to the login shell (sshd(8), shell -c), and no way of quoting means the same to all
// of them. fish reads \' between single quotes as a quote, zsh expands =ls, and csh interprets !
// and a line end between single quotes. Here the login shell sees a fixed line that means the same
// to all of them, and the program comes by standard input; all bytes after it are the program's own
// input.
package remotesh

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sshpace/internal/base/shell"
)

// loader reads %[1]s bytes of program and not one more, after what %[3]s does: dd is the only tool
// that promises it (POSIX head may read ahead). If dd cannot fill a block from a pipe, the second
// form reads byte by byte; GNU, busybox and the BSDs can. %[2]s marks both ends of the program: a
// start-up file may have read some of the input, and then the rest, which is data, must not be run.
// Nor may it if a start-up file begins another shell, which takes all input for its script.
const loader = `exec sh -c '%[3]sp=$(dd bs=%[1]s count=1 iflag=fullblock 2>/dev/null || dd bs=1 count=%[1]s 2>/dev/null); ` +
	`case $p in "{ #%[2]s"*"exit #%[2]s") eval "$p" ;; *) echo "sshpace: the host did not read its program: a start-up file may read standard input" >&2; exit 126 ;; esac'`

// Command returns a command line for any login shell that runs a program in the host's sh, and the
// first bytes of its standard input. All later input is the program's own.
func Command(program string) (line string, input []byte) {
	mark := rand.Text()
	input = marked(mark, program)
	return fmt.Sprintf(loader, strconv.Itoa(len(input)), mark, ""), input
}

// Later is Command for a program that is not known yet: the host's sh waits for it, as long as that
// takes. input returns the first bytes of its standard input.
func Later() (line string, input func(program string) []byte) {
	mark := rand.Text()
	return fmt.Sprintf(loader, "$n", mark, "unset TMOUT; read -r n; "), func(program string) []byte {
		text := marked(mark, program)
		return append(fmt.Appendf(nil, "%d\n", len(text)), text...)
	}
}

func marked(mark, program string) []byte {
	return fmt.Appendf(nil, "{ #%s\n%s\n}; exit #%s", mark, program, mark)
}

// ErrBinary says that a script holds zero bytes, which no shell can.
var ErrBinary = errors.New("the script holds zero bytes: it is a binary")

// ErrCarriageReturn says that a #! line ends like lines of DOS.
var ErrCarriageReturn = errors.New("the first line ends with a carriage return: no host has an interpreter of that name")

// ErrByteOrderMark says that a script begins with the mark of a Windows text.
var ErrByteOrderMark = errors.New("the script begins with a byte-order mark: no host sees its first line as it is; save it without")

// Script returns the program that runs a script with arguments, as the kernel does with an
// executable file (execve(2)), except that there is none: the interpreter is told to read a pipe.
// Without a #! line that is sh. Standard input is the script's own.
func Script(script []byte, args []string) (program string, err error) {
	if bytes.IndexByte(script, 0) >= 0 {
		return "", ErrBinary
	}
	words, err := interpreter(script)
	if err != nil {
		return "", err
	}
	words = append(append(words, source), args...)
	for i, word := range words {
		words[i] = shell.Word(word)
	}
	// Nobody waits for the writer, and it holds nothing of the connection: a script may end early,
	// and leave a process that holds the pipe.
	write := "{ { exec 2>/dev/null 4<&-; printf %s " + shell.Quote(string(script)) + "; } & }"
	return "exec 4<&0; " + write + " | { exec 3<&0 <&4 4<&-; exec " + strings.Join(words, " ") + "; }", nil
}

// source is where the interpreter finds the script.
const source = "/dev/fd/3"

// interpreter reads the #! line: a program, and all the rest as one argument.
func interpreter(script []byte) ([]string, error) {
	if bytes.HasPrefix(script, []byte("\ufeff")) {
		return nil, ErrByteOrderMark
	}
	line, _, _ := bytes.Cut(script, []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	if !ok {
		return []string{"sh"}, nil
	}
	if bytes.HasSuffix(rest, []byte("\r")) {
		return nil, ErrCarriageReturn
	}
	text := strings.Trim(string(rest), " \t")
	end := strings.IndexAny(text, " \t")
	switch {
	case text == "":
		return []string{"sh"}, nil
	case end < 0:
		return []string{text}, nil
	}
	return []string{text[:end], strings.TrimLeft(text[end:], " \t")}, nil
}
