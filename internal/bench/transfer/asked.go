//go:build linux

package transfer

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/unit"
	"sshpace/internal/sys/relay"
)

// longestTrip bounds the round trip of a path.
const longestTrip = 10 * time.Second

// Paths returns paths by round trips as people write them, a rate, and a percentage of lost
// segments: one for each round trip; none where nothing describes a path.
func Paths(rtts []string, rate unit.Rate, loss unit.Percent) (paths []relay.Path, err error) {
	path := relay.Path{Rate: float64(rate), Loss: relay.Loss{Share: float64(loss) / 100}}
	if loss < 0 || loss > 50 {
		return nil, fault.Usage("such as --loss 1", "--loss: want a percentage above 0, up to 50")
	}
	for _, text := range rtts {
		var rtt unit.Duration
		if err := rtt.Set(strings.TrimSpace(text)); err != nil || time.Duration(rtt) > longestTrip {
			return nil, fault.Usage("such as --rtt 50ms or --rtt 0,20ms,100ms", "--rtt %q: want a round trip of 0 to %s", text, longestTrip)
		}
		path.Delay = time.Duration(rtt) / 2
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if len(rtts) == 0 && path != (relay.Path{}) {
		paths = append(paths, path)
	}
	return paths, nil
}

// Bounds of many files in place of one.
const (
	mostFiles     = 100_000
	mostFileBytes = 4 << 30
)

// ManyFiles parses the number and the size of files, such as 1000x10K; none for "".
func ManyFiles(text string) (count int, size int64, err error) {
	if text == "" {
		return 0, 0, nil
	}
	number, each, _ := strings.Cut(text, "x")
	count, err = strconv.Atoi(number)
	bytes, sizeErr := unit.ParseBytes(each)
	if err != nil || sizeErr != nil || count < 1 || count > mostFiles || int64(bytes)*int64(count) > mostFileBytes {
		return 0, 0, fault.Usage("such as --files 1000x10K", "--files %q: want a number of files and the size of each, together no more than 4 GiB", text)
	}
	return count, int64(bytes), nil
}
