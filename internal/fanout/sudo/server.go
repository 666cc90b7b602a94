package sudo

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"

	"sshpace/internal/fleet"
	"sshpace/internal/fleet/remotesh"
)

// find looks for the host's SFTP server. sshd's configuration says where it is, if the login may
// read it, or it is in one of the usual places; PATH is not asked, since it is the login's own.
const find = `for p in $(sed -n 's,^[Ss]ubsystem[[:space:]]*sftp[[:space:]]*\(/[^[:space:]]*\).*,\1,p' /etc/ssh/sshd_config 2>/dev/null) ` +
	`/usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/lib/ssh/sftp-server /usr/libexec/sftp-server ` +
	`/usr/lib/sftp-server /usr/lib64/ssh/sftp-server /usr/lib/misc/sftp-server /usr/local/libexec/sftp-server ` +
	`/run/current-system/sw/libexec/sftp-server ""; do [ -x "$p" ] && break; done; `

// server starts what was found in the home directory of the account.
const server = `cd 2>/dev/null || cd /; [ -x "$0" ] && exec "$0"; echo "there is no sftp-server on the host: install it"`

// channel talks to an SFTP server that runs by sudo, as do the commands beside it.
type channel struct {
	fleet.Channel
	by      *Executor
	dialog  *dialog
	reads   *bufio.Reader
	listens chan struct{} // closed when the output belongs to the reader
	begin   func() error
}

func newChannel(ch fleet.Channel, by *Executor, d *dialog) *channel {
	c := &channel{Channel: ch, by: by, dialog: d, reads: bufio.NewReader(ch), listens: make(chan struct{})}
	c.begin = sync.OnceValue(c.start)
	return c
}

// start waits until sudo has started the server, or has ended.
func (c *channel) start() error {
	go c.listen()
	if err := c.dialog.feed(c.Channel); err != nil {
		return err
	}
	if _, running, _ := c.dialog.facts(); !running {
		c.Channel.Close() // sudo waits for another password
		return io.ErrClosedPipe
	}
	return nil
}

// listen notices the end of the output before the server has begun.
func (c *channel) listen() {
	defer close(c.listens)
	for n := 1; ; n = c.reads.Buffered() + 1 {
		if _, err := c.reads.Peek(n); err != nil {
			c.dialog.leave()
			return
		}
		select {
		case <-c.dialog.started:
			return
		default:
		}
	}
}

// Read reads what the server sends.
func (c *channel) Read(p []byte) (int, error) {
	<-c.listens
	return c.reads.Read(p)
}

// Write waits until the server runs.
func (c *channel) Write(p []byte) (int, error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	return c.Channel.Write(p)
}

// Open opens nothing: a second server would be a second conversation.
func (*channel) Open(context.Context, string) (io.ReadWriteCloser, error) {
	return nil, fleet.ErrNoExec
}

// Exec runs a command by sudo. Where sudo has asked for the password, it is to ask again (-k), and
// finds it in its input. If it does not ask for it, the command's shell passes over it, up to a
// mark.
func (c *channel) Exec(ctx context.Context, line string, input io.Reader) ([]byte, error) {
	options, before := []string{"-n", "-H"}, ""
	prompts, _, _ := c.dialog.facts()
	if prompts > 0 {
		mark := rand.Text()
		options[0] = "-kS"
		line = fmt.Sprintf(`until [ "$l" = %s ]; do IFS= read -r l || exit; done; %s`, mark, line)
		before = string(c.dialog.secret) + "\n" + mark + "\n"
	}
	line, program := remotesh.Command(c.by.program(options, line))
	said, err := c.Channel.Exec(ctx, line, io.MultiReader(bytes.NewReader(append(program, before...)), input))
	if len(c.dialog.secret) >= leastLater {
		said = bytes.ReplaceAll(said, c.dialog.secret, []byte(stars))
	}
	return said, err
}
