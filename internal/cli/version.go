package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version of the next release; the commit comes from the build.
const Version = "0.1.0"

// toolVersion names this build, such as "0.1.0 (1a2b3c4d5e6f)".
func toolVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return fmt.Sprintf("%s (%s)", Version, setting.Value[:12])
		}
	}
	return Version
}

func newVersionCommand(sys System) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of sshpace",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return printVersion(sys) },
	}
}

func printVersion(sys System) error {
	_, err := fmt.Fprintf(sys.Stdout, "sshpace %s %s %s/%s\n", toolVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
