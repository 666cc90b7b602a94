package document

import (
	"cmp"
	"fmt"
)

// Color is red, green and blue.
type Color [3]uint8

// Hex returns the color as RRGGBB.
func (c Color) Hex() string { return fmt.Sprintf("%02X%02X%02X", c[0], c[1], c[2]) }

// Tint is a color on a light background, and its counterpart on a dark one.
type Tint struct{ Light, Dark Color }

// MarshalText returns the color for both backgrounds in CSS.
func (t Tint) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "light-dark(#%s, #%s)", t.Light.Hex(), t.Dark.Hex()), nil
}

// Series lists the colors of series, in all formats: after Okabe and Ito (2008), distinguishable
// with any color vision.
var Series = [...]Tint{
	{Color{0, 114, 178}, Color{86, 169, 224}}, {Color{213, 94, 0}, Color{238, 138, 60}}, {Color{0, 122, 89}, Color{53, 189, 148}},
	{Color{176, 86, 139}, Color{221, 146, 191}}, {Color{138, 109, 0}, Color{224, 189, 60}}, {Color{90, 95, 192}, Color{163, 167, 245}},
}

// Colors of bars that stand out among those of one series.
const (
	ColorNow     = 1 // negotiated now
	ColorQuantum = 2 // safe against quantum computers
)

// Color returns the color of a series of an item on a light background.
func (c Chart) Color(item Item, k int) Color {
	of := c.First + k
	if c.Shape == Bars && len(c.Series) == 1 {
		of = cmp.Or(item.Color, of)
	}
	return Series[of%len(Series)].Light
}

// Scale is five colors from the least value to the greatest.
type Scale [5]Color

// The scales: equal steps of lightness for amounts, two hues around white for ratios.
var (
	Amounts = Scale{{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}
	Ratios  = Scale{{140, 81, 10}, {216, 179, 101}, {245, 245, 245}, {90, 180, 172}, {1, 102, 94}}
)

// Scale returns the colors of the cells of a chart. falling means that they follow 1/value, because
// less is faster: otherwise costs would give one color to all but a slow cipher.
func (c Chart) Scale() (of Scale, falling bool) {
	if c.Reference != 0 {
		return Ratios, false
	}
	return Amounts, !c.Rising
}
