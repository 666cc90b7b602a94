package output

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/file"
)

// gatherOptions control how gather keeps and writes. Only the writers are required.
type gatherOptions struct {
	Out, Err io.Writer // remote stdout; remote stderr and the ends of hosts
	Raw      bool      // do not clean the text
	// Diff shows how each group's standard output differs from the largest one, or from that of the
	// host DiffHost.
	Diff     bool
	DiffHost string
	// ByEnd separates hosts with different ends, and names successful ones, too.
	ByEnd bool
	// Mask joins outputs that differ only by the host's own name; it is then written as <host>.
	Mask bool
	// Groups, if set, gets the title of each group, and returns where its output goes.
	Groups func(title string) io.Writer
}

// gather collects everything and writes, at the end, each distinct output once,
// under the folded names of the hosts that sent it. Standard output, standard error and
// ends are folded apart from each other, the largest group first; how hosts ended is the same
// where only their names and addresses differ, which are then written as <host>. Where some
// hosts wrote to standard output, those whose commands ended without are a group, too.
//
//	---------------
//	web[1-3] (3)
//	---------------
//	| a line that all three sent
type gather struct {
	fleet.Nothing
	opt    gatherOptions
	store  file.Store
	mark   []byte // replaces the host's own name while hashing; nobody can guess it
	live   PerHost[[2]file.Content]
	groups [2]map[digest]*group // by stream, and by the output as it came
	ends   Ends
	hints  Ends
	buf    [32 << 10]byte // for reading contents back
}

// digest is a hash of output.
type digest [sha256.Size]byte

// group is a set of hosts with the same output.
type group struct {
	hosts   []string
	content file.Content // of the first host
	own     names        // with Mask: of the first host
	masked  digest       // of the content without them
	differ  bool         // others have their own names in the place of these
	text    string       // of a group of ends or hints; with ByEnd how all of its hosts ended
}

// silent reports whether its hosts sent nothing.
func (gr *group) silent() bool { return gr.content.Size == 0 && gr.content.Dropped == 0 }

var _ fleet.Sink = (*gather)(nil)

// outputMemory is how much output is kept in memory, in bytes. The rest goes to a file.
const outputMemory = 16 << 20

func newGather(opt gatherOptions) *gather {
	g := &gather{
		opt: opt, store: file.Store{What: "output", Limit: outputMemory},
		mark: []byte(rand.Text()), ends: Ends{}, hints: Ends{},
	}
	for i := range g.groups {
		g.groups[i] = map[digest]*group{}
	}
	return g
}

// Output keeps a piece of output.
func (g *gather) Output(e fleet.Event) error {
	return Loss(g.store.Add(&g.live.Of(e.Index)[e.Stream], e.Data))
}

// Done puts the host into its groups.
func (g *gather) Done(r fleet.Result, _ fleet.Summary) error {
	var errs []error
	ended := r.Ran == fleet.RanYes && r.Class == fleet.NoFailure
	for stream, content := range g.live.Take(r.Index) {
		if content.Size > 0 || ended && fleet.Stream(stream) == fleet.Stdout {
			errs = append(errs, g.file(g.groups[stream], &content, &r))
		}
	}
	if note := termsafe.Line(r.Note); note != "" {
		g.ends.Add(r.Host, "note: "+note)
	}
	if text := g.end(&r); text != "" {
		g.ends.Add(r.Host, text)
		if r.Hint != "" {
			g.hints.Add(r.Host, r.Hint)
		}
	}
	return errors.Join(errs...)
}

// end returns the end of a host, if it is to be shown.
func (g *gather) end(r *fleet.Result) string {
	if text := Explain(r); text != "" || !g.opt.ByEnd {
		return text
	}
	return "exit 0"
}

// file adds one stream of a host to the group with the same content.
func (g *gather) file(groups map[digest]*group, c *file.Content, r *fleet.Result) error {
	text := ""
	if g.opt.ByEnd {
		text = g.end(r)
	}
	raw, err := g.hash(c, text, nil)
	if err != nil {
		return err
	}
	if known := groups[raw]; known != nil {
		known.hosts = append(known.hosts, r.Host.String())
		g.store.Drop(c)
		return nil
	}
	gr := &group{hosts: []string{r.Host.String()}, content: *c, text: text}
	groups[raw] = gr
	g.store.Settle(&gr.content)
	if g.opt.Mask {
		gr.own = namesOf(r.Host.Name)
		gr.masked, err = g.hash(&gr.content, text, gr.own)
	}
	return err
}

// hash returns the hash of a content with its end, with a host's own names replaced. Dropped bytes
// count, so that two long outputs are not considered equal because their beginnings are.
func (g *gather) hash(c *file.Content, end string, own names) (digest, error) {
	sum := sha256.New() // its Write cannot fail
	fmt.Fprintf(sum, "%s\x00", end)
	var buf []byte
	err := g.eachLine(c, func(p Piece) error {
		buf = buf[:0]
		if !p.Continues {
			buf = append(buf, '\n')
		}
		buf = own.replace(buf, p.Text, g.mark)
		sum.Write(buf)
		return nil
	})
	fmt.Fprintf(sum, "\n%d", c.Dropped)
	return digest(sum.Sum(nil)), err
}

