package model

import (
	"math"

	"sshpace/internal/base/alg"
)

// twins lists the cells by what they compute, as indices: MACs of one primitive
// do the same per byte, and so do their -etm forms unless these were found to have
// an effect.
func twins(cells []alg.Suite, etm bool) [][]int {
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
		s.Figures[i].Foretold, s.Figures[i].Predicted, s.Figures[i].Error = class.Foretold, class.Predicted, class.Error
		if held[i] {
			s.Figures[i].foretell(same[0], f.all, s.Interaction)
		}
	}
	for kept := same; ; {
		together := s.pool(kept)
		together.Foretold, together.Predicted, together.Error = class.Foretold, class.Predicted, class.Error
		var rest []int
		for _, i := range kept {
			if figure := s.Figures[i]; figure.N > 1 && len(kept) > 1 && s.odd(figure, together) {
				s.Figures[i].combine(s.Deviation)
				s.Figures[i].Shared = 1
			} else {
				rest = append(rest, i)
			}
		}
		if len(rest) == len(kept) {
			together.combine(s.Deviation)
			for _, i := range kept {
				figure := &s.Figures[i]
				figure.Known, figure.Log, figure.Err, figure.Shared = together.Known, together.Log, together.Err, len(kept)
			}
			return
		}
		kept = rest
	}
}

// odd reports whether a cell's connections lie far from those of the cells that
// it should equal.
func (s *Series) odd(f, together Figure) bool {
	others := together.Weight - f.Weight
	if others <= 0 {
		return false
	}
	mean := (together.Measured*together.Weight - f.Measured*f.Weight) / others
	return math.Abs(f.Measured-mean) > surprising*s.Deviation*math.Sqrt(1/f.Weight+1/others)
}

// pool takes the connections of several cells for those of one.
func (s *Series) pool(cells []int) Figure {
	var out Figure
	for _, i := range cells {
		f := s.Figures[i]
		out.N += f.N
		out.Weight += f.Weight
		out.Measured += f.Weight * f.Measured
	}
	if out.Weight > 0 {
		out.Measured /= out.Weight
	}
	return out
}
