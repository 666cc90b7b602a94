package main

import (
	"html"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPictureOfREADME: README.md's picture and its screen are of one result, and say the same of
// it.
func TestPictureOfREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile("doc/bench.svg")
	if err != nil {
		t.Fatal(err)
	}
	flat, sentences := strings.ToLower(strings.Join(strings.Fields(string(readme)), " ")), 0
	for _, said := range regexp.MustCompile(`aria-label="([^"]*)"`).FindAllStringSubmatch(string(picture), -1) {
		text := strings.ToLower(html.UnescapeString(said[1]))
		if strings.Contains(text, ", ") || strings.HasPrefix(text, "ciphers ") { // else it is a title or a figure
			if strings.Contains(text, "what policy") {
				continue
			}
			if sentences++; !strings.Contains(flat, text) {
				t.Errorf("README.md does not say %q, as its picture does", text)
			}
		}
	}
	if sentences < 3 {
		t.Errorf("the picture says only %d sentences", sentences)
	}
}
