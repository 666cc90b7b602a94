package model

import (
	"math"

	"sshpace/internal/base/alg"
)

// equivalents lists the cells by what they compute, as indices: MACs of one primitive
// do the same per byte, and so do their -etm forms unless these were found to have
// an effect.
func equivalents(cells []alg.Suite, etm bool) [][]int {
	type computation struct {
		cipher, primitive string
		etm               bool
	}
	index := map[computation]int{}
	var out [][]int
	for i, cell := range cells {
		c := computation{cell.Cipher, alg.Primitive(cell.MAC), etm && isETM(cell)}
		k, seen := index[c]
		if !seen {
			k = len(out)
			index[c] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return out
}

// estimate gives cells that are the same computation one best estimate, from the
// connections of all and from what the other cells foretell: what is left between
// them is noise, and would order them by chance. A cell whose own connections say
// otherwise keeps its own. fitted says whether any of them was part of the fit.
func (s *Series) estimate(same []int, held []bool, f fit, fitted bool) {
	others := f.all
	if fitted {
		others = f.others
	}
	var class Figure
	class.foretell(same[0], others, s.Interaction)
	for _, i := range same {
		s.Figures[i].Foretold, s.Figures[i].Predicted, s.Figures[i].Error, s.Figures[i].sway = class.Foretold, class.Predicted, class.Error, class.sway
		if held[i] {
			s.Figures[i].foretell(same[0], f.all, s.Interaction)
		}
	}
	for kept := same; ; {
		together := s.pool(kept)
		together.Foretold, together.Predicted, together.Error, together.sway = class.Foretold, class.Predicted, class.Error, class.sway
		var rest []int
		for _, i := range kept {
			if figure := s.Figures[i]; figure.N > 1 && len(kept) > 1 && s.odd(figure, together) {
				s.Figures[i].combine()
				s.Figures[i].Shared, s.Figures[i].Basis = 1, figure.N
			} else {
				rest = append(rest, i)
			}
		}
		if len(rest) == len(kept) {
			together.combine()
			for _, i := range kept {
				figure := &s.Figures[i]
				figure.Known, figure.Log, figure.Err, figure.Repeat, figure.Shared = together.Known, together.Log, together.Err, together.Repeat, len(kept)
				figure.Basis = together.N
			}
			return
		}
		kept = rest
	}
}

// odd reports whether a cell's connections lie far from those of the cells that
// it should equal.
func (s *Series) odd(f, together Figure) bool {
	own, all := 1/(f.Own*f.Own), 1/(together.Own*together.Own)
	others := all - own
	if others <= 1e-9*all {
		return false
	}
	mean := (together.Measured*all - f.Measured*own) / others
	return math.Abs(f.Measured-mean) > surprising*math.Sqrt(1/own+1/others)
}

// pool takes the connections of several cells for those of one.
func (s *Series) pool(cells []int) Figure {
	var out Figure
	total := 0.0
	for _, i := range cells {
		if f := s.Figures[i]; f.N > 0 {
			weight := 1 / (f.Own * f.Own)
			total += weight
			out.N += f.N
			out.Measured += weight * f.Measured
			out.within += float64(f.N) * f.within
			out.chancy = f.chancy
		}
	}
	if out.N > 0 {
		out.Measured /= total
		out.Own = 1 / math.Sqrt(total)
		out.within /= float64(out.N)
	}
	return out
}
