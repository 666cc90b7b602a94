package sshtest

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os/exec"
	"sync"
	"testing"
)

// Answering starts a TCP server on loopback that treats all connections alike, and returns its
// address. It and its connections end with the test, which waits for all of them.
func Answering(t testing.TB, answer func(net.Conn)) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	Answer(t, l, answer)
	return l.Addr().(*net.TCPAddr)
}

// Answer treats all connections to l alike. It and they end with the test, which waits for all of
// them.
func Answer(t testing.TB, l net.Listener, answer func(net.Conn)) {
	var all sync.WaitGroup
	ended, end := context.WithCancel(context.Background())
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ended, func() { c.Close() })()
				answer(c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); end(); all.Wait() })
}

// Reference passes questions to testdata/reference.py, which needs a package of Debian, and returns
// its answers, one for each.
func Reference[A, Q any](t *testing.T, debian string, questions []Q) (answers []A) {
	t.Helper()
	var in, out, stderr bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, q := range questions {
		if err := enc.Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/usr/bin/python3", "testdata/reference.py")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("reference.py: %v\n%sinstall the package %s", err, stderr.String(), debian)
	}
	for dec := json.NewDecoder(&out); dec.More(); {
		var a A
		if err := dec.Decode(&a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	if len(answers) != len(questions) {
		t.Fatalf("%d answers to %d questions", len(answers), len(questions))
	}
	return answers
}
