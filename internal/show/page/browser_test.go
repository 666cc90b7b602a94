package page_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/waittest"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/show/page"
)

var screenshots = flag.String("screenshots", "", "directory to write screenshots to, to look at them")

// tab is an open page in a real browser, and what it did that it should not.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string
	console  []string
}

// TestInABrowser starts headless Chromium once, which takes longer than a page, and has a tab for
// each page.
func TestInABrowser(t *testing.T) {
	browser, stop := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Headless, chromedp.ExecPath("chromium"), chromedp.UserDataDir(t.TempDir())))
	t.Cleanup(stop)
	if err := chromedp.Do(browser); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, context.Context){
		"ranking": ranking, "filter, sort and copy": filterSortAndCopy, "print": printed, "comparison": comparison, "hostile text": hostileTextIsInert,
		"programs": programs,
	} {
		t.Run(name, func(t *testing.T) { test(t, browser) })
	}
}

// show opens a document in a tab and waits until it is drawn.
func show(t *testing.T, browser context.Context, d *document.Document) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, render(t, d), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(browser, 2*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.console = append(b.console, m.Text)
			b.mu.Unlock()
		}
	}()
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate((&url.URL{Scheme: "file", Path: file}).String()))
	b.drawn()
	return b
}

func render(t *testing.T, d *document.Document) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := page.Write(&out, d); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (b *tab) hear(event any) {
	if e, ok := event.(*network.EventRequestWillBeSent); ok {
		b.mu.Lock()
		b.requests = append(b.requests, e.Request.URL)
		b.mu.Unlock()
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// drawn waits until the charts are those of the last change.
func (b *tab) drawn() {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`delete document.documentElement.dataset.drawn`))
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById('policy').dispatchEvent(new Event('change'))`))
	b.do(chromedp.Poll[chromedp.Void](`document.documentElement.dataset.drawn`))
}

// set gives a control a value, as a person would.
func (b *tab) set(id, value string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`{ const e = document.getElementById(` + quote(id) + `); e.value = ` + quote(value) + `; for (const n of ['input', 'change']) e.dispatchEvent(new Event(n, { bubbles: true })) }`))
}

func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// quiet checks that the page asked for nothing and complained of nothing.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.requests {
		if !strings.HasPrefix(u, "file:///") || !strings.HasSuffix(u, "/report.html") {
			b.t.Errorf("the page asked for %q", u)
		}
	}
	if len(b.requests) != 1 {
		b.t.Errorf("%d requests, want the page alone", len(b.requests))
	}
	if len(b.console) > 0 {
		b.t.Errorf("the console says %q", b.console)
	}
}

// picture writes a screenshot of the whole page where asked for.
func (b *tab) picture(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func ranking(t *testing.T, browser context.Context) {
	r, f := benchtest.Ranking(t, 1, record.Upload, record.Download)
	d := document.OfRanking(r, f, document.Options{})
	b := show(t, browser, d)
	if got, want := evaluate[int](b, `document.querySelectorAll('svg').length`), len(d.Charts); got != want {
		t.Errorf("%d charts drawn, want %d", got, want)
	}
	if got, want := evaluate[string](b, `document.querySelector('[data-table=ranking] tbody tr').innerText`), r.Bulk[0].Suite.Cipher; !strings.Contains(got, want) {
		t.Errorf("the first row is %q, want %s in it", got, want)
	}
	for _, part := range []string{"post-quantum", "Simulated CPU", "noise floor", "95 % interval", "AEAD"} {
		if !evaluate[bool](b, `document.body.textContent.includes(`+quote(part)+`)`) {
			t.Errorf("the page does not say %q", part)
		}
	}
	b.picture("desktop-light")
	b.do(chromedp.Click("#theme"))
	b.drawn()
	if got := evaluate[string](b, `getComputedStyle(document.body).backgroundColor`); got == "rgb(255, 255, 255)" {
		t.Errorf("the dark page is white")
	}
	b.picture("desktop-dark")
	b.do(chromedp.EmulateViewport(390, 844))
	b.drawn()
	if wide := evaluate[int](b, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("on a phone of 390 points the page is %d wide", wide)
	}
	const folded = `document.querySelector('h1').textContent = 'web[1-400],'.repeat(9); const theme = document.querySelector('#theme'); theme.scrollWidth > theme.clientWidth || theme.clientHeight > 50`
	if evaluate[bool](b, folded) {
		t.Error("on a phone, a long title squeezes the button of the theme")
	}
	if touching := evaluate[[]string](b, touchingFigures); len(touching) > 0 {
		t.Errorf("on a phone, figures of an axis run into each other: %q", touching)
	}
	b.picture("phone-dark")
	b.quiet()
}

// programs on a phone: nothing of a chart is cut off, and the page says how far to trust it.
func programs(t *testing.T, browser context.Context) {
	f := &record.File{Campaign: record.Campaign{Started: time.Unix(1e9, 0)}}
	cpu := 30 * time.Millisecond
	for i, client := range []string{"openssh 9.2p1 /usr/bin/ssh", "openssh 9.2p1 /opt/ssh/bin/ssh", "curl, libssh2 1.10.0"} {
		f.Subjects = append(f.Subjects, record.Subject{ID: i + 1, Method: &record.Method{Mode: record.ModePipe, Direction: record.Upload, Client: client, Server: "openssh 9.2p1", Suite: alg.NewSuite("aes128-gcm@openssh.com", "", ""), SizeBytes: 64 << 20}})
		for range 6 {
			f.Readings = append(f.Readings, record.Reading{Subject: i + 1, Kind: record.ShortRun, WallNS: 100 * time.Millisecond, ClientCPUNS: &cpu},
				record.Reading{Subject: i + 1, Kind: record.LongRun, WallNS: 500 * time.Millisecond, ClientCPUNS: &cpu})
		}
	}
	d := document.OfMethods(compare.MethodResults(f), f, false, document.Standard)
	logins := document.Chart{Name: "wall", Shape: document.Bars, Unit: "ms", Series: []string{"total"}, Title: "Time of a login"}
	for _, label := range []string{"key exchange: diffie-hellman-group-exchange-sha1", "key exchange: diffie-hellman-group-exchange-sha256", "where the key is: agent, 8 keys, the last one is right"} {
		logins.Items = append(logins.Items, document.Item{Label: label, Points: []document.Point{{Value: 40, Lo: 30, Hi: 95, Known: true}}})
	}
	d.Charts = append(d.Charts, logins)
	b := show(t, browser, d)
	b.do(chromedp.EmulateViewport(400, 844))
	b.drawn()
	if wide := evaluate[int](b, `document.documentElement.scrollWidth`); wide > 400 {
		t.Errorf("on a phone of 400 points the page is %d wide", wide)
	}
	if cut := evaluate[[]string](b, cutOff); len(cut) > 0 {
		t.Errorf("on a phone, parts of charts are cut off: %q", cut)
	}
	if trust := evaluate[string](b, `document.querySelector('#quality dl').textContent`); !strings.Contains(trust, "rounds") || !strings.Contains(trust, "known within") {
		t.Errorf("how far to trust this: %q", trust)
	}
	b.picture("programs-phone")
	b.quiet()
}

// cutOff finds what of a chart lies beyond its box or the screen, and labels that are not whole.
const cutOff = `[...document.querySelectorAll('svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')];
  const out = [...texts, ...svg.querySelectorAll('path')].filter(t => { const own = t.getBoundingClientRect(); return own.width > 0 && (own.left < box.left - 1 || own.right > Math.min(box.right, innerWidth) + 1); });
  return [...out.map(t => t.textContent || t.outerHTML.slice(0, 80)), ...texts.filter(t => t.textContent.endsWith('…')).map(t => t.textContent)];
})`

// touchingFigures finds neighbors in a chart with less than 4 points of space between them.
const touchingFigures = `[...document.querySelectorAll('svg')].flatMap(svg => {
  const figures = [...svg.querySelectorAll('text')].filter(t => /^[\d,.]+$/.test(t.textContent)).map(t => ({ text: t.textContent, box: t.getBoundingClientRect() }));
  return figures.flatMap(a => figures.filter(b => a !== b && Math.abs(a.box.top - b.box.top) < 2 && a.box.left <= b.box.left && b.box.left - a.box.right < 4).map(b => a.text + ' ' + b.text));
})`

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `\'`) + "'" }

