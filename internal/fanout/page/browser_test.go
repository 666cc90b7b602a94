package page

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout/job"
)

var screenshots = flag.String("screenshots", "", "directory to write screenshots to, to look at them")

// tab is an open page in a real browser, and what it did that it should not.
type tab struct {
	t   *testing.T
	ctx context.Context
	at  *url.URL

	mu       sync.Mutex
	requests []string
	console  []string
}

// TestInABrowser starts headless Chromium once, which takes longer than a page, and has a tab for
// each page.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	browser, stop := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Headless, chromedp.ExecPath("chromium"), chromedp.UserDataDir(t.TempDir())))
	t.Cleanup(stop)
	if err := chromedp.Do(browser); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, context.Context){
		"empty": empty, "live": live, "many jobs": many, "a large job": large, "hostile text": hostile, "stop": stops,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, browser) })
	}
}

// open opens an address in a tab, and waits until the page is live.
func open(t *testing.T, browser context.Context, u *url.URL) *tab {
	t.Helper()
	ctx, cancel := context.WithTimeout(browser, 2*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx, at: u}
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
	b.do(chromedp.EmulateViewport(1280, 800))
	b.visit(u.String())
	return b
}

func (b *tab) visit(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
	b.until("it is live", `document.getElementById('live')?.textContent === 'live'`)
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

func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until an expression is true.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	waittest.Until(b.t, what, func() bool { return evaluate[bool](b, expression) })
}

// says waits until a part of the page has a text.
func (b *tab) says(selector, text string) {
	b.t.Helper()
	b.until(selector+" says "+text, `!!document.querySelector(`+quote(selector)+`)?.innerText.includes(`+quote(text)+`)`)
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `\'`) + "'" }

// quiet checks that the page asked nobody else for anything, and complained of nothing.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.requests {
		if !strings.HasPrefix(u, b.at.Scheme+"://"+b.at.Host+b.at.Path) {
			b.t.Errorf("the page asked for %q", u)
		}
	}
	if len(b.console) > 0 {
		b.t.Errorf("the console says %q", b.console)
	}
}

