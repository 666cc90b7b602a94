package conf

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/base/wildcard"
)

// CheckText lets the installed ssh check what this package cannot: the lines that are kept as text,
// the names in lists of algorithms, and unknown keywords. ssh reads them as options (-o), by the
// same rules as in a file, and does nothing else (-V): usually one call for all hosts. A mistake is
// a *ConfigError with the place. Call it before c is shared: keywords that ssh does not know either
// are refused from then on.
func (c *Config) CheckText(ctx context.Context, run Runner) error {
	newer, err := newerKeywords(ctx, run, once(c.unchecked))
	if err != nil {
		return err
	}
	for _, s := range c.unchecked {
		if slices.Contains(newer, s.name) {
			c.unknown = append(c.unknown, s)
		}
	}
	c.refused, err = newerKeywords(ctx, run, once(c.unknown))
	c.checked = err == nil
	return err
}

// TextTaken reports whether the installed ssh accepts the lines that are kept as text.
func (c *Config) TextTaken(ctx context.Context, run Runner) (bool, error) {
	newer, err := newerKeywords(ctx, run, once(c.unchecked))
	if _, mistake := errors.AsType[*ConfigError](err); mistake {
		return false, nil
	}
	return len(newer) == 0, err
}

// once returns the lines without repetitions.
func once(lines []stmt) []stmt {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(lines), func(s stmt) bool {
		again := seen[s.line]
		seen[s.line] = true
		return again
	})
}

// maxLines is how many lines ssh is asked about at a time: arguments have limits.
const maxLines = 1000

// newerKeywords returns the keywords that ssh does not know, in lower case.
func newerKeywords(ctx context.Context, run Runner, lines []stmt) (names []string, err error) {
	for some := range slices.Chunk(lines, maxLines) {
		newer, err := refused(ctx, run, some)
		if err != nil {
			return nil, err
		}
		names = append(names, newer...)
	}
	return names, nil
}

// optionPlace matches ssh's words for the place of an option.
var optionPlace = wildcard.Regexp(`^command-line:? line 0:? *`)

// refused finds the lines that ssh refuses by bisection: ssh names no place.
func refused(ctx context.Context, run Runner, lines []stmt) (newer []string, err error) {
	args := []string{"-F", os.DevNull}
	for _, s := range lines {
		line, _, _ := strings.Cut(s.line, "\x00")
		args = append(args, "-o", strings.TrimRight(line, blanks))
	}
	_, stderr, err := run(ctx, append(args, "-V")...)
	if err == nil {
		return nil, nil
	}
	reason, ended := refusal(err, stderr)
	switch {
	case !ended:
		return nil, err
	case len(lines) > 1:
		half := len(lines) / 2
		first, err := refused(ctx, run, lines[:half])
		if err != nil {
			return nil, err
		}
		second, err := refused(ctx, run, lines[half:])
		return append(first, second...), err
	case strings.Contains(reason, "Bad configuration option"):
		return []string{lines[0].name}, nil
	}
	return nil, &ConfigError{lines[0].value.Origin, errors.New(optionPlace().ReplaceAllString(reason, ""))}
}

// refusal returns the first line of ssh's message; ok is false unless ssh itself ended in an error.
func refusal(err error, stderr []byte) (reason string, ok bool) {
	reason, _, _ = strings.Cut(strings.TrimSpace(string(stderr)), "\n")
	ended := (interface{ ExitCode() int })(nil)
	return strings.TrimSpace(reason), errors.As(err, &ended) && ended.ExitCode() == 255
}

// Explained is Resolve with the keywords kept as text in the words of ssh -G, which is called if
// there is any such line. If it does not answer, the text stays, with a Gap.
func (a *Asker) Explained(ctx context.Context, q host.Endpoint) (*Resolved, error) {
	r, err := a.Resolve(ctx, q)
	if err != nil || a.config.defaults == nil || len(a.config.unchecked) == 0 {
		return r, err
	}
	full, err := a.dump(ctx, q)
	if err != nil {
		r.Gaps = append(r.Gaps, Gap{Reason: err.Error(), Origin: Origin{Source: FromSSH}})
		return r, ctx.Err()
	}
	for i := range textNames {
		k := keywordCount + Keyword(i)
		r.several.put(k, placed(full.several.of(k), r.several.of(k), a.config.usual.of(k)))
	}
	return r, nil
}

// placed gives ssh's values the places of the lines that set them, or that of a default if no line
// does and the values are the usual ones.
func placed(said, written, usual []Value) []Value {
	values := slices.Clone(said)
	for i := range values {
		switch {
		case len(written) > 0:
			values[i].Origin = written[min(i, len(written)-1)].Origin
		case slices.EqualFunc(said, usual, sameArgs):
			values[i].Origin = Origin{Source: FromDefault}
		}
	}
	return values
}
