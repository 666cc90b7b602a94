package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sshpace/internal/show/document"
)

// parsed calls look for each source file of ours that is no test, with its package below
// internal.
func parsed(t *testing.T, look func(pkg string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err == nil {
			look(strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "internal/"), set, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sources does so for those that are no kit for tests, either.
func sources(t *testing.T, look func(pkg string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	parsed(t, func(pkg string, set *token.FileSet, file *ast.File) {
		if !strings.HasSuffix(pkg, "test") {
			look(pkg, set, file)
		}
	})
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

// defaults are values that several packages go by: how each is written, and the package
// where it stands. What else is written so stands in alike.
var defaults = []struct{ written, home string }{
	{`^15 \* time\.Second$`, "fleet"},              // the connect timeout
	{`^255 << 10$`, "ssh/sftp"},                    // of a chunk of SFTP
	{`^"?22"?$`, "ssh/knownhosts"},                 // the port
	{`^"connect timeout"$`, "fleet"},               // the cause of an end
	{`^"ConnectTimeout=`, "ssh/openssh"},           // ssh takes whole seconds
	{`^30 \* time\.Second$`, "fleet"},              // keepalive
	{`^"ServerAlive[A-Za-z]*[= ][0-9]`, "nowhere"}, // likewise
	{`^"; an agent may be silent`, "ssh/openssh"},  // a hint
	{"^[\"`].*(^|[^0-9.])5 %", "base/stats"},       // how far from 1 a ratio makes no difference

	// What to do about causes (openssh.Cause).
	{`^"the server may limit logins|^"check the port; this is no|^"see MaxSessions and the acc|--connect-timeout allows|` +
		`^"the jump host forbids forw|^"more keys are offered|^"give the server an Ed25519`, "ssh/openssh"},
	{`"find out why the key changed`, "ssh/knownhosts/check"},
}

// alike are values that mean something else, by package.
var alike = map[string]string{
	"fleet/output":        `15 \* time\.Second`,      // between two lines on retries
	"ssh/openssh":         `30 \* time\.Second`,      // for reading a configuration
	"ssh/dial":            `30 \* time\.Second`,      // how long a failed jump host is remembered
	"ssh/knownhosts/tidy": `30 \* time\.Second`,      // for all names
	"show/document":       `22|(?s).*1\.05 means .*`, // lines of a screen; what a ratio is
	"show/picture":        `22`,                      // points of a type
}

// TestOneHomeOfDefaults: each default stands in one package; the others name it.
func TestOneHomeOfDefaults(t *testing.T) {
	written := make([]*regexp.Regexp, len(defaults))
	for i, d := range defaults {
		written[i] = regexp.MustCompile(d.written)
	}
	sources(t, func(pkg string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			text := ""
			switch n := n.(type) {
			case *ast.BinaryExpr, *ast.BasicLit:
				var b strings.Builder
				_ = printer.Fprint(&b, set, n)
				text = b.String()
			}
			for i, d := range defaults {
				if text != "" && written[i].MatchString(text) && pkg != d.home && !regexp.MustCompile("^("+alike[pkg]+")$").MatchString(text) {
					t.Errorf("%s: %s: its home is %s", set.Position(n.Pos()), text, d.home)
				}
			}
			return true
		})
	})
}

// places are the types that say where a host is: as a user names it, as ssh_config is asked
// about it, and as the native engine connects to it. How it is reached is a route.Route.
var places = map[string]bool{
	"base/host.Host": true, "base/host.Endpoint": true, "ssh/dial.Target": true,
	"ssh/conf.connection":     true,                                  // what the tokens of ssh_config stand for
	"fleet/hostlist.hostJSON": true, "show/findings.explained": true, // as JSON
}

// flagsOfSSH are those that lead it somewhere, and where programs of other makers, or other
// programs, have such words for something else.
var (
	flagsOfSSH = regexp.MustCompile(`^-[Jl]$`)
	otherFlags = []string{"bench/programs", "fleet/compat"}
)

// TestOneWriterOfFlags: conf.Flags alone makes arguments of what leads ssh to a host, and
// nobody reads them again, as an openssh.Destination has them as fields: only login.Lane puts
// another port into a command line that is made.
func TestOneWriterOfFlags(t *testing.T) {
	sources(t, func(pkg string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			if s, err := strconv.Unquote(text.Value); err == nil && flagsOfSSH.MatchString(s) && pkg != "ssh/conf" && !slices.Contains(otherFlags, pkg) {
				t.Errorf("%s: %q: conf.Flags.Options writes it", set.Position(text.Pos()), s)
			}
			return true
		})
	})
}

// TestOneDescriptionOfPlaces: no other type has a host, a user and a port.
func TestOneDescriptionOfPlaces(t *testing.T) {
	parts := []*regexp.Regexp{regexp.MustCompile(`(?i)^(host|host_?name|name|address)$`), regexp.MustCompile(`(?i)^user$`), regexp.MustCompile(`(?i)^port$`)}
	sources(t, func(pkg string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			body, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			var names []string
			for _, field := range body.Fields.List {
				for _, name := range field.Names {
					names = append(names, name.Name)
				}
			}
			for _, part := range parts {
				if !slices.ContainsFunc(names, part.MatchString) {
					return true
				}
			}
			if !places[pkg+"."+spec.Name.Name] {
				t.Errorf("%s: %s: host.Host, dial.Target and route.Route say where a host is", set.Position(n.Pos()), spec.Name.Name)
			}
			return true
		})
	})
}

// loops are the packages that carry a measurement out: in rounds, and by a plan that learns.
var loops = []string{"base/sched", "bench/lab"}