// looks checks the page at two sizes, and writes screenshots of both, light and dark, where asked
// for.
func (b *tab) looks(name string) {
	b.t.Helper()
	for _, size := range [][2]int64{{1280, 800}, {390, 844}} {
		b.do(chromedp.EmulateViewport(size[0], size[1]))
		if wide := evaluate[int64](b, `document.documentElement.scrollWidth`); wide > size[0] {
			b.t.Errorf("%s: at %d points the page is %d wide", name, size[0], wide)
		}
		if out := evaluate[[]string](b, outside); len(out) > 0 {
			b.t.Errorf("%s: at %d points these are cut off: %q", name, size[0], out)
		}
		if *screenshots == "" {
			continue
		}
		for _, scheme := range []string{"light", "dark"} {
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
				b.t.Fatal(err)
			}
			png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				b.t.Fatal(err)
			}
			file := fmt.Sprintf("%s-%d-%s.png", strings.ReplaceAll(name, " ", "-"), size[0], scheme)
			if err := os.WriteFile(filepath.Join(*screenshots, file), png, 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.do(chromedp.EmulateViewport(1280, 800))
}

// outside finds texts that leave the screen.
const outside = `[...document.querySelectorAll('main *, header *')].filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && (r.right > innerWidth + 1 || r.left < 0) }).map(e => e.tagName + ' ' + e.textContent.slice(0, 40)).slice(0, 5)`

func empty(t *testing.T, browser context.Context) {
	b := open(t, browser, newWorld(t).serve(job.Page{}))
	b.says("#jobs", "There are no jobs")
	b.says("#launchers", "No launcher is alive")
	b.looks("empty")
	b.quiet()
}

// What happens on hosts comes without a reload, and what is open, in use or selected stays so.
func live(t *testing.T, browser context.Context) {
	w := newWorld(t)
	b := open(t, browser, w.serve(job.Page{}))
	evaluate[int](b, `window.before = 7`)
	const id = "20261127T100000.25Z-abc234"
	w.job(id, "apt-get -y upgrade", map[string][]string{"web": {"web[1-5]", "web[6-8]"}, "db": {"db1"}})
	b.says("#jobs", "apt-get -y upgrade")
	b.says("#jobs", "waiting")
	w.alive("web", "bastion-web", 2)
	b.says("#launchers", "bastion-web")
	w.batch("web", id, 0, "web[1-5]", func(i int, _ host.Host) said { return said{"done\n", []int{0, 0, 3, -1, -1}[i]} })
	b.says("#jobs", "3/9, 1 failed, 2 running")
	b.do(chromedp.Focus("#jobs a"))
	evaluate[int](b, `new PerformanceObserver(list => { for (const e of list.getEntries()) window.before += e.value }).observe({ type: 'layout-shift' }), 1`)
	w.batch("web", id, 1, "web[6-8]", func(int, host.Host) said { return said{"done\n", 0} })
	b.says("#jobs", "6/9, 1 failed, 2 running")
	if evaluate[float64](b, `window.before`) != 7 || evaluate[string](b, `document.activeElement.id`) != "job-"+id {
		t.Error("the page was loaded again, or has moved, or has lost the focus")
	}
	b.looks("one job")
	b.do(chromedp.KeyEvent("\r")) // by keyboard
	b.until("the job is shown", `document.getElementById('live')?.textContent === 'live' && document.querySelector('#output pre') !== null`)
	b.says("#hosts", "web[4-5]")
	b.do(chromedp.Click("#progress summary"))
	evaluate[int](b, `window.before = 7`)
	w.batch("db", id, 0, "db1", func(int, host.Host) said { return said{"other\n", -2} })
	b.says("#hosts", "unreachable")
	b.says("#output", "db1 (1) =: unreachable: connection refused")
	if evaluate[int](b, `window.before`) != 7 || !evaluate[bool](b, `document.querySelector('#progress details').open`) {
		t.Error("the page was loaded again, or has closed what was open")
	}
	b.looks("its job")
	b.quiet()
}

func many(t *testing.T, browser context.Context) {
	w := newWorld(t)
	commands := []string{"uptime", "systemctl restart nginx && systemctl is-active nginx", "df -h / | tail -1", "for f in /etc/cron.d/*; do echo \"$f\"; cat \"$f\"; done | sha256sum"}
	for i := range 60 {
		id := fmt.Sprintf("20261127T10%02d00Z-abc234", i)
		w.job(id, commands[i%len(commands)], map[string][]string{"web": {"web[1-90]"}})
		if i%3 > 0 {
			w.batch("web", id, 0, "web[1-90]", func(n int, _ host.Host) said { return said{"", []int{0, 0, 0, i % 2, -i % 2}[n%5]} })
		}
	}
	for i := range 5 {
		w.alive([]string{"web", "db"}[i%2], fmt.Sprintf("bastion-%d", i), i)
	}
	if err := w.client.Put(t.Context(), job.Entry{Subject: "batch.dmz.20261127T100000Z-abc234.0"}); err != nil {
		t.Fatal(err)
	}
	b := open(t, browser, w.serve(job.Page{}))
	b.until("all jobs are there", `document.querySelectorAll('#jobs .row').length === 60`)
	b.says("#launchers", "Pool dmz: 1 batch waiting, and no launcher")
	b.looks("many jobs")
	b.quiet()
}

func large(t *testing.T, browser context.Context) {
	w := newWorld(t)
	const id = "20261127T100000Z-abc234"
	pools := map[string][]string{}
	for i := range 14 {
		pool := []string{"frankfurt", "oregon"}[i%2]
		pools[pool] = append(pools[pool], fmt.Sprintf("web[%d-%d].example.com", 1000+100*i, 1099+100*i))
	}
	w.job(id, "nginx -v; sha256sum /etc/nginx/nginx.conf", pools)
	for pool, sets := range pools {
		w.alive(pool, "bastion-"+pool, 12)
		for k, set := range sets[:6] {
			w.batch(pool, id, k, set, func(i int, h host.Host) said {
				switch {
				case i%33 == 7:
					return said{"nginx: command not found\n", 127}
				case i%50 == 3:
					return said{"", -2}
				case k == 5 && i > 70:
					return said{"", -1}
				case i%9 == 0:
					return said{"nginx version: nginx/1.22.1\n7c4b1e  /etc/nginx/nginx.conf\n", 0}
				}
				return said{"nginx version: nginx/1.24.0\n51a0f8  /etc/nginx/nginx.conf\n", 0}
			})
		}
	}
	u := w.serve(job.Page{})
	b := open(t, browser, u)
	b.visit(b.at.Scheme + "://" + b.at.Host + b.at.Path + "job/" + id)
	b.says("#progress", "/1400, 60 failed")
	b.says("#output", "nginx/1.22.1")
	if groups := evaluate[int](b, `document.querySelectorAll('#output details').length`); groups != 3 {
		t.Errorf("%d groups of outputs, want 3", groups)
	}
	b.looks("a large job")
	b.do(chromedp.Click("#progress summary"))
	b.looks("its batches")
	b.quiet()
}

// Text of hosts, of commands and of launchers is text.
func hostile(t *testing.T, browser context.Context) {
	w := newWorld(t)
	const id = "20261127T100000Z-abc234"
	const script = `<script>window.hacked=1</script><img src=x onerror="window.hacked=2">`
	w.job(id, "echo '"+script+"' \x1b[31m\u202eevil", map[string][]string{"web": {"web[1-6]"}})
	w.batch("web", id, 0, "web[1-6]", func(i int, _ host.Host) said {
		return said{[]string{
			script + "\n", "\x1b]0;title\x07\x1b[2J\u202egnp.exe\u2066\n\x00\x85\n", strings.Repeat("x", 100_000) + "\n", strings.Repeat("a line\n", 9000),
			"---------------\nweb9 (1)\n---------------\nevent: jobs\ndata: <b>forged</b>\n\ndata: x\r\n\r\n", "{{.Form}} </pre></details><form action=//evil>\n",
		}[i], i % 2}
	})
	w.alive("web", "x", 1)
	b := open(t, browser, w.serve(job.Page{}))
	b.says("#jobs", script)
	b.visit(b.at.Scheme + "://" + b.at.Host + b.at.Path + "job/" + id)
	b.says("#output", script)
	b.says("#output", "bytes more are not shown here")
	if evaluate[bool](b, `window.hacked !== undefined`) {
		t.Error("a script of a host ran")
	}
	if got := evaluate[int](b, `document.querySelectorAll('img, iframe, object, embed, [onerror], form').length + document.scripts.length`); got != 1 {
		t.Errorf("%d elements, want the script of the page", got)
	}
	if text := evaluate[string](b, `document.body.textContent`); strings.ContainsAny(text, "\x1b\u2028\u202e\u2066\x00\x07\u0085") {
		t.Error("control characters reach the page")
	}
	if got := evaluate[int](b, `document.querySelectorAll('#output details').length`); got != 6 {
		t.Errorf("%d groups, want 6", got)
	}
	b.looks("hostile")
	b.quiet()
	b.do(chromedp.Evaluate[chromedp.Void](`document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.hacked = 3' }))`))
	stopped, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`fetch('http://127.0.0.1:9/x').then(() => false, () => true)`, chromedp.EvalAwaitPromise))
	if err != nil || !stopped || evaluate[bool](b, `window.hacked !== undefined`) {
		t.Errorf("the policy of the page lets scripts in, or requests out (%v)", err)
	}
}

func stops(t *testing.T, browser context.Context) {
	w := newWorld(t)
	const id = "20261127T100000Z-abc234"
	w.job(id, "sleep 1000", map[string][]string{"web": {"web[1-6]"}})
	w.batch("web", id, 0, "web[1-6]", func(int, host.Host) said { return said{"", -1} })
	b := open(t, browser, w.serve(job.Page{}))
	b.says("#jobs", "6 running")
	b.visit(b.at.Scheme + "://" + b.at.Host + b.at.Path + "job/" + id)
	b.do(chromedp.Click("#stop summary"), chromedp.Click("#stop button"))
	b.says("#facts", "somebody at the page")
	b.looks("stopped")
	b.quiet()
}
