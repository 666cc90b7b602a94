package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/record"
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
	var asJSON bool
	cmd := page("version", &cobra.Command{
		Args: takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if !asJSON {
				return printVersion(sys)
			}
			return termsafe.WriteJSON(sys.Stdout, struct {
				Schema  string   `json:"schema"`
				Version string   `json:"version"`
				Go      string   `json:"go"`
				OS      string   `json:"os"`
				Arch    string   `json:"arch"`
				Result  int      `json:"result_format"`
				Schemas []string `json:"schemas"`
			}{"sshpace.version/1", toolVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH, record.FormatVersion, schemas}, "  ")
		},
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the schemas of all commands")
	return cmd
}

func printVersion(sys System) error {
	_, err := fmt.Fprintf(sys.Stdout, "sshpace %s %s %s/%s\n", toolVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// schemas names the layouts of --json, and of results.
var schemas = []string{
	"sshpace.advice/1", "sshpace.compare/2", "sshpace.config/1", "sshpace.doctor/1", "sshpace.hosts/1", "sshpace.hub/1", "sshpace.import/1", "sshpace.job/1", "sshpace.jobs/1", "sshpace.keep/1", "sshpace.known-hosts.bench/1", "sshpace.known-hosts.lint/1", "sshpace.known-hosts.lookup/1", "sshpace.known-hosts.pin/1", "sshpace.known-hosts.scan/1", "sshpace.known-hosts.split/1",
	"sshpace.latency/1", "sshpace.limits/1", "sshpace.list/1", "sshpace.login/1", "sshpace.methods/1", "sshpace.plan/1", "sshpace.proof/1", "sshpace.report/1", "sshpace.run/1", "sshpace.survey/1",
	"sshpace.version/1",
}