func filterSortAndCopy(t *testing.T, browser context.Context) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	b := show(t, browser, document.OfRanking(r, f, document.Options{}))
	if opens := evaluate[string](b, `document.getElementById('policy').value`); opens != "modern" {
		t.Errorf("the page opens with the policy %q, and the answer is that of modern", opens)
	}
	b.set("policy", "")
	visible := func() []string {
		return evaluate[[]string](b, `[...document.querySelectorAll('[data-table=ranking] tbody tr')].filter(r => !r.hidden).map(r => r.dataset.cipher)`)
	}
	if got := len(visible()); got != len(r.Bulk) {
		t.Fatalf("%d rows, want %d", got, len(r.Bulk))
	}
	b.do(chromedp.SendKeys("#search", "CTR umac"))
	b.drawn()
	for _, cipher := range visible() {
		if !strings.Contains(cipher, "ctr") {
			t.Errorf("the filter for ctr shows %s", cipher)
		}
	}
	if got := len(visible()); got != 12 { // aes128, 192, 256 with four UMACs
		t.Errorf("%d rows for CTR with UMAC, want 12", got)
	}
	b.set("search", "")
	var config string
	for _, policy := range []string{"", "modern"} {
		b.set("policy", policy)
		b.drawn()
		config = evaluate[string](b, `document.getElementById('config').textContent`)
		for _, bad := range []string{"cbc", "md5", "hmac-sha1,", "group1-"} {
			if strings.Contains(config, bad) {
				t.Errorf("policy %q gives %s:\n%s", policy, bad, config)
			}
		}
		// As sshpace advise has it: the faster curve25519 comes after what is post-quantum.
		if !strings.Contains(config, "\nKexAlgorithms ^sntrup761x25519-sha512,sntrup761x25519-sha512@openssh.com,") || !strings.Contains(config, ",curve25519-sha256") {
			t.Errorf("policy %q does not put post-quantum key exchanges first:\n%s", policy, config)
		}
	}
	var best string // the fastest strong cipher leads
	for _, c := range r.Bulk {
		if c.Status == "strong" {
			best = c.Suite.Cipher
			break
		}
	}
	if !strings.HasPrefix(config, "Ciphers ^"+best) || !strings.Contains(config, "\nMACs ") || !strings.Contains(config, "\nKexAlgorithms ") {
		t.Errorf("configuration lines are\n%s", config)
	}
	if labels := evaluate[string](b, `document.getElementById('chart-0').textContent`); strings.Contains(labels, "cbc") {
		t.Errorf("the chart still shows what the policy forbids: %s", labels)
	}
	note := func() string {
		return evaluate[string](b, `document.getElementById('config-weak').textContent`)
	}
	b.set("policy", "openssh-default-6.6") // lists arcfour256 and hmac-md5
	b.drawn()
	if config := evaluate[string](b, `document.getElementById('config').textContent`); !strings.Contains(config, "hmac-md5") || !strings.Contains(note(), "policy openssh-default-6.6 lists them") {
		t.Errorf("a policy that lists weak names gives, with the note %q:\n%s", note(), config)
	}
	b.set("policy", "")
	b.drawn()
	if !regexp.MustCompile(`^\d+ weak, broken or unknown names are not copied`).MatchString(note()) {
		t.Errorf("beside the lines stands %q", note())
	}
	rates := func() []float64 {
		return evaluate[[]float64](b, `[...document.querySelectorAll('[data-table=ranking] tbody tr')].map(r => Number(r.cells[4].dataset.v))`)
	}
	b.do(chromedp.Click("[data-table=ranking] thead th:nth-child(5) button"))
	if got := rates(); !slices.IsSorted(got) {
		t.Errorf("not sorted by throughput: %v", got)
	}
	b.do(chromedp.Click("[data-table=ranking] thead th:nth-child(5) button"))
	got := rates()
	if slices.Reverse(got); !slices.IsSorted(got) {
		t.Errorf("not sorted the other way: %v", got)
	}
	if sorted := evaluate[string](b, `document.querySelector('[data-table=ranking] th:nth-child(5)').getAttribute('aria-sort')`); sorted != "descending" {
		t.Errorf("aria-sort is %q", sorted)
	}
	b.do(chromedp.Focus("[data-table=ranking] thead th:nth-child(1) button"), chromedp.KeyEvent("\r")) // by keyboard
	if first := evaluate[string](b, `document.querySelector('[data-table=ranking] tbody tr').cells[0].textContent`); first != "1" {
		t.Errorf("sorted by rank, the first row has rank %s", first)
	}
	b.do(chromedp.Click("#copy"))
	b.do(chromedp.Poll[chromedp.Void](`document.getElementById('copied').textContent`))
	b.quiet()
}

