package mux_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/seedtest"
	"sshpace/internal/ssh/sshtest"
)

// pick draws one of several.
func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// call is a command line of ssh for the shell, which names the master as $S, and a file to send as
// $F.
type call struct {
	line  string
	typed string // on a terminal, after the remote side has written "ready"; "": there is none
}

// drawn is a random call.
func drawn(r *rand.Rand, port int) call {
	if r.IntN(8) == 0 {
		return other(r, port)
	}
	var steps []string
	for range 1 + r.IntN(3) {
		steps = append(steps, pick(r, "echo out", "echo err >&2", "cat", "head -c 1000 | cksum", "cksum", "head -c 300000 /dev/zero", "printf '\\000\\377\\r\\n'",
			"echo $X_A $X_B $Y_C $TERM", "exec 1>&-", "exec 2>&-", "exec 0<&-", "sleep 0.1", "sleep 0.3 & true", "yes | head -n 40000", "read a; echo got $a", "kill -9 $$", "kill -15 $$",
			"tty >/dev/null && echo terminal", "(sleep 0.2; echo late >&2) &", "dd bs=1 count=3 2>/dev/null", "trap '' PIPE; echo x"))
	}
	steps = append(steps, pick(r, "", "", "exit 0", "exit 1", "exit 77", "exit 255", "true"))
	command := strings.Trim(strings.Join(steps, "\n"), "\n")
	options := pick(r, "", "", "-T", "-n", "-q", "-x -a", "-A", "-C", "-e none", "-oSetEnv='X_A=1 Y_C=3'", "-oSendEnv=X_*", "-oSendEnv=Y_*", "-oEscapeChar=none", "-oLogLevel=ERROR", "-oRequestTTY=no", "-t")
	if r.IntN(5) == 0 {
		typed := strings.Join([]string{pick(r, "word\r", "a\x7fb\r", "", "\r~~x\r", "x~.\r", "\r"), pick(r, "\x04", "\r~.", "\r~.", "\x03", "\x03", "\x1c", "\r~B\r\x04", "\r~C\r", "\r~&\r", "\r~v\r", "\r~\x1a\r", "\r\x04"), pick(r, "", "\x04", "\x03")}, "")
		steps := pick(r, "stty size", "tty >/dev/null && echo terminal", "echo $TERM $X_A", "trap 'echo interrupted' INT", "true")
		option := pick(r, "", "-oSetEnv=TERM=ansi", "-e^B", "-q", "-oEscapeChar=none")
		if strings.Contains(typed, "\x1a") {
			option = "" // a signal drops other input at any time
		}
		return call{"ssh -S $S -tt " + option + " x " + quoted("echo ready\nread a\necho got $a\n"+steps+"\ncat\nexit 3"), typed + "\x04\x04"}
	}
	status := "status $?"
	in, out := pick(r, "", "printf 'a\nb\n' |", "cat $F |", "(echo a; sleep 0.1; echo b) |", "head -c 5000000 /dev/zero |"), pick(r, "", "", "", "| head -c 1", "| (sleep 0.3; cksum)", "| cat >/dev/null")
	from, to := "", pick(r, "", "", "", ">/dev/null", ">&-", "2>&-", "2>&1", "2>/dev/null", ">&- 2>&-", ">$F.out; cksum <$F.out")
	if in == "" {
		from = pick(r, "</dev/null", "<$F", "<&-", "<>/dev/null")
	}
	where := pick(r, "x "+quoted(command), "x "+quoted(command), "x "+quoted(command), "-s x echo", "-s x none", "x", "-N x", "x --", "-W 127.0.0.1:"+strconv.Itoa(port)+" x", "-W 127.0.0.1:1 x", "-W nowhere.invalid:1 x")
	if strings.Contains(where, "none") && to == "2>&1" {
		to = "" // that there is no such subsystem is said by ours alone
	}
	if strings.Contains(out, "head") {
		status = "over" // the signal may come or not
	}
	return call{line: fmt.Sprintf("{ %s ssh -S $S %s %s %s %s; echo %s >&9; } %s", in, options, where, from, to, status, out)}
}

