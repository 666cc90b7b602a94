package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/show/document"
)

// parsed calls look for each source file of ours that is no test.
func parsed(t *testing.T, look func(source)) {
	t.Helper()
	files := checked().files
	for path := range files {
		look(files[path])
	}
	err := filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		if ours := filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go"); ours && files[filepath.ToSlash(path)].file == nil {
			t.Errorf("%s: no system has it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sources calls use for each file of the program that is not a kit for tests.
func sources(t *testing.T, look func(source)) {
	t.Helper()
	parsed(t, func(s source) {
		if !strings.HasSuffix(s.pkg, "test") {
			look(s)
		}
	})
}

// at says where something stands.
func (s source) at(n ast.Node) string { return s.set.Position(n.Pos()).String() }

// constants calls look for each value that is written in the file, however it is put together. One
// that a constant of ours is part of is named, and so has its home.
func (s source) constants(look func(where ast.Expr, value constant.Value, of types.Type)) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok || s.Types[e].Value == nil {
			return true
		}
		if call, ok := e.(*ast.CallExpr); ok && s.Types[call.Fun].IsBuiltin() {
			return false // the length of something
		}
		if _, named := s.used(e).(*types.Const); !named && !s.names(e) {
			look(e, s.Types[e].Value, s.Types[e].Type)
		}
		return s.names(e)
	})
}

// names reports whether a constant of ours stands in an expression.
func (s source) names(e ast.Expr) (yes bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			c, _ := s.Uses[id].(*types.Const)
			yes = yes || c != nil && c.Pkg() != nil && strings.HasPrefix(c.Pkg().Path(), "sshpace")
		}
		return true
	})
	return yes
}

// used is what a name stands for, also behind that of its package or value.
func (s source) used(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return s.Uses[e]
	case *ast.SelectorExpr:
		return s.Uses[e.Sel]
	}
	return nil
}

// texts calls look for each text that is written in the file.
func (s source) texts(look func(where ast.Expr, text string)) {
	s.constants(func(where ast.Expr, value constant.Value, _ types.Type) {
		if value.Kind() == constant.String {
			look(where, constant.StringVal(value))
		}
	})
}

// logWords are what lines of ssh's log begin with, and what sshd says in place of its version line:
// what ssh calls its own there is for ssh/openssh to know.
var logWords = regexp.MustCompile(`^(debug[123]?(:|$)|mux_client_|Authenticated (to|with)|Offending |Authentications that can|Remote protocol version|` +
	`SSH2_MSG_|Server host key: |kex: |kex_parse_kexinit|Transferred: ?$|Bytes per second: ?$|Warning: Permanently|Exceeded MaxStartups|Not allowed at this time)| UNKNOWN port 65535`)

// TestOneReaderOfLogs: no other package knows a line of ssh's log by its words.
func TestOneReaderOfLogs(t *testing.T) {
	found := 0
	sources(t, func(s source) {
		s.texts(func(where ast.Expr, text string) {
			switch {
			case !logWords.MatchString(text):
			case s.pkg == "ssh/openssh":
				found++
			case !slices.Contains(elsewhere, s.pkg+" "+text):
				t.Errorf("%s: %q: ssh/openssh reads logs (ReadEvent, CauseOf)", s.at(where), text)
			}
		})
	})
	if found < 40 {
		t.Errorf("the words are found %d times in ssh/openssh: the rule no longer fits them", found)
	}
}

// elsewhere are such words that stand for something else.
var elsewhere = []string{
	"dropin debug", // the flag of parallel-ssh
}