// TestOneLoop: nothing else in bench puts turns into a random order, or goes on until a budget or
// rounds are over: it is a driver of sched.Loop, or a plan that lab carries out.
func TestOneLoop(t *testing.T) {
	found := 0
	sources(t, func(pkg string, set *token.FileSet, file *ast.File) {
		if !slices.Contains(loops, pkg) && !strings.HasPrefix(pkg, "bench/") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			measures := false
			switch n := n.(type) {
			case *ast.CallExpr:
				of, ok := n.Fun.(*ast.SelectorExpr)
				measures = ok && (of.Sel.Name == "Shuffle" || of.Sel.Name == "Perm" && len(n.Args) == 1)
			case *ast.ForStmt:
				measures = n.Cond != nil && mentions(n.Cond, "Budget", "BudgetNS", "Rounds", "Drain", "drain")
			case *ast.RangeStmt:
				measures = mentions(n.X, "Rounds")
			}
			if measures && slices.Contains(loops, pkg) {
				found++
			} else if measures {
				t.Errorf("%s: a loop that measures: sched.Loop, or lab.Run, is to do it", set.Position(n.Pos()))
			}
			return true
		})
	})
	if found < 3 {
		t.Errorf("the loops themselves are found %d times: the rule no longer fits them", found)
	}
}

// mentions reports whether one of the names stands in n.
func mentions(n ast.Node, names ...string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			found = found || slices.Contains(names, name.Name)
		}
		return true
	})
	return found
}

// rates are how speeds are written by hand.
var rates = regexp.MustCompile(`%[.0-9]*[sdfg] [kMG]i?B/s`)

// TestOneWayToWriteRates: unit.Throughput writes them, with three digits and its unit.
func TestOneWayToWriteRates(t *testing.T) {
	sources(t, func(pkg string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && rates.MatchString(text.Value) {
				t.Errorf("%s: %s: unit.Throughput writes rates", set.Position(n.Pos()), text.Value)
			}
			return true
		})
	})
}

// formatNames are those that stand for nothing else.
var formatNames = regexp.MustCompile(`\b(svg|png|pdf|xlsx)\b`)

// TestOneTableOfFormats: no other package knows a format of reports by its name.
func TestOneTableOfFormats(t *testing.T) {
	found := 0
	sources(t, func(pkg string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING || !formatNames.MatchString(text.Value) {
				return true
			}
			if pkg == "show/format" {
				found++
			} else {
				t.Errorf("%s: %s: format.All has the formats", set.Position(n.Pos()), text.Value)
			}
			return true
		})
	})
	if found < 4 {
		t.Errorf("formats are found %d times in show/format: the rule no longer fits them", found)
	}
}

// TestOneHomeOfColors: no format has colors of its own for what another colors, too.
func TestOneHomeOfColors(t *testing.T) {
	var colors []document.Color
	for _, tint := range document.Series {
		colors = append(colors, tint.Light, tint.Dark)
	}
	for _, scale := range []document.Scale{document.Amounts, document.Ratios} {
		colors = append(colors, scale[:]...)
	}
	err := filepath.WalkDir(filepath.Join("internal", "show"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == "echarts":
			return filepath.SkipDir
		case d.IsDir() || d.Name() == "palette.go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, c := range colors {
			if strings.Contains(strings.ToUpper(string(text)), c.Hex()) || strings.Contains(string(text), fmt.Sprintf("%d, %d, %d", c[0], c[1], c[2])) {
				t.Errorf("%s: %s: document.Series, Amounts and Ratios have the colors", path, c.Hex())
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// callers are what is done in one place alone, and the package where that is.
var callers = map[string]string{
	"campaign.Reopen":   "cli",            // a measurement is opened
	"store.CheckResult": "cli",            // likewise
	"proc.OpenLog":      "ssh/openssh",    // an ssh with a debug log is started (Running)
	"proc.OpenPipe":     "bench/login",    // and one whose lines are stamped (Watch)
	"openssh.LastWords": "bench/login",    // of a login; of copies it is Reason
	"openssh.Reason":    "bench/transfer", // likewise
}

// TestOneStarterOfSSH: an ssh that goes on while we do is started by openssh alone (Start, Command), so that its log
// has a limit and its end a reason.
func TestOneStarterOfSSH(t *testing.T) {
	sources(t, func(pkg string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || pkg == "ssh/openssh" || len(call.Args) == 0 {
				return true
			}
			at, _ := call.Fun.(*ast.SelectorExpr)
			path, _ := call.Args[0].(*ast.SelectorExpr)
			if at != nil && at.Sel.Name == "Command" && mentions(at.X, "exec") && path != nil && path.Sel.Name == "Path" && mentions(path.X, "SSH") {
				t.Errorf("%s: openssh.Start starts an ssh", set.Position(n.Pos()))
			}
			return true
		})
	})
}

// TestOneCaller: each of them is called there, once.
func TestOneCaller(t *testing.T) {
	found := map[string]int{}
	sources(t, func(pkg string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if at, ok := call.Fun.(*ast.SelectorExpr); ok {
				of, _ := at.X.(*ast.Ident)
				if of == nil {
					return true
				}
				what := of.Name + "." + at.Sel.Name
				if home, one := callers[what]; one {
					if found[what]++; pkg != home || found[what] > 1 {
						t.Errorf("%s: %s is called in %s, once", set.Position(call.Pos()), what, home)
					}
				}
			}
			return true
		})
	})
	if len(found) != len(callers) {
		t.Errorf("of %d calls %d are found: %v", len(callers), len(found), found)
	}
}