// Paper does not scroll: every row of every chart is printed, and the screen is as before
// afterwards.
func printed(t *testing.T, browser context.Context) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	d := document.OfRanking(r, f, document.Options{All: true})
	b := show(t, browser, d)
	pictures := func() int { return evaluate[int](b, `document.querySelectorAll('svg').length`) }
	height := func() int { return evaluate[int](b, `document.documentElement.scrollHeight`) }
	sliders := func() int {
		return evaluate[int](b, `document.querySelectorAll('svg [fill="rgb(128,128,128)"][fill-opacity="0.25"]').length`)
	}
	screen, tall := pictures(), height()
	if sliders() != 1 { // of the ranking
		t.Errorf("%d scroll bars on the screen, want 1", sliders())
	}
	b.do(chromedp.Evaluate[chromedp.Void](`dispatchEvent(new Event('beforeprint'))`))
	printed := evaluate[string](b, `document.querySelector('main').textContent`)
	rows := d.Charts[slices.IndexFunc(d.Charts, func(c document.Chart) bool { return c.Name == "ranking" })].Items
	for _, row := range rows[len(rows)-3:] {
		label := row.Label + "  ("
		if n := strings.Count(printed, label); n != 1 {
			t.Errorf("%s is printed %d times, want 1", label, n)
		}
	}
	if last := fmt.Sprintf("Rows 41 to %d of %[1]d", len(rows)); !strings.Contains(printed, last) || sliders() != 0 {
		t.Errorf("%d scroll bars on paper, or not all rows", sliders())
	}
	b.do(chromedp.Evaluate[chromedp.Void](`dispatchEvent(new Event('afterprint'))`))
	b.drawn()
	if pictures() != screen || height() != tall {
		t.Errorf("after printing, %d charts and a page %d high; before, %d and %d", pictures(), height(), screen, tall)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`addEventListener('beforeprint', () => { document.title = document.querySelectorAll('.sheet').length + ' sheets' })`))
	if _, err := chromedp.Call(b.ctx, cdppage.PrintToPDF, cdppage.PrintToPDFParams{}); err != nil {
		t.Fatal(err)
	}
	if got := evaluate[string](b, `document.title`); got != "1 sheets" { // rows from 41 on
		t.Errorf("a real printer gets %s", got)
	}
	b.quiet()
}

