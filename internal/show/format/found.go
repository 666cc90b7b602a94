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

// Found is the destination of results without records: they are printed, and their JSON form may go
// to a file as well.
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

// Show prints the results, and writes the file if there is one.
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

// Saved reports below the output where the result is kept.
func Saved(stderr io.Writer, name string) {
	fmt.Fprintf(stderr, "\nsaved: %s\n", termsafe.OneLine(name))
}
