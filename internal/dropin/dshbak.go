package dropin

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
)

const dshbakHelp = `Usage: dshbak [OPTION]...
Sorts lines "host: text" of standard input by host (a mode of sshpace).
 -h       this text
 -c       hosts with the same text together
 -d DIR   a file for each host in DIR
 -f       with -d, make DIR
`

// dshbak is one call of pdsh's dshbak. Its promise: options, output and exit codes. Knowingly
// different: hosts with the same number come in the order of their names, where the original's
// differs from call to call; a host and one with a number after that name are not joined into a
// range; a file of -d stays in DIR whatever a host is called; on a terminal remote text is cleaned.
type dshbak struct {
	Coalesce bool
	Dir      string
	Make     bool
	Files    []string
}

var dshbakProgram = program{
	parse: func(_ Env, args []string) (call, error) { return parseDshbak(args) },
	usage: func(env Env, _ string) { io.WriteString(env.Stderr, dshbakHelp) },
	said: func(_ Env, text string) string {
		return "dshbak: Fatal: " + strings.ToUpper(text[:1]) + text[1:]
	},
}

func parseDshbak(args []string) (_ *dshbak, err error) {
	d := &dshbak{}
	d.Files, err = parseMixed([]option{
		flagOption("c", "", &d.Coalesce), textOption("d", "", &d.Dir), flagOption("f", "", &d.Make),
		{short: "h", noValue: true, set: func(string) error { return &errUsage{} }},
	}, args)
	switch {
	case err != nil:
	case d.Coalesce && d.Dir != "":
		err = errors.New("do not specify both -c and -d")
	case d.Make && d.Dir == "":
		err = errors.New("option -f may only be used with -d")
	}
	return d, err
}

func (d *dshbak) run(_ context.Context, env Env) (int, error) { return exitOK, d.print(env) }

// print prints the output of the hosts, or writes it into their files.
func (d *dshbak) print(env Env) error {
	if d.Dir != "" {
		if d.Make {
			if err := os.MkdirAll(d.Dir, 0o777); err != nil {
				return fmt.Errorf("failed to create %s: %w", d.Dir, err)
			}
		}
		if info, err := os.Stat(d.Dir); err != nil || !info.IsDir() {
			return fmt.Errorf("output directory %s does not exist", d.Dir)
		}
	}
	texts, err := readTagged(env.Stdin, d.Files)
	if err != nil {
		return err
	}
	hosts := byNumber(texts)
	if d.Dir != "" {
		for _, h := range hosts {
			if err := os.WriteFile(filepath.Join(d.Dir, output.FileName(h)), []byte(texts[h].String()), 0o666); err != nil {
				return fmt.Errorf("failed to open output file: %w", err)
			}
		}
		return nil
	}
	out := bufio.NewWriter(env.Stdout)
	d.write(out, env, hosts, texts)
	return out.Flush()
}

// write writes the texts, each under the hosts that sent it.
func (d *dshbak) write(w io.Writer, env Env, hosts []string, texts map[string]*strings.Builder) {
	const line = "----------------\n"
	same := map[string][]string{}
	for _, h := range hosts {
		same[texts[h].String()] = append(same[texts[h].String()], h)
	}
	for _, h := range hosts {
		text := texts[h].String()
		head := h
		if d.Coalesce {
			if same[text] == nil {
				continue
			}
			head = strings.Join(compress(same[text]), ",")
			same[text] = nil
		}
		fmt.Fprintf(w, "%s%s\n%s%s", line, env.safe(fleet.Stdout, []byte(head)), line, env.safe(fleet.Stdout, []byte(text)))
	}
}

// tagged matches a line of pdsh.
var tagged = wildcard.Regexp(`^\s*(\S+?)\s*: ?(.*\n)$`)

// readTagged gathers the lines of each host. Other lines, and an unfinished one, are dropped.
func readTagged(stdin io.Reader, files []string) (map[string]*strings.Builder, error) {
	sources := []io.Reader{stdin}
	if len(files) > 0 {
		sources = nil
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		sources = append(sources, f)
	}
	texts := map[string]*strings.Builder{}
	in := bufio.NewReader(io.MultiReader(sources...))
	for {
		line, err := in.ReadString('\n')
		if m := tagged().FindStringSubmatch(line); m != nil {
			if texts[m[1]] == nil {
				texts[m[1]] = &strings.Builder{}
			}
			texts[m[1]].WriteString(m[2])
		}
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// splitNumber takes the digits off the end of a name.
func splitNumber(name string) (before, digits string) {
	before = strings.TrimRight(name, "0123456789")
	return before, name[len(before):]
}

func compareNumbered(a, b string) int {
	_, x := splitNumber(a)
	_, y := splitNumber(b)
	x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(a, b))
}

func byNumber[V any](hosts map[string]V) []string {
	return slices.SortedFunc(maps.Keys(hosts), compareNumbered)
}

// compress folds names as dshbak does: numbers before the last text without digits become ranges.
func compress(names []string) []string {
	slices.SortFunc(names, compareNumbered)
	var order []string
	stems := map[string][]string{}
	for _, name := range names {
		stem := strings.TrimRightFunc(name, func(r rune) bool { return r < '0' || r > '9' })
		suffix := name[len(stem):]
		if stems[suffix] == nil {
			order = append(order, suffix)
		}
		stems[suffix] = append(stems[suffix], stem)
	}
	var list []string
	for _, suffix := range order {
		for _, folded := range compressStems(stems[suffix]) {
			list = append(list, folded+suffix)
		}
	}
	return list
}

func compressStems(stems []string) []string {
	slices.SortFunc(stems, compareNumbered)
	numbers := map[string][]string{}
	for _, stem := range stems {
		before, digits := splitNumber(stem)
		numbers[before] = append(numbers[before], digits)
	}
	var folded []string
	for _, before := range slices.Sorted(maps.Keys(numbers)) {
		text := ranges(numbers[before])
		if strings.ContainsAny(text, ",-") {
			text = "[" + text + "]"
		}
		folded = append(folded, before+text)
	}
	return folded
}

// ranges writes numbers, those that follow each other as 1-3.
func ranges(numbers []string) string {
	var texts []string
	for i := 0; i < len(numbers); {
		text, end := numbers[i], i+1
		for end < len(numbers) && follows(numbers[end-1], numbers[end]) {
			end++
		}
		if end > i+1 {
			text += "-" + numbers[end-1]
		}
		texts, i = append(texts, text), end
	}
	return strings.Join(texts, ",")
}

// follows reports whether digits are the number after last, padded alike: 09 is followed by 10, 9
// too, and neither by 010.
func follows(last, digits string) bool {
	x, err1 := strconv.ParseUint(last, 10, 63)
	y, err2 := strconv.ParseUint(digits, 10, 63)
	if err1 != nil || err2 != nil || y != x+1 {
		return false
	}
	padded := func(s string) bool { return len(s) > 1 && s[0] == '0' }
	if padded(digits) || padded(last) {
		return len(last) == len(digits)
	}
	return true
}
