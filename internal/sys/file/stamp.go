package file

import "time"

// stamps are the layouts of times in names; the first one is in use. Names sort by it.
var stamps = []string{"20060102T150405.000000000Z", "20060102T150405.000Z"}

// Stamp returns a time for the name of a file.
func Stamp(t time.Time) string { return t.UTC().Format(stamps[0]) }

// IsStamp reports whether text is such a time, also one of earlier versions.
func IsStamp(text string) bool {
	for _, layout := range stamps {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}
