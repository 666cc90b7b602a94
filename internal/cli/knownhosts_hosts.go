package cli

import (
	"context"

	"github.com/spf13/pflag"

	"sshpace/internal/fleet/history"
	"sshpace/internal/ssh/route"
)

// hostFlags select hosts for a command about known_hosts files: sets, as those of run.
type hostFlags struct {
	fleetHosts
	fromConfig bool
	connection connectionFlags // -F
}

func (f *hostFlags) register(flags *pflag.FlagSet) {
	f.fleetHosts.register(flags)
	flags.BoolVar(&f.fromConfig, "from-config", false, "all names on the Host lines of ssh_config")
	flags.StringVarP(&f.connection.Config, "config", "F", "", "ssh_config with the HostName, Port and HostKeyAlias of the hosts; none = no file")
}

// lookedUp returns the named hosts as ssh will look them up; nil if none were named.
func (f *hostFlags) lookedUp(ctx context.Context, sys System) ([]route.LookedUp, error) {
	router, err := route.New(ctx, f.connection.params(sys))
	if err != nil {
		return nil, err
	}
	config, err := router.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	if f.fromConfig && len(config.HostNames()) > 0 {
		f.Sets = append(f.Sets, "@ssh_config:all")
	}
	if f.None() {
		return nil, nil
	}
	named, err := f.hosts(ctx, sys, history.New(history.Dir(sys.Getenv)), router)
	if err != nil {
		return nil, err
	}
	return config.LookUp(ctx, named)
}
