package format

import (
	"io"
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/login"
)

// Logins is the report of a record file that holds logins.
type Logins struct {
	Records *record.File
	Output  Output
}

// Render writes the report.
func (x *Logins) Render(w io.Writer, f Format) error {
	switch f.Name {
	case "text":
		return login.Of(x.Records).Text(w)
	case "json":
		return login.Of(x.Records).JSON(w)
	case Records:
		return store.Put(w, slices.Collect(x.Records.Records()))
	}
	if f.Name == "classic" {
		return fault.Usage("leave --format classic out", "the result holds logins, no combinations of algorithms")
	}
	return x.Output.renderDocument(w, f.Name, login.Of(x.Records).Document(x.Records), x.Records)
}

// LoginChanges relates the logins of several files.
type LoginChanges struct{ *login.Comparison }

// Render writes the comparison.
func (x LoginChanges) Render(w io.Writer, f Format) error {
	switch f.Name {
	case "text":
		return x.Text(w)
	case "json":
		return x.JSON(w)
	}
	return fault.Usage("use text or json", "there is no --format %s for logins", f.Name)
}

// LoginFiles relates the logins of files; nil where the first holds none.
func LoginFiles(paths []string) (*LoginChanges, error) {
	var files []*record.File
	var labels []string
	for _, path := range paths {
		f, err := store.Load(path)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 && len(f.LoginKinds) == 0 {
			return nil, nil
		}
		files, labels = append(files, f), append(labels, store.Label(paths, path))
	}
	if slices.ContainsFunc(files, func(f *record.File) bool { return len(f.LoginKinds) == 0 }) {
		return nil, fault.Usage("compare results of one command", "some of the files hold logins, and some do not")
	}
	var reports []*login.Report
	for _, f := range files {
		reports = append(reports, login.Of(f))
	}
	return &LoginChanges{login.Compare(labels, reports)}, nil
}
