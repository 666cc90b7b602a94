package picture

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"maps"
	"slices"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"sshpace/internal/base/wildcard"
)

// outlines are the letters of the pictures. Scalable drawings hold the outlines themselves: they
// look the same everywhere, independent of installed fonts.
type outlines struct {
	font   *sfnt.Font
	buffer sfnt.Buffer
	em     fixed.Int26_6 // as many units as the font is made of: figures in it are whole
}

func parse() (*sfnt.Font, error) {
	parsed, err := opentype.Parse(liberationsansregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("read the embedded font: %w", err)
	}
	return parsed, nil
}

func newOutlines(f *sfnt.Font) *outlines {
	return &outlines{font: f, em: fixed.I(int(f.UnitsPerEm()))}
}

// glyph is a letter at its position, in units of the font.
type glyph struct {
	index sfnt.GlyphIndex
	x     int
}

func (o *outlines) glyphs(text string) (out []glyph) {
	x := 0
	before := sfnt.GlyphIndex(0)
	for _, r := range text {
		index, err := o.font.GlyphIndex(&o.buffer, r)
		if err != nil {
			continue
		}
		if kern, err := o.font.Kern(&o.buffer, before, index, o.em, font.HintingNone); err == nil && before != 0 {
			x += kern.Round()
		}
		out = append(out, glyph{index, x})
		if advance, err := o.font.GlyphAdvance(&o.buffer, index, o.em, font.HintingNone); err == nil {
			x += advance.Round()
		}
		before = index
	}
	return out
}

// segments returns the outline of a letter, y downwards; none for a blank.
func (o *outlines) segments(index sfnt.GlyphIndex) sfnt.Segments {
	segments, err := o.font.LoadGlyph(&o.buffer, index, o.em, nil)
	if err != nil {
		return nil
	}
	return segments
}

// path returns the outline in SVG's notation.
func (o *outlines) path(index sfnt.GlyphIndex) string {
	var b bytes.Buffer
	for _, s := range o.segments(index) {
		b.WriteByte("MLQC"[s.Op])
		for i, p := range s.Args[:arguments(s.Op)] {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%d %d", p.X.Round(), p.Y.Round())
		}
	}
	return b.String()
}

// arguments returns the number of points of a segment.
func arguments(op sfnt.SegmentOp) int {
	return [...]int{sfnt.SegmentOpMoveTo: 1, sfnt.SegmentOpLineTo: 1, sfnt.SegmentOpQuadTo: 2, sfnt.SegmentOpCubeTo: 3}[op]
}

// written finds the texts of a drawing by vgsvg.
var written = wildcard.Regexp(`(?s)<text x="([^"]*)" y="([^"]*)" transform="scale\(1, -1\)"\s*style="[^"]*?font-size:([\d.]+)px(?:;fill:([^";]+))?[^"]*">(.*?)</text>`)

// outlined replaces the texts of an SVG by outlines, each letter defined once and used at its
// places. The text stays as a label, for search and for screen readers.
func outlined(svg []byte) ([]byte, error) {
	f, err := parse()
	if err != nil {
		return nil, err
	}
	o := newOutlines(f)
	used := map[sfnt.GlyphIndex]bool{}
	svg = written().ReplaceAllFunc(svg, func(found []byte) []byte {
		m := written().FindSubmatch(found)
		text := html.UnescapeString(string(m[5]))
		var label, out bytes.Buffer
		_ = xml.EscapeText(&label, []byte(text)) // a Buffer does not fail
		scale := fmt.Sprintf("scale(%s) scale(%.8g)", m[3], 1/float64(f.UnitsPerEm()))
		fmt.Fprintf(&out, `<g aria-label="%s" transform="scale(1, -1) translate(%s %s) %s"`, label.Bytes(), m[1], m[2], scale)
		if len(m[4]) > 0 {
			fmt.Fprintf(&out, ` style="fill:%s"`, m[4])
		}
		out.WriteString(">")
		for _, g := range o.glyphs(text) {
			used[g.index] = true
			fmt.Fprintf(&out, `<use xlink:href="#g%d" x="%d"/>`, g.index, g.x)
		}
		out.WriteString("</g>")
		return out.Bytes()
	})
	var defs bytes.Buffer
	defs.WriteString("<defs>")
	for _, index := range slices.Sorted(maps.Keys(used)) {
		fmt.Fprintf(&defs, `<path id="g%d" d="%s"/>`, index, o.path(index))
	}
	defs.WriteString("</defs>\n<g ")
	return bytes.Replace(svg, []byte("<g "), defs.Bytes(), 1), nil
}
