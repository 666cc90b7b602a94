package format

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/record/store"
	"sshpace/internal/sys/file"
)

// Found says where that goes which a command found and keeps no records of: it is printed, and
// its JSON form may go to a file besides.
type Found struct {
	Out  string // the file; "": none
	JSON bool   // is printed
}

// Check refuses a file that cannot be written, before anything is measured.
func (f Found) Check() error {
	if f.Out == "" {
		return nil
	}
	return cmp.Or(Ends(f.Out, ".json"), store.CheckNew(f.Out, store.AnotherName))
}

// Show prints what was found, and writes it where it is to be kept.
func (f Found) Show(stdout, stderr io.Writer, text, json func(io.Writer) error) error {
	if f.JSON {
		text = json
	}
	if err := text(stdout); err != nil || f.Out == "" {
		return err
	}
	var kept bytes.Buffer
	if err := json(&kept); err != nil {
		return err
	}
	if err := file.Replace(f.Out, kept.Bytes(), 0o666); err != nil {
		return fault.WithHint(err, "name a file that you may write with --out FILE")
	}
	Saved(stderr, f.Out)
	return nil
}

// Saved says below what was shown where it is kept.
func Saved(stderr io.Writer, name string) {
	fmt.Fprintf(stderr, "\nsaved: %s\n", termsafe.OneLine(name))
}
