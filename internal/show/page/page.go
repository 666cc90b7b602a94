// Package page writes a report as one HTML page that needs nothing else: no network, no server, no
// other file. Tables are plain HTML and stay readable without scripts; the pictures are drawn by
// Apache ECharts from the same numbers.
//
// The content may come from a hostile host or file. All data pass through html/template, and the
// policy in the page forbids every script and style but our own, and every request.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"
	"sync"

	"sshpace/internal/show/document"
)

//go:embed page.html
var pageHTML string

//go:embed style.css
var styleCSS string

// Built by echarts/build.sh from the versions that its lock file pins.
//
//go:embed echarts/echarts.js
var echartsJS string

//go:embed app/draw.js
var drawJS string

//go:embed app/options.js
var optionsJS string

//go:embed app/tables.js
var tablesJS string

//go:embed app/main.js
var mainJS string

// Write renders the document.
func Write(w io.Writer, d *document.Document) error {
	t, err := parsed()
	if err != nil {
		return err
	}
	var out bytes.Buffer // so that an error leaves no half-written page
	if err := t.Execute(&out, viewOf(d)); err != nil {
		return err
	}
	_, err = out.WriteTo(w)
	return err
}

var parsed = sync.OnceValues(func() (*template.Template, error) {
	return template.New("page").Parse(pageHTML)
})

// app returns our own script: its files share one scope that is invisible outside.
func app() string {
	return "(() => {\n'use strict';\n" + strings.Join([]string{optionsJS, drawJS, tablesJS, mainJS}, "\n") + "})();\n"
}

// securityPolicy returns the Content-Security-Policy of the page (W3C CSP Level 3): nothing at all
// but the scripts and the style with these hashes. Hashes cover exactly the text between the tags.
func securityPolicy(scripts []string, style string) string {
	var hashes []string
	for _, s := range scripts {
		hashes = append(hashes, hash(s))
	}
	return "default-src 'none'; script-src " + strings.Join(hashes, " ") + "; style-src " + hash(style) + "; base-uri 'none'; form-action 'none'"
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
