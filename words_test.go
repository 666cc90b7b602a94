package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// banned are phrases that are wrong wherever they stand in a text for users, mostly translated
// ones, with what is said instead.
var banned = map[string]string{
	`belongs? into`:                          "pass ... through",
	`machines? bears?\b`:                     "can handle",
	`behind the name of`:                     "prefixed with",
	`did not end well|that ended well`:       "failed, succeeded",
	`(left|leave) out and said`:              "skipped and reported",
	`\band said\b`:                           "and reported",
	`told apart|told from noise|in doubt by`: "no significant difference, may be off by",
	`takes? (a|the) login to .* apart`:       "breaks down the login",
	`finds? no room`:                         "does not fit",
	`the last, on all hosts`:                 "no other host is tried",
	`stalls that nobody needs`:               "avoidable stalls",
	`is no place\b`:                          "is not a remote path",
	`ranks no\b`:                             "contains no ranking",
	`not a single way`:                       "nothing could be",
	`reasons stand`:                          "see the report for the reasons",
	`do you believe`:                         "can you trust",
	`(does not|do not) believe`:              "does not trust",
	`none to be had`:                         "no gain",
	`alike are in doubt`:                     "may be off by a common factor",
	`what of it is needless`:                 "to see what can be saved",
	`answer that question`:                   "name the flags",
	`whatever that is`:                       "say what",
	`told whatever`:                          "always shown",
	`can this machine do at most\?`:          "what are this machine's limits?",
	`and it may\b`:                           "and it has permission",
	`(in|at) (its|their) own way`:            "differently",
	`go on with( it)?:|gone on with`:         "continue with",
	`cannot be told\b`:                       "is unknown",
	`look again:`:                            "show it again:",
	`\bstands? in for\b`:                     "is used instead",
	`\bnot to be had\b`:                      "no longer available",
	`(no|the) way leads`:                     "there is no route",
	`does not come (up|about)`:               "cannot be started",
	`before its time`:                        "too early",
	`up and well`:                            "is up",
	`says nothing (of|in)\b`:                 "says nothing about, has no effect in",
	`nothing is known of`:                    "is unknown",
	`hardly longer`:                          "too small to measure",
	`round that tells`:                       "usable round",
	`\bso many complete\b`:                   "number of complete",
	`longer than nothing`:                    "positive",
	`take it back`:                           "undo it",
	`go on measuring`:                        "measure longer",
	`the accepted (command|login|service)`:   "the start of the command, the login",
	`(are|is|and) left out$`:                 "skipped",
	`read back, for`:                         "verified by reading them back: the host ...",
	`is called %|is called "`:                "unknown",
	`compared with nothing`:                  "alone cannot be compared",
	`after the clock had`:                    "outside the measured time",
	`any more that it was`:                   "was replaced",
	`is no (regular|absolute|pattern|openssl|Ed25519|algorithm|key)\b`: "is not a",
	`\b(normalis|recognis|behaviour|colour)`:                           "American spelling",
	`\bfolders?\b`:                                                     "directory",
	`\bnowise|insofar|thereof|wherefore\b`:                             "plainer words",
}

// TestWords: no banned phrase is in what users read first: README.md, the guides and
// what goes with them, the help, and what commands print.
func TestWords(t *testing.T) {
	texts := map[string]string{}
	pages, err := filepath.Glob("doc/guide/*.md")
	if err != nil || len(pages) < 7 {
		t.Fatalf("%v, %d guides", err, len(pages))
	}
	helps, err := filepath.Glob("internal/cli/pages/*.txt")
	if err != nil || len(helps) < 20 {
		t.Fatalf("%v, %d pages of help", err, len(helps))
	}
	for _, page := range slices.Concat(pages, helps, []string{"README.md", "SECURITY.md", "doc/drop-in.md"}) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(text)
	}
	for _, sources := range []string{"internal/*/*.go", "internal/*/*/*.go", "internal/*/*/*/*.go"} {
		files, err := filepath.Glob(sources)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", sources, err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				texts[file] = literals(t, file)
			}
		}
	}
	for where, text := range texts {
		texts[where] = strings.Join(strings.Fields(text), " ")
	}
	for phrase, instead := range banned {
		re := regexp.MustCompile(`(?i)` + phrase)
		for where, text := range texts {
			if found := re.FindString(text); found != "" {
				t.Errorf("%s: %q: rather %q", where, found, instead)
			}
		}
	}
}

