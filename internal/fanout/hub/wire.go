package hub

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// The server checks the subject of a message, but not the one that the answer to it goes to: by
// that, and by consumers that deliver to a subject, a user of one pool could have the server itself
// write to others. So all that users send passes through a filter.

// errRefused says that a user sends what ours never send.
var errRefused = errors.New("it sent what sshpace does not send")

// longestLine bounds a line of the protocol, in bytes; that of CONNECT has a token.
const longestLine = 32 << 10

// filter passes on what a user sends, until that is refused, or ends.
func filter(to io.Writer, from io.Reader) error {
	r, w := bufio.NewReaderSize(from, longestLine), bufio.NewWriterSize(to, longestLine)
	for {
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if err := pass(w, r, string(line)); err != nil {
			return err
		}
	}
}

// pass passes on a line and the message behind it, as it was understood.
func pass(w *bufio.Writer, r *bufio.Reader, line string) error {
	text, ended := strings.CutSuffix(line, "\r\n")
	operation, _, _ := strings.Cut(text, " ")
	args := strings.Split(text, " ")[1:]
	most := 3 // subject, reply, size
	switch operation {
	case "CONNECT", "PING", "PONG", "SUB", "UNSUB":
		_, err := w.WriteString(line)
		return err
	case "HPUB":
		most = 4 // and the size of the headers before it
	case "PUB":
	default:
		return errRefused
	}
	if !ended || len(args) < most-1 || len(args) > most || strings.ContainsAny(text, "\t\r") || slices.Contains(args, "") {
		return errRefused
	}
	if len(args) == most && !strings.HasPrefix(args[1], "_INBOX.") {
		return fmt.Errorf("%w: an answer to %q", errRefused, args[1])
	}
	var sizes [2]int // of headers, of all
	for i, arg := range args[len(args)-(most-2):] {
		n, err := strconv.ParseUint(arg, 10, 31)
		if err != nil || n > server.MAX_PAYLOAD_SIZE {
			return errRefused
		}
		sizes[0], sizes[1] = sizes[1]*i, int(n)
	}
	message := make([]byte, sizes[1]+2)
	if _, err := io.ReadFull(r, message); err != nil || sizes[0] > sizes[1] {
		return errors.Join(err, errRefused)
	}
	if strings.HasPrefix(args[0], "$JS.API.CONSUMER.CREATE.") && delivers(message[sizes[0]:sizes[1]]) {
		return fmt.Errorf("%w: a consumer that delivers by itself", errRefused)
	}
	_, err := w.WriteString(line)
	if err == nil {
		_, err = w.Write(message)
	}
	return err
}

// delivers reports whether a request makes a consumer that delivers to a subject. The server reads
// it by the same decoder.
func delivers(request []byte) bool {
	var r struct {
		Config struct {
			DeliverSubject string `json:"deliver_subject"`
		} `json:"config"`
	}
	return json.Unmarshal(request, &r) != nil || r.Config.DeliverSubject != ""
}