func comparison(t *testing.T, browser context.Context) {
	var inputs []compare.Input
	for i, scale := range []float64{1, 1.3, 0.6} {
		r, _ := benchtest.Ranking(t, scale, record.Upload)
		inputs = append(inputs, compare.Input{Label: []string{"laptop", "board", "server"}[i], Ranking: r})
	}
	c, err := compare.Of(inputs, compare.Options{Normalize: []string{"aes128-gcm*"}})
	if err != nil {
		t.Fatal(err)
	}
	d := document.OfComparison(c, document.Options{All: true})
	b := show(t, browser, d)
	if got, want := evaluate[int](b, `document.querySelectorAll('svg').length`), len(d.Charts); got != want {
		t.Errorf("%d charts drawn, want %d", got, want)
	}
	for _, label := range []string{"laptop", "board", "server"} {
		if !evaluate[bool](b, `document.querySelector('[data-table=ciphers]').textContent.includes(`+quote(label)+`)`) {
			t.Errorf("%s is not beside the others", label)
		}
	}
	b.picture("compare")
	b.quiet()
}

// locked checks that the policy of the page would stop a script that got in after all, and a
// request by ours.
func (b *tab) locked() {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.hacked = 2' }))`))
	if evaluate[bool](b, `window.hacked !== undefined`) {
		b.t.Error("a script that was put into the page ran")
	}
	for _, request := range []string{
		`fetch('http://127.0.0.1:9/x')`, `new Promise((ok, no) => { const i = new Image(); i.onload = ok; i.onerror = no; i.src = 'http://127.0.0.1:9/x' })`,
	} {
		stopped, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](request+`.then(() => false, () => true)`, chromedp.EvalAwaitPromise))
		if err != nil || !stopped {
			b.t.Errorf("%s was not stopped (%v)", request, err)
		}
	}
	violations := func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return strings.Count(strings.Join(b.console, "\n"), "Content Security Policy") >= 3
	}
	if !waittest.Comes(violations) { // the console speaks a moment later
		b.t.Errorf("not stopped by the policy: the console says %q", b.console)
	}
}