// literals are the texts in a program file.
func literals(t *testing.T, path string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				all.WriteString(s + "\n")
			}
		}
		return true
	})
	return all.String()
}

// TestSizeOfPages: a page that is longer is two pages.
func TestSizeOfPages(t *testing.T) {
	pages, _ := filepath.Glob("doc/guide/*.md")
	for _, page := range append(pages, "README.md") {
		most := 150
		if page == "README.md" {
			most = 200
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > most {
			t.Errorf("%s has %d lines, at most %d", page, n, most)
		}
	}
}

// inComments are phrases that are wrong in comments, with what is written instead: what was
// translated word by word, and the other one of two spellings.
var inComments = map[string]string{
	`\btells? whether\b`:                         "reports whether",
	`\b(would|could|might|will|may|must) else\b`: "would otherwise",
	`[,;] else\b`:                                "otherwise",
	`\b(in|of) so many\b`:                        "n",
	`\b(goes|go|gone|going|went) on with\b`:      "continues with",
	`\bthat which\b`:                             "the one that",
	`\bis who\b`:                                 "say what it is",
	`^\w+ (does so|(is|returns|reads|lists|runs|gathers|sets) (it|those|that) of)\b`:                       "name the thing",
	`\b(is|are|was|were) no part of\b`:                                                                     "is not part of",
	`\b(is|are) no (name|file|director|command|source|single|process|list|bound|protection|retry|package)`: "is not a",
	`\bdoes not come (up|about)\b`:                                                                         "fails, cannot be started",
	`\bmachines? bears?\b`:                                                                                 "can handle",
	`\bdid not end well\b`:                                                                                 "failed",
	`\bcannot be told\b`:                                                                                   "is unknown",
	`\b(colour|folder|behaviour|neighbour|favour)`:                                                         "American spelling, directory",
	`\b(recogn|normal|summar|organ|optim|minim|maxim|initial|serial)is(e|ed|es|ing)\b`:                     "American spelling",
}

// commentWidth is the greatest width of a line of nothing but a comment, with tabs of 4.
const commentWidth = 100

// TestComments: no such phrase is in a comment of the program and its tests, and no line of a
// comment is wider than others.
func TestComments(t *testing.T) {
	phrases := map[*regexp.Regexp]string{}
	for phrase, instead := range inComments {
		phrases[regexp.MustCompile(`(?i)`+phrase)] = instead
	}
	read := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && path == "packaging" {
			return fs.SkipDir // modules of their own
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		read++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			wide := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if words := strings.Fields(line); len(words) > 2 && words[0] == "//" && wide > commentWidth {
				t.Errorf("%s:%d: the comment is %d columns wide, at most %d", path, i+1, wide, commentWidth)
			}
		}
		for _, comment := range comments(t, path, text) {
			for re, instead := range phrases {
				if found := re.FindString(comment); found != "" {
					t.Errorf("%s: %q in %.60q: rather %q", path, found, comment, instead)
				}
			}
		}
		return nil
	})
	if err != nil || read < 500 {
		t.Fatalf("%v, %d files", err, read)
	}
}

// comments are the comments in a program file, each on one line. That of a function begins with its
// name, if with a name.
func comments(t *testing.T, path string, text []byte) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Doc != nil && !strings.HasSuffix(path, "_test.go") {
			if first, _, _ := strings.Cut(f.Doc.Text(), " "); token.IsIdentifier(first) && !token.IsExported(first) && first != f.Name.Name {
				t.Errorf("%s: the comment of %s is about %s", path, f.Name.Name, first)
			}
		}
	}
	for _, group := range file.Comments {
		all = append(all, strings.Join(strings.Fields(group.Text()), " "))
	}
	return all
}
