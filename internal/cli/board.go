package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet/history"
	"sshpace/internal/sys/safedir"
	"sshpace/internal/sys/terminal"
)

// Addresses of pages: that of a hub stays, for bookmarks and for Prometheus.
const (
	hubPage  = "127.0.0.1:7722"
	runsPage = "127.0.0.1:0"
)

// showRuns shows the detached runs of this machine in a page.
func (sys System) showRuns(ctx context.Context, store *history.Store, address string) error {
	if err := sys.needHub(); err != nil {
		return err
	}
	drain, _, stop := interruptsSaying(ctx, sys, "the page ends, and jobs go on")
	defer stop()
	p := job.Page{Runs: store, Address: address, Ready: func(address string) { fmt.Fprintln(sys.Stdout, address) }}
	return interrupted(drain, ignoreCancel(sys.Page(drain, p)))
}

// showHub shows a hub in a page. A log does not get the token.
func (f *hubCommand) showHub(ctx context.Context, sys System, server job.Server) error {
	dir, err := safedir.Make(f.serving.Dir)
	if err != nil {
		return err
	}
	dir.Close()
	bus, err := server.Bus(ctx, job.RoleClient)
	if err != nil {
		return err
	}
	defer bus.Close()
	p := job.Page{Bus: bus, Address: f.page, Cert: f.serving.Certificate, Key: f.serving.Key, TokenFile: filepath.Join(dir.Path(), "page-token")}
	p.Ready = func(address string) {
		if terminal.Width(sys.Stderr, sys.Getenv) == 0 {
			address, _, _ = strings.Cut(address, "=")
			address += "=TOKEN, which is in " + p.TokenFile
		}
		fmt.Fprintln(sys.Stderr, "sshpace: the page is at "+address)
	}
	return ignoreCancel(sys.Page(ctx, p))
}
