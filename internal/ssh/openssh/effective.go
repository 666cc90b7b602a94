package openssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/sys/proc"
)

// parseEffective reads the lists of algorithms of ssh -G or sshd -T.
func parseEffective(text string) (o alg.Offer) {
	lists := map[conf.Keyword]*[]string{conf.Ciphers: &o.Ciphers, conf.MACs: &o.MACs, conf.KexAlgorithms: &o.Kex}
	for k, words := range conf.Dump(text) {
		if list := lists[k]; list != nil && len(words) > 0 {
			*list = words
		}
	}
	return o
}

// Effective returns the client's offer to a destination, by its configuration (ssh -G). Match exec
// lines of that configuration are run, as ssh itself does.
func (p Program) Effective(ctx context.Context, d Destination) (alg.Offer, error) {
	text, err := p.ask(ctx, append(append([]string{"-G"}, d.Options()...), "--", d.Host))
	return parseEffective(text), err
}

// Endpoint is the target of a connection to a destination, by the client's configuration.
type Endpoint struct {
	Hostname, Port string
	KnownAs        string // in known_hosts files
}

// Endpoint asks the client for the endpoint of a destination (ssh -G).
func (p Program) Endpoint(ctx context.Context, d Destination) (Endpoint, error) {
	text, err := p.ask(ctx, append(append([]string{"-G"}, d.Options()...), "--", d.Host))
	return parseEndpoint(text), err
}

// parseEndpoint reads the output of ssh -G.
func parseEndpoint(text string) Endpoint {
	values := map[conf.Keyword]string{}
	for k, words := range conf.Dump(text) {
		values[k] = strings.Join(words, " ")
	}
	port, _ := strconv.Atoi(values[conf.Port])
	e := Endpoint{values[conf.HostName], values[conf.Port], knownhosts.HostPort(values[conf.HostName], port)}
	if alias := values[conf.HostKeyAlias]; alias != "" && alias != "none" {
		e.KnownAs = alias
	}
	return e
}

// EffectiveServer returns the offer of the server's configuration (sshd -T), which needs a host
// key: any key. Where -T is refused, -G of 9.3 and later is tried, which needs none. config "" is
// the server's own.
func (p Program) EffectiveServer(ctx context.Context, config, hostKey string) (alg.Offer, error) {
	var options []string
	if config != "" {
		options = []string{"-f", config}
	}
	text, err := p.ask(ctx, append([]string{"-T", "-h", hostKey}, options...))
	if err != nil {
		if text, err2 := p.ask(ctx, append([]string{"-G"}, options...)); err2 == nil {
			return parseEffective(text), nil
		}
	}
	return parseEffective(text), err
}

// CheckServer lets sshd check a configuration file (sshd -t).
func (p Program) CheckServer(ctx context.Context, config, hostKey string) error {
	_, err := p.ask(ctx, []string{"-t", "-f", config, "-h", hostKey})
	return err
}

// ask runs the program and returns what it prints.
func (p Program) ask(ctx context.Context, args []string) (string, error) {
	stdout, stderr, err := p.Ask(ctx, args...)
	if err != nil {
		if said := strings.TrimSpace(string(stderr)); said != "" {
			err = errors.New(said)
		}
		return "", fmt.Errorf("%s %s: %w", p.Path, args[0], err)
	}
	return string(stdout), nil
}

// configLimit is the time for a program to read its configuration, which may make it run commands
// (Match exec) and read pipes.
const configLimit = 30 * time.Second

// errNoAnswer explains a missing answer.
var errNoAnswer = fmt.Errorf("no answer in %v: does its configuration wait for something, such as a Match exec or a pipe?", configLimit)

// Ask runs the program and returns its output, about its configuration or itself.
func (p Program) Ask(ctx context.Context, args ...string) (stdout, stderr []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, configLimit, errNoAnswer)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = proc.Run(cmd)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	return out.Bytes(), errs.Bytes(), err
}