func hostileTextIsInert(t *testing.T, browser context.Context) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	benchtest.Spoil(r)
	one := document.OfRanking(r, f, document.Options{})
	other, _ := benchtest.Ranking(t, 1.1, record.Upload)
	c, err := compare.Of([]compare.Input{{Label: benchtest.Payloads[1], Ranking: r}, {Label: benchtest.Payloads[2], Ranking: other}}, compare.Options{Normalize: []string{"aes128-ctr"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*document.Document{"ranking": one, "comparison": document.OfComparison(c, document.Options{All: true})} {
		t.Run(name, func(t *testing.T) {
			b := show(t, browser, d)
			if evaluate[bool](b, `window.hacked !== undefined`) {
				t.Error("a script from the data ran")
			}
			if got := evaluate[int](b, `document.scripts.length`); got != 3 {
				t.Errorf("%d script elements, want 3", got)
			}
			if got := evaluate[int](b, `document.querySelectorAll('img, iframe, object, embed, [onerror], [onload], [onmouseover]').length`); got != 0 {
				t.Errorf("%d elements came out of the data", got)
			}
			if !evaluate[bool](b, `document.body.textContent.includes('<script>window.hacked=1')`) {
				t.Error("the hostile text is not shown as text")
			}
			if text := evaluate[string](b, `document.body.textContent`); strings.ContainsAny(text, "\x1b\u2028\u202e\x00") {
				t.Error("control characters reach the page")
			}
			if name == "ranking" {
				config := evaluate[string](b, `document.getElementById('config').textContent`)
				if strings.ContainsAny(config, "<>\"'=() |\\") && strings.ContainsAny(strings.NewReplacer("Ciphers ^", "", "MACs ^", "", "KexAlgorithms ^", "").Replace(config), "<>\"'=() |\\") {
					t.Errorf("hostile names became configuration:\n%s", config)
				}
			}
			b.picture("hostile-" + name)
			b.quiet()
			b.locked()
		})
	}
}