// defaults are values that several packages go by, and the package where each stands: a value of a
// type, or texts that a pattern matches. What else has that value stands in alike.
var defaults = []struct {
	value any
	home  string
}{
	{15 * time.Second, "fleet"},                                       // the connect timeout
	{30 * time.Second, "fleet"},                                       // keepalive
	{2 << 20, "base/unit"},                                            // OpenSSH's window of a channel
	{regexp.MustCompile(`2 MiB`), "nowhere"},                          // likewise
	{255 << 10, "ssh/sftp"},                                           // of a chunk of SFTP
	{22, "ssh/knownhosts"},                                            // the port
	{regexp.MustCompile(`^22$`), "nowhere"},                           // likewise
	{regexp.MustCompile(`^connect timeout$`), "fleet"},                // the cause of an end
	{regexp.MustCompile(`^ConnectTimeout=`), "ssh/openssh"},           // ssh takes whole seconds
	{regexp.MustCompile(`^ServerAlive[A-Za-z]*[= ][0-9]`), "nowhere"}, // keepalive
	{regexp.MustCompile(`^; an agent may be silent`), "ssh/openssh"},  // a hint
	{regexp.MustCompile(`(^|[^0-9.])5 %`), "base/stats"},              // how far from 1 a ratio makes no difference
	{regexp.MustCompile(`find out why the key changed`), "ssh/knownhosts/check"},
	// What to do about causes (openssh.Cause).
	{regexp.MustCompile(`^the server may limit logins|^check the port; this is no|^see MaxSessions and the acc|--connect-timeout allows|` +
		`^the jump host forbids forw|^more keys are offered|^give the server an Ed25519`), "ssh/openssh"},
}

// alike are values that mean something else, by package.
var alike = map[string][]any{
	"fanout/job":          {30 * time.Second},                       // the lease of a launcher
	"fleet/output":        {15 * time.Second},                       // between two lines on retries
	"ssh/openssh":         {30 * time.Second},                       // for reading a configuration
	"ssh/channel":         {2 << 20},                                // our own window
	"ssh/admit":           {30 * time.Second},                       // of retries where nobody was accepted
	"ssh/dial":            {30 * time.Second},                       // how long a failed jump host is remembered
	"ssh/knownhosts/tidy": {30 * time.Second},                       // for all names
	"show/document":       {22, regexp.MustCompile(`1\.05 means `)}, // lines of a screen; what a ratio is
	"show/picture":        {22},                                     // points of a type
}

// has reports whether a constant is such a value.
func has(value any, c constant.Value, of types.Type) bool {
	const duration = "time.Duration"
	switch want := value.(type) {
	case time.Duration:
		return of.String() == duration && constant.Compare(constant.ToInt(c), token.EQL, constant.MakeInt64(int64(want)))
	case int:
		return c.Kind() == constant.Int && of.String() != duration && constant.Compare(c, token.EQL, constant.MakeInt64(int64(want)))
	case *regexp.Regexp:
		return c.Kind() == constant.String && want.MatchString(constant.StringVal(c))
	}
	return false
}

// TestOneHomeOfDefaults: each default stands in one package; the others name it.
func TestOneHomeOfDefaults(t *testing.T) {
	found := make([]int, len(defaults))
	sources(t, func(s source) {
		s.constants(func(where ast.Expr, value constant.Value, of types.Type) {
			means := func(other any) bool { return has(other, value, of) }
			for i, d := range defaults {
				if !means(d.value) || slices.ContainsFunc(alike[s.pkg], means) {
					continue
				}
				if found[i]++; s.pkg != d.home {
					t.Errorf("%s: %s: its home is %s", s.at(where), value, d.home)
				}
			}
		})
	})
	for i, d := range defaults {
		if found[i] == 0 && d.home != "nowhere" {
			t.Errorf("%v is not found in %s: the rule no longer fits it", d.value, d.home)
		}
	}
}

// connectTimeouts are what is given as one, and where it stands: of fleets, and of measurements
// that somebody watches.
var connectTimeouts = []string{"sshpace/internal/fleet.ConnectTimeout", "sshpace/internal/cli.connectTimeout"}

// TestOneHomeOfConnectTimeouts: no other constant is given as the time that a connection may take,
// whatever it is called.
func TestOneHomeOfConnectTimeouts(t *testing.T) {
	found, timeout := 0, regexp.MustCompile(`(?i)^(connect(timeout)?|usual)$`)
	sources(t, func(s source) {
		given := func(to types.Object, e ast.Expr) {
			value := s.Types[e].Value
			if to == nil || !timeout.MatchString(to.Name()) || to.Type().String() != "time.Duration" || value == nil || constant.Sign(value) == 0 {
				return
			}
			found++
			if named := s.used(e); named == nil || !slices.Contains(connectTimeouts, named.Pkg().Path()+"."+named.Name()) {
				t.Errorf("%s: a connect timeout of its own: fleet.ConnectTimeout is its home", s.at(e))
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				given(s.used(n.Key), n.Value)
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					if len(n.Lhs) == len(n.Rhs) {
						given(s.used(to), n.Rhs[i])
					}
				}
			case *ast.CallExpr:
				if f := s.used(n.Fun); f != nil && f.Name() == "Or" && f.Pkg() != nil && f.Pkg().Path() == "cmp" {
					given(s.used(n.Args[0]), n.Args[len(n.Args)-1])
				}
				if f, ok := s.Types[n.Fun].Type.(*types.Signature); ok {
					for i := range min(f.Params().Len(), len(n.Args)) {
						given(f.Params().At(i), n.Args[i])
					}
				}
			}
			return true
		})
	})
	if found == 0 {
		t.Error("no connect timeout is found: the rule no longer fits them")
	}
}

