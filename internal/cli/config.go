package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sshpace/internal/base/host"
	"sshpace/internal/show/findings"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/terminal"
)

type configFlags struct {
	foundFlags
	connection connectionFlags
	all        bool
}

func newConfigCommand(sys System) *cobra.Command {
	var f configFlags
	cmd := page("config", &cobra.Command{
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runConfig(cmd.Context(), sys, f, args[0])
		},
	})
	f.connection.register(cmd.Flags())
	cmd.Flags().BoolVar(&f.all, "all", false, "show all settings, including defaults")
	f.foundFlags.register(cmd.Flags())
	completeHosts(cmd, sys, &f.connection)
	return cmd
}

func runConfig(ctx context.Context, sys System, f configFlags, text string) error {
	if err := f.Check(); err != nil {
		return err
	}
	h, err := host.Parse(text)
	if err != nil {
		return usageError("write it as user@host, user@host:port or ssh://user@host:port", "%s", err)
	}
	router, err := route.New(ctx, f.connection.params(sys))
	if err != nil {
		return err
	}
	config, err := router.Configuration(ctx)
	if err != nil {
		return err
	}
	for _, warning := range config.Warnings() {
		fmt.Fprintf(sys.Stderr, "sshpace: warning: %s\n", oneLine(warning))
	}
	e, err := findings.Explain(ctx, router, config, h)
	if err != nil {
		return route.ResolveError(err, h.Name)
	}
	return f.show(sys, func(w io.Writer) error { return e.Text(w, f.all, terminal.Width(w, sys.Getenv)) }, e.JSON)
}
