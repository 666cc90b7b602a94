// Package chglog stands for the module of that name, which reads change logs and brings a whole Git
// with it: our packages have no change log.
package chglog

import (
	"errors"
	"text/template"
	"time"
)

// ErrNone is the answer to all that asks for a change log.
var ErrNone = errors.New("packages have no change log here: leave changelog out of nfpm.yaml")

// PackageChangeLog is the change log of a package.
type PackageChangeLog struct {
	Name    string
	Entries []Entry
}

// Entry is one version in it.
type Entry struct {
	Semver, Packager string
	Date             time.Time
}

// Parse reads no file.
func Parse(string) ([]Entry, error) { return nil, ErrNone }

// DebTemplate has none.
func DebTemplate() (*template.Template, error) { return nil, ErrNone }

// LoadTemplateData has none.
func LoadTemplateData(string) (*template.Template, error) { return nil, ErrNone }

// FormatChangelog formats none.
func FormatChangelog(*PackageChangeLog, *template.Template) (string, error) { return "", ErrNone }