// places are the types that say where a host is: as a user names it, as ssh_config is asked about
// it, and as the native engine connects to it. How it is reached is a route.Route.
var places = map[string]bool{
	"base/host.Host": true, "base/host.Endpoint": true, "ssh/dial.Target": true,
	"ssh/openssh.Destination":  true,                                                                  // with the flags that lead ssh there
	"ssh/conf.connection":      true,                                                                  // what the tokens of ssh_config stand for
	"fanout/hostlist.hostJSON": true, "fanout/preview.planned": true, "show/findings.explained": true, // as JSON
}

// flagsOfSSH are those that lead it somewhere, and where programs of other makers, or other
// programs, have such words for something else.
var (
	flagsOfSSH = regexp.MustCompile(`^-[Jl]$`)
	otherFlags = []string{"programs", "dropin"}
)

// TestOneWriterOfFlags: conf.Flags alone makes arguments of what leads ssh to a host, and nobody
// reads them again, as an openssh.Destination has them as fields: only login.Lane puts another port
// into a command line that is made.
func TestOneWriterOfFlags(t *testing.T) {
	sources(t, func(s source) {
		s.texts(func(where ast.Expr, text string) {
			if flagsOfSSH.MatchString(text) && s.pkg != "ssh/conf" && !slices.Contains(otherFlags, s.pkg) {
				t.Errorf("%s: %q: conf.Flags.Options writes it", s.at(where), text)
			}
		})
	})
}

// partsOfPlaces are what a place has, in fields of a plain type.
var partsOfPlaces = []*regexp.Regexp{regexp.MustCompile(`(?i)(^name|host|host_?name|address)$`), regexp.MustCompile(`(?i)(user|login|account)$`), regexp.MustCompile(`(?i)port$`)}

// TestOneDescriptionOfPlaces: no other type has a host, a user and a port, of its own or of what it
// embeds.
func TestOneDescriptionOfPlaces(t *testing.T) {
	found := 0
	sources(t, func(s source) {
		named := map[ast.Expr]string{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				named[n.Type] = s.pkg + "." + n.Name.Name
			case *ast.StructType:
				names := plainFields(s.Types[n].Type.Underlying().(*types.Struct))
				if !slices.ContainsFunc(partsOfPlaces, func(part *regexp.Regexp) bool { return !slices.ContainsFunc(names, part.MatchString) }) {
					if found++; !places[named[n]] {
						t.Errorf("%s: %s: host.Host, dial.Target and route.Route say where a host is", s.at(n), named[n])
					}
				}
			}
			return true
		})
	})
	if found != len(places) {
		t.Errorf("%d of %d places are found: the rule no longer fits them", found, len(places))
	}
}

// plainFields are the fields that hold text or a number, also those of embedded structs that are
// not places themselves.
func plainFields(of *types.Struct) (names []string) {
	for f := range of.Fields() {
		switch under := f.Type().Underlying().(type) {
		case *types.Basic:
			names = append(names, f.Name())
		case *types.Struct:
			if f.Embedded() && !places[strings.TrimPrefix(f.Type().String(), "sshpace/internal/")] {
				names = append(names, plainFields(under)...)
			}
		}
	}
	return names
}

// loops are the packages that carry a measurement out: in rounds, and by a plan that learns.
var loops = []string{"base/sched", "bench/lab"}

