package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources calls look for each source file of ours that is no test, nor a kit for tests,
// with its package below internal.
func sources(t *testing.T, look func(pkg string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		pkg := filepath.ToSlash(filepath.Dir(path))
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(pkg, "test") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err == nil {
			look(strings.TrimPrefix(pkg, "internal/"), set, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// logWords are what lines of ssh's log begin with, and what sshd says in place of its
// version line: what ssh calls its own there is for ssh/openssh to know.
var logWords = regexp.MustCompile(`^(debug[123]?(:|$)|mux_client_|Authenticated (to|with)|Offending |Authentications that can|Remote protocol version|` +
	`SSH2_MSG_|Server host key: |kex: |kex_parse_kexinit|Transferred: ?$|Bytes per second: ?$|Warning: Permanently|Exceeded MaxStartups|Not allowed at this time)| UNKNOWN port 65535`)

// TestOneReaderOfLogs: no other package knows a line of ssh's log by its words.
func TestOneReaderOfLogs(t *testing.T) {
	found := 0
	sources(t, func(pkg string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			if s, err := strconv.Unquote(text.Value); err == nil && logWords.MatchString(s) {
				if pkg == "ssh/openssh" {
					found++
				} else if !slices.Contains(elsewhere, pkg+" "+s) {
					t.Errorf("%s: %q: ssh/openssh reads logs (ReadEvent, CauseOf)", set.Position(text.Pos()), s)
				}
			}
			return true
		})
	})
	if found < 40 {
		t.Errorf("the words are found %d times in ssh/openssh: the rule no longer fits them", found)
	}
}

// elsewhere are such words that stand for something else.
var elsewhere = []string{
	"fleet/compat debug", // the flag of parallel-ssh
}
