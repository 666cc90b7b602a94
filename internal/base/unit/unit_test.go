package unit

import (
	"math"
	"testing"
	"time"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"1048576": 1 << 20, "64M": 64 << 20, "4G": 4 << 30, "1.5GiB": 3 << 29, "2kb": 2048, " 1T ": 1 << 40,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1M", "4X", "M", "NaN", "Inf", "9999999T", "1MM"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
}

// A rate means the same however it is written, and is read as it is printed.
func TestRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"12MB/s": 12e6, "12MB": 12e6, "12M": 12e6, "12m/s": 12e6, "96Mbit/s": 12e6, "1.5MiB/s": 1.5 * (1 << 20), "800K": 800e3, "2G": 2e9, "500": 500, "0": 0,
	} {
		var got, again Rate
		if err := got.Set(text); err != nil || math.Abs(float64(got-want)) > 1 {
			t.Errorf("%s: %v, %v, want %v", text, float64(got), err, float64(want))
		}
		if err := again.Set(got.String()); got != 0 && (err != nil || math.Abs(float64(got-again)) > 1) {
			t.Errorf("%s is printed as %s: %v", text, got.String(), err)
		}
	}
	for _, bad := range []string{"", "-1M", "12 parsecs", "/s", "fast", "M", "1MM", "NaN", "Inf", "96Mbit"} {
		var got Rate
		if err := got.Set(bad); err == nil {
			t.Errorf("%q: %v without an error", bad, float64(got))
		}
	}
}

func TestStrings(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{Bytes(64 << 20).String(), "64 MiB"},
		{Difference(0.113), "11 %"}, {Difference(0.034), "3.4 %"}, {Difference(1.17), "a factor of 2.17"}, {Difference(561.248), "a factor of 562"},
		{Bytes(1000).String(), "1000 B"},
		{Bytes(1536).String(), "1.5 KiB"},
		{Throughput(1.45e9).String(), "1450 MB/s"},
		{Throughput(27.31e6).String(), "27.3 MB/s"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

func TestSwitch(t *testing.T) {
	for text, want := range map[string]Switch{"on": true, "Yes": true, "true": true, "off": false, "no": false, "false": false} {
		got := !want
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if again := got; again.Set(got.String()) != nil || again != got {
			t.Errorf("%s is written as %s", text, &got)
		}
	}
	if new(Switch).Set("maybe") == nil {
		t.Error("maybe is neither on nor off")
	}
}

func TestCount(t *testing.T) {
	for noun, want := range map[string]string{"entry": "2 entries", "key": "2 keys", "batch": "2 batches"} {
		if got := Count(2, noun); got != want {
			t.Errorf("Count(2) = %q, want %q", got, want)
		}
	}
	for n, want := range map[int]string{0: "0 cells", 1: "1 cell", 2: "2 cells"} {
		if got := Count(n, "cell"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{1234.5: "1234", 99.96: "100", 99.94: "99.9", 9.996: "10.0", 0.9996: "1.00", 0.12345: "0.123", 0: "0", -5: "-5.00"} {
		if got := Digits(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

// TestAge: two units are enough.
func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m1s", 3*time.Hour + 12*time.Minute: "3h12m", 50 * time.Hour: "2d2h",
	} {
		if got := Age(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
