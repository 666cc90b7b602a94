// Nfpm makes a package of Debian or of Fedora, RHEL and SUSE: nfpm CONFIG deb|rpm FILE. The command of
// the library of that name makes five more kinds, and takes three times as long to compile.
package main

import (
	"fmt"
	"os"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

func main() {
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(config, kind, target string) error {
	all, err := nfpm.ParseFile(config)
	if err != nil {
		return err
	}
	info, err := all.Get(kind)
	if err != nil {
		return err
	}
	packager, err := nfpm.Get(kind)
	if err != nil {
		return err
	}
	file, err := os.Create(target)
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	info.Target = target
	if err := packager.Package(info, file); err != nil {
		return err
	}
	return file.Close()
}
