// Package unit holds the quantities that sshpace measures, as types that carry their unit, and
// scales them for people. Values are stored in base units and scaled only when they are printed.
package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is an amount of data in bytes.
type Bytes int64

// Throughput is a rate in bytes per second.
type Throughput float64

// binaryPrefixes are the suffixes that ParseBytes reads, as dd(1) and the RekeyLimit of
// ssh_config(5) do: K, M, G and T are powers of 1024.
var binaryPrefixes = map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

// ParseBytes reads a size such as "4G", "64M", "1.5GiB" or "1048576". It returns an error for
// anything that is not a positive amount.
func ParseBytes(s string) (Bytes, error) {
	text := strings.ToUpper(strings.TrimSpace(s))
	text = strings.TrimSuffix(strings.TrimSuffix(text, "B"), "I")
	number := strings.TrimRight(text, "KMGT")
	factor, ok := binaryPrefixes[text[len(number):]]
	value, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(value > 0) || value*factor > math.MaxInt64/2 {
		return 0, errors.New("want a positive number with an optional K, M, G or T, such as 64M")
	}
	return Bytes(value * factor), nil
}

// String formats b with a binary prefix, such as "64 MiB".
func (b Bytes) String() string {
	value, prefix := scale(float64(b), 1024, []string{"", "Ki", "Mi", "Gi", "Ti"})
	return trimZeros(value) + " " + prefix + "B"
}

// String formats t in decimal megabytes per second, such as "1450 MB/s": the one scale that every
// ranking uses, so that columns can be compared by eye.
func (t Throughput) String() string { return Digits(float64(t)/1e6) + " MB/s" }

// scale divides value by base until at most three digits stand before the point, and returns the
// prefix for the quotient.
func scale(value, base float64, prefixes []string) (float64, string) {
	i := 0
	for math.Abs(value) >= base && i < len(prefixes)-1 {
		value /= base
		i++
	}
	return value, prefixes[i]
}

// Digits prints three significant digits without an exponent. All reports for people show numbers
// this way.
func Digits(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "?"
	}
	digits := 3
	for _, from := range []float64{0.9995, 9.995, 99.95} {
		if math.Abs(v) >= from || v == 0 {
			digits--
		}
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// Milliseconds prints nanoseconds as people read them: "12.3 ms".
func Milliseconds[T ~float64 | ~int64](ns T) string { return InMilliseconds(ns) + " ms" }

// InMilliseconds prints nanoseconds as milliseconds, without the unit: "12.3".
func InMilliseconds[T ~float64 | ~int64](ns T) string { return Digits(float64(ns) / 1e6) }

// Percentage prints a percentage in at most three characters.
func Percentage(v float64) string {
	switch {
	case v >= 999:
		return "999"
	case v >= 9.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// Difference prints how far two figures are apart, as a share of the smaller: "11 %", and from the
// double on "a factor of 2.2".
func Difference(part float64) string {
	if part >= 1 {
		return "a factor of " + Digits(1+part)
	}
	return Percentage(100*part) + " %"
}

func trimZeros(value float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0")
}

// Age returns a time that has passed in its two largest units, such as 3h5m.
func Age(d time.Duration) string {
	d = max(d, 0)
	for _, u := range []struct {
		large, small time.Duration
		words        string
	}{{24 * time.Hour, time.Hour, "dh"}, {time.Hour, time.Minute, "hm"}, {time.Minute, time.Second, "ms"}} {
		if d >= u.large {
			return fmt.Sprintf("%d%c%d%c", d/u.large, u.words[0], d%u.large/u.small, u.words[1])
		}
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// Count prints a number with its noun: "1 cell", "2 cells", "2 keys", "2 entries", "2 batches".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.HasSuffix(noun, "ey") {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