// TestOneLoop: nothing else in bench or campaign puts turns into a random order, or goes on until a
// budget or rounds are over: it is a driver of sched.Loop, or a plan that lab carries out.
func TestOneLoop(t *testing.T) {
	found := 0
	sources(t, func(s source) {
		if !slices.Contains(loops, s.pkg) && !strings.HasPrefix(s.pkg, "bench/") && s.pkg != "campaign" {
			return
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			measures := false
			switch n := n.(type) {
			case *ast.CallExpr:
				f := s.used(n.Fun)
				measures = f != nil && f.Pkg() != nil && strings.HasPrefix(f.Pkg().Path(), "math/rand") && (f.Name() == "Shuffle" || f.Name() == "Perm")
			case *ast.ForStmt:
				measures = n.Cond != nil && mentions(n.Cond, "Budget", "BudgetNS", "Rounds", "Drain", "drain")
			case *ast.RangeStmt:
				measures = mentions(n.X, "Rounds")
			}
			if measures && slices.Contains(loops, s.pkg) {
				found++
			} else if measures {
				t.Errorf("%s: a loop that measures: sched.Loop, or lab.Run, is to do it", s.at(n))
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
	sources(t, func(s source) {
		s.texts(func(where ast.Expr, text string) {
			if rates.MatchString(text) {
				t.Errorf("%s: %q: unit.Throughput writes rates", s.at(where), text)
			}
		})
	})
}

// formatNames are those that stand for nothing else.
var formatNames = regexp.MustCompile(`\b(svg|png|pdf|xlsx)\b`)

// TestOneTableOfFormats: no other package knows a format of reports by its name.
func TestOneTableOfFormats(t *testing.T) {
	found := 0
	sources(t, func(s source) {
		s.texts(func(where ast.Expr, text string) {
			switch {
			case !formatNames.MatchString(text):
			case s.pkg == "show/format":
				found++
			default:
				t.Errorf("%s: %q: format.All has the formats", s.at(where), text)
			}
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
	"campaign.Reopen":          "cli",            // a measurement is opened
	"record/store.CheckResult": "cli",            // likewise
	"sys/proc.OpenLog":         "ssh/openssh",    // an ssh with a debug log is started (Running)
	"sys/proc.OpenPipe":        "bench/login",    // and one whose lines are stamped (Watch)
	"ssh/openssh.LastWords":    "bench/login",    // of a login; of copies it is Reason
	"ssh/openssh.Reason":       "bench/transfer", // likewise
}

// TestOneStarterOfSSH: an ssh that goes on while we do is started by openssh alone (Start,
// Command), so that its log has a limit and its end a reason.
func TestOneStarterOfSSH(t *testing.T) {
	found := 0
	sources(t, func(s source) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !slices.ContainsFunc(call.Args, s.isPathOfSSH) {
				return true
			}
			if f := s.used(call.Fun); f != nil && f.Pkg() != nil && f.Pkg().Path() == "os/exec" {
				if s.pkg == "ssh/openssh" {
					found++
				} else if s.pkg != "bench/doctor" || f.Name() != "CommandContext" { // a question, over a master that is there
					t.Errorf("%s: openssh.Start starts an ssh", s.at(n))
				}
			}
			return true
		})
	})
	if found == 0 {
		t.Error("openssh itself starts none: the rule no longer fits it")
	}
}

// isPathOfSSH reports whether a value is where an ssh is: the Path of an openssh.Program.
func (s source) isPathOfSSH(e ast.Expr) bool {
	path, ok := e.(*ast.SelectorExpr)
	return ok && path.Sel.Name == "Path" && strings.HasSuffix(s.Types[path.X].Type.String(), "/openssh.Program")
}

// TestOneCaller: each of them is used there, once.
func TestOneCaller(t *testing.T) {
	found := map[string]int{}
	sources(t, func(s source) {
		for id, of := range s.Uses {
			f, ok := of.(*types.Func)
			if !ok || f.Pkg() == nil || s.set.Position(id.Pos()).Filename != s.set.Position(s.file.Pos()).Filename {
				continue
			}
			what := strings.TrimPrefix(f.Pkg().Path(), "sshpace/internal/") + "." + f.Name()
			if home, one := callers[what]; one && s.pkg != strings.TrimPrefix(f.Pkg().Path(), "sshpace/internal/") {
				if found[what]++; s.pkg != home || found[what] > 1 {
					t.Errorf("%s: %s is called in %s, once", s.at(id), what, home)
				}
			}
		}
	})
	if len(found) != len(callers) {
		t.Errorf("of %d calls %d are found: %v", len(callers), len(found), found)
	}
}
