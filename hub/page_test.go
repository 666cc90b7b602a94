package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
	"testing"

	"sshpace/internal/cli"
	"sshpace/internal/fanout/hub"
	"sshpace/internal/fanout/page"
)

// session runs a command line until the test ends, and returns the lines that it writes.
func session(t *testing.T, home string, args ...string) *bufio.Scanner {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	env := map[string]string{"HOME": home}
	sys := cli.System{Stdin: strings.NewReader(""), Stdout: write, Stderr: write, Getenv: func(name string) string { return env[name] }, Hub: hub.NATS{}, Page: page.Serve}
	ended := make(chan int)
	go func() {
		ended <- cli.Main(ctx, sys, append([]string{"sshpace"}, args...))
	}()
	t.Cleanup(func() {
		cancel()
		go io.Copy(io.Discard, read)
		<-ended
	})
	return bufio.NewScanner(read)
}

func get(t *testing.T, address string, header ...string) string {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	r, err := http.NewRequest("GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := (&http.Client{Jar: jar}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// jobs --page prints an address that opens the page.
func TestPageOfRuns(t *testing.T) {
	lines := session(t, t.TempDir(), "jobs", "--page")
	if !lines.Scan() {
		t.Fatal("no address")
	}
	if text := get(t, lines.Text()); !strings.Contains(text, "<h1>Detached runs") || !strings.Contains(text, "There are no jobs") {
		t.Errorf("%s is %s", lines.Text(), text)
	}
}

// hub --page keeps its token in a file, and out of logs.
func TestPageOfHub(t *testing.T) {
	lines := session(t, t.TempDir(), "hub", "--page=127.0.0.1:0")
	for lines.Scan() && !strings.Contains(lines.Text(), "the page is at") {
	}
	_, rest, _ := strings.Cut(lines.Text(), "the page is at ")
	address, file, found := strings.Cut(rest, "TOKEN, which is in ")
	token, err := os.ReadFile(file)
	if !found || err != nil || strings.Contains(lines.Text(), strings.TrimSpace(string(token))) {
		t.Fatalf("%q: %v", lines.Text(), err)
	}
	address += strings.TrimSpace(string(token))
	if text := get(t, address); !strings.Contains(text, "<h1>Jobs of the hub") || !strings.Contains(text, "No launcher is alive") {
		t.Errorf("%s is %s", address, text)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	if text := get(t, "http://"+host+"/metrics", "Authorization", "Bearer "+strings.TrimSpace(string(token))); !strings.Contains(text, `sshpace_jobs{state="done"} 0`) {
		t.Errorf("metrics: %s", text)
	}
}