// joined merges groups of single hosts that differ only in the host's own name. Groups of several
// hosts stay.
func (g *gather) joined(groups map[digest]*group) map[digest]*group {
	if !g.opt.Mask {
		return groups
	}
	joined := map[digest]*group{}
	for raw, gr := range groups {
		key := gr.masked
		if len(gr.hosts) > 1 {
			key = raw
		}
		if first := joined[key]; first != nil {
			first.hosts, first.differ = append(first.hosts, gr.hosts...), true
			continue
		}
		joined[key] = gr
	}
	return joined
}

// eachLine reads the lines of a content.
func (g *gather) eachLine(c *file.Content, use func(Piece) error) error {
	l := Lines{Max: defaultMaxLine}
	r := g.store.Reader(c)
	var err error
	keep := func(p Piece) {
		if err == nil {
			err = use(p)
		}
	}
	for {
		n, readErr := r.Read(g.buf[:])
		l.Feed(g.buf[:n], keep)
		if readErr == io.EOF {
			l.End(keep)
			return err
		}
		if err = cmp.Or(err, readErr); err != nil {
			return err
		}
	}
}

// End writes the groups and frees the memory.
func (g *gather) End(fleet.Summary) error {
	out, errs := bufio.NewWriter(g.opt.Out), bufio.NewWriter(g.opt.Err)
	err := errors.Join(
		g.writeGroups(out, g.groups[fleet.Stdout], ""), out.Flush(),
		g.writeGroups(errs, g.groups[fleet.Stderr], ", standard error"),
	)
	g.writeEnds(errs)
	return errors.Join(err, errs.Flush(), g.store.Close())
}

// ends is a gather of the ends of hosts alone.
type ends struct{ *gather }

// Output drops a piece of output.
func (ends) Output(fleet.Event) error { return nil }

// rule surrounds the names of a group. Every line that a host sent begins with hostMark and no
// other line does, so that no host can imitate another one or us, whatever its text looks like.
const (
	rule     = "---------------"
	hostMark = "| "
)

func (g *gather) writeGroups(w *bufio.Writer, groups map[digest]*group, what string) error {
	list := bySize(g.joined(groups))
	if !slices.ContainsFunc(list, func(gr *group) bool { return !gr.silent() }) {
		return nil
	}
	var first []byte // text to compare the others with
	if g.opt.Diff && what == "" && len(list) > 1 {
		i := slices.IndexFunc(list, func(gr *group) bool { return slices.Contains(gr.hosts, g.opt.DiffHost) })
		if i > 0 {
			list[0], list[i] = list[i], list[0]
		}
		var err error
		if first, err = g.text(list[0]); err != nil {
			return err
		}
	}
	for i, gr := range list {
		note := what
		if gr.text != "" {
			note += ", " + gr.text
		}
		if gr.silent() {
			note += ", no standard output"
		}
		edits, err := g.edits(first, gr, i)
		if edits != nil {
			note = ", against " + asSet(list[0].hosts)
		}
		if gr.differ {
			note += ", names shown as " + ownMark
		}
		title := fmt.Sprintf("%s (%d)%s", asSet(gr.hosts), len(gr.hosts), note)
		if g.opt.Groups != nil {
			own := bufio.NewWriter(g.opt.Groups(title))
			if err := cmp.Or(g.writeContent(own, gr), own.Flush()); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s\n%s\n%s\n", rule, title, rule)
		if edits != nil {
			_, err = w.Write(edits)
		} else if err == nil {
			err = g.writeContent(w, gr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeContent writes a group's text, each line with the mark of hosts.
func (g *gather) writeContent(w *bufio.Writer, gr *group) error {
	var buf []byte
	begun := false
	err := g.eachLine(&gr.content, func(p Piece) error {
		text := p.Text
		if gr.differ {
			buf = gr.own.replace(buf[:0], text, []byte(ownMark))
			text = buf
		}
		if !g.opt.Raw {
			text = termsafe.Text(text)
		}
		if begun && !p.Continues {
			w.WriteByte('\n') // bufio keeps the error for the next call and for Flush
		}
		if !p.Continues && g.opt.Groups == nil {
			w.WriteString(hostMark)
		}
		begun = true
		_, err := w.Write(text)
		return err
	})
	if begun {
		w.WriteByte('\n')
	}
	if gr.content.Dropped > 0 {
		fmt.Fprintf(w, "[%d more bytes were not kept: %s]\n", gr.content.Dropped, termsafe.Line(gr.content.Lost.Error()))
	}
	return err
}

func (g *gather) writeEnds(w *bufio.Writer) {
	g.ends.Write(w)
	for _, gr := range bySize(g.hints) {
		fmt.Fprintf(w, "hint: %s\n", termsafe.Line(gr.text))
	}
}

// bySize sorts the largest group first, so that the odd ones come last, next to the prompt; equal
// ones by their first host.
func bySize[K comparable](groups map[K]*group) []*group {
	var list []*group
	for _, gr := range groups {
		slices.Sort(gr.hosts)
		list = append(list, gr)
	}
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(cmp.Compare(len(b.hosts), len(a.hosts)), cmp.Compare(a.hosts[0], b.hosts[0]))
	})
	return list
}
