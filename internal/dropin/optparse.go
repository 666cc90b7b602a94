package dropin

import (
	"fmt"
	"strconv"
	"strings"
)

// option is an option of a program, for any parser of its command line: optparse and argparse of
// Python, or getopt.
type option struct {
	short   string // one letter, "" = none
	long    string
	set     func(value string) error
	noValue bool
}

// flagOption is an option without a value.
func flagOption(short, long string, to *bool) option {
	return option{short: short, long: long, noValue: true, set: func(string) error { *to = true; return nil }}
}

// insteadOption is an option that prints a text, such as --help, and ends the program.
func insteadOption(short, long, text string) option {
	return option{short: short, long: long, noValue: true, set: func(string) error { return &instead{text} }}
}

func textOption(short, long string, to *string) option {
	return option{short: short, long: long, set: func(v string) error { *to = v; return nil }}
}

func listOption(short, long string, to *[]string) option {
	return option{short: short, long: long, set: func(v string) error { *to = append(*to, v); return nil }}
}

// intOption takes 0x10 and 0b1 as optparse does.
func intOption(short, long string, to *int) option {
	return option{short: short, long: long, set: func(v string) error {
		n, err := strconv.ParseInt(strings.TrimSpace(v), 0, 32)
		if err != nil {
			return fmt.Errorf("invalid integer value: %s", pythonString(v))
		}
		*to = int(n)
		return nil
	}}
}

// parseOptions reads options up to the first word that is none, which optparse calls
// disable_interspersed_args. Errors have its words.
func parseOptions(options []option, args []string) (rest []string, err error) {
	return parse(options, args, false)
}

// parseMixed reads options that may stand anywhere among the words, as argparse and getopt_long do.
func parseMixed(options []option, args []string) (words []string, err error) {
	return parse(options, args, true)
}

func parse(options []option, args []string, mixed bool) (words []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		switch word := len(arg) < 2 || arg[0] != '-'; {
		case word && mixed:
			words, args = append(words, arg), args[1:]
			continue
		case word:
			return args, nil
		}
		args = args[1:]
		switch {
		case arg == "--":
			return append(words, args...), nil
		case arg[1] == '-':
			args, err = longOption(options, arg, args)
		default:
			args, err = shortOptions(options, arg[1:], args)
		}
		if err != nil {
			return nil, err
		}
	}
	return words, nil
}

func longOption(options []option, arg string, args []string) ([]string, error) {
	name, value, given := strings.Cut(arg, "=")
	var found []option
	for _, o := range options {
		if "--"+o.long == name {
			found = []option{o}
			break
		}
		if strings.HasPrefix("--"+o.long, name) {
			found = append(found, o)
		}
	}
	switch {
	case len(found) == 0:
		return nil, &errUsage{"no such option: " + name}
	case len(found) > 1:
		var names []string
		for _, o := range found {
			names = append(names, "--"+o.long)
		}
		return nil, &errUsage{fmt.Sprintf("ambiguous option: %s (%s?)", name, strings.Join(names, ", "))}
	}
	o := found[0]
	name = "--" + o.long
	switch {
	case o.noValue && given:
		return nil, &errUsage{name + " option does not take a value"}
	case !o.noValue && !given:
		if len(args) == 0 {
			return nil, &errUsage{name + " option requires 1 argument"}
		}
		value, args = args[0], args[1:]
	}
	return args, o.apply(name, value)
}

func shortOptions(options []option, letters string, args []string) ([]string, error) {
	for letters != "" {
		letter := letters[:1]
		letters = letters[1:]
		o, ok := shortOption(options, letter)
		switch {
		case !ok:
			return nil, &errUsage{"no such option: -" + letter}
		case o.noValue:
			if err := o.apply("-"+letter, ""); err != nil {
				return nil, err
			}
			continue
		case letters == "" && len(args) == 0:
			return nil, &errUsage{"-" + letter + " option requires 1 argument"}
		case letters == "":
			letters, args = args[0], args[1:]
		}
		return args, o.apply("-"+letter, letters)
	}
	return args, nil
}

func shortOption(options []option, letter string) (option, bool) {
	for _, o := range options {
		if o.short == letter {
			return o, true
		}
	}
	return option{}, false
}

func (o option) apply(name, value string) error {
	switch err := o.set(value).(type) {
	case nil, *errUsage, *instead, *pdshError:
		return err
	default:
		return &errUsage{fmt.Sprintf("option %s: %s", name, err)}
	}
}