// other is a call that opens no session, or one that ends before that.
func other(r *rand.Rand, port int) call {
	forward := pick(r, fmt.Sprintf("-L $P:127.0.0.1:%d", port), fmt.Sprintf("-R $P:127.0.0.1:%d", port), "-D $P", "-R $P",
		"-L $F.l:127.0.0.1:"+strconv.Itoa(port), "-L 10.255.255.1:1234:x:1", "-L /nowhere/x:/y", "-L 80:x", "-R /nowhere/x:/y")
	line := ""
	for range 1 + r.IntN(3) {
		line += "ssh -S $S -O " + pick(r, "forward", "cancel", "check", "forward", "conn") + " " + forward + " x; echo status $? >&9; "
	}
	if r.IntN(2) == 0 {
		return call{line: line + "ssh -S $S -O cancel " + forward + " x; echo status $? >&9"}
	}
	return call{line: ": >$F.out; ssh -S $S x 'echo here; exec sleep 3' >$F.out 2>/dev/null & while ! grep -q . $F.out; do sleep 0.01; done; kill -" + pick(r, "TERM", "HUP", "KILL") + " $!; wait $! 2>/dev/null; echo status $(($? > 128)) >&9"}
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// varies is what differs between two calls of ssh anyway.
var varies = regexp.MustCompile(`pid=\d+|[a-z]+ request failed on channel \d+\r\n|~\.\r\n|debug[^\n]*\n|\r`)

// did carries out a call over a master, and describes all that came of it.
func did(t *testing.T, c call, master string, port int) string {
	dir, e := os.MkdirTemp("", "like")
	if e != nil {
		t.Error(e)
		return ""
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, bytes.Repeat([]byte("0123456789abcde\n"), 20000), 0o600); err != nil {
		t.Error(err)
	}
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(c.line, "ssh -S", "ssh -F none -S"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "S=" + master, "F=" + file, fmt.Sprint("P=", port), "X_B=b", "Y_C=c", "TERM=vt100", "HOME=/nonexistent"}
	var out, err, status bytes.Buffer
	r, w, e := os.Pipe()
	if e != nil {
		t.Error(e)
		return ""
	}
	cmd.ExtraFiles = []*os.File{w, w, w, w, w, w, w}
	read := make(chan struct{})
	go func() { defer close(read); io.Copy(&status, r) }()
	cmd.Stdout, cmd.Stderr = &out, &err
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var ended error
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.typed != "" {
		ended = onTerminal(t, ctx, cmd, c.typed, &out)
	} else if ended = cmd.Start(); ended == nil {
		stop := context.AfterFunc(ctx, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		ended = cmd.Wait()
		stop()
	}
	w.Close()
	<-read
	r.Close()
	plain := func(b *bytes.Buffer) []byte {
		return varies.ReplaceAll([]byte(strings.NewReplacer(master, "MASTER", dir, "DIR", fmt.Sprint(port), "PORT").Replace(b.String())), nil)
	}
	said := plain(&out)
	return fmt.Sprintf("out %d %x %.300q\nerr %.600q\nstatus %q, %v", len(said), crc32.ChecksumIEEE(said), said, plain(&err), status.String(), ended)
}

// onTerminal runs a program on a terminal, and types when it is ready.
func onTerminal(t *testing.T, ctx context.Context, cmd *exec.Cmd, typed string, out *bytes.Buffer) error {
	ours, theirs := pseudo(t)
	defer ours.Close()
	resize(ours, 90, 30)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	theirs.Close()
	var mu sync.Mutex
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := ours.Read(buf)
			mu.Lock()
			out.Write(buf[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	is := func() bool { mu.Lock(); defer mu.Unlock(); return bytes.Contains(out.Bytes(), []byte("ready")) }
	for !is() && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	io.WriteString(ours, typed)
	stop := context.AfterFunc(ctx, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	err := cmd.Wait()
	_ = ours.SetReadDeadline(time.Now().Add(time.Second))
	<-read
	return err
}

// TestServerLikeSSH: whatever ssh is asked to do, it does the same over our master and over ssh's.
func TestServerLikeSSH(t *testing.T) {
	sshd := sshtest.StartSshdForOther(t, "AcceptEnv X_*", "Subsystem echo /bin/cat", "MaxSessions 100", "PrintLastLog no")
	ours, theirs := serve(t, sshd.Port, sshd.User, sshd.Key, 0), startMaster(t, sshd, "-oSendEnv=X_*", "-oSetEnv=X_ALL=all")
	count, seed := seedtest.Cases(t, 80)
	echo := echoes(t)
	const atOnce = 3
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range count {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			c := drawn(rand.New(rand.NewPCG(seed, uint64(i))), echo)
			var says [2]string
			var took [2]time.Duration
			var both sync.WaitGroup
			for j, path := range []string{theirs.path, ours.path} {
				both.Go(func() {
					start := time.Now()
					says[j] = did(t, c, path, 20000+i%5000+5000*j)
					took[j] = time.Since(start)
				})
			}
			both.Wait()
			if says[0] != says[1] || (took[0]-took[1]).Abs() > 5*time.Second {
				select {
				case err := <-ours.over:
					t.Errorf("our master has ended: %v", err)
				default:
				}
				t.Errorf("SSHPACE_SEED=%d, case %d: %s\ntyped %q\nssh's master, %v: %s\nours, %v: %s", seed, i, c.line, c.typed, took[0], says[0], took[1], says[1])
			}
		})
	}
	all.Wait()
	select {
	case err := <-ours.over:
		t.Errorf("our master has ended: %v", err)
	default:
	}
}

// echoes is the port of a server that sends back what it gets.
func echoes(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { io.Copy(c, c); c.Close() })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().(*net.TCPAddr).Port
}
