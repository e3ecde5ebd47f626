package filter

import (
	"cmp"
	"slices"
)

// window finds up to 64 characters, some of them any, in one pass over a text. It keeps a bit for each of its places:
// bit i is set as long as the last i+1 characters of the text fit the first i+1 of the window. So each character of the
// text costs one step, whatever they are.
//
// A piece that is longer than its window needs a look at the rest wherever the window fits. That is the only place
// where matching can cost length of text x length of pattern, and the budget bounds it.
type window struct {
	length int
	any    uint64     // the places of _
	masks  []runeMask // the places of each other character, in order of characters
}

type runeMask struct {
	char   rune
	places uint64
}

func windowOf(runes []rune) window {
	w := window{length: min(len(runes), 64)}
	for i, char := range runes[:w.length] {
		if char == anyRune {
			w.any |= 1 << i
			continue
		}
		at, known := w.search(char)
		if !known {
			w.masks = slices.Insert(w.masks, at, runeMask{char: char})
		}
		w.masks[at].places |= 1 << i
	}
	for i := range w.masks {
		w.masks[i].places |= w.any
	}
	return w
}

func (w *window) search(char rune) (at int, known bool) {
	return slices.BinarySearchFunc(w.masks, char, func(m runeMask, char rune) int { return cmp.Compare(m.char, char) })
}

// places returns the places at which a character fits.
func (w *window) places(char rune) uint64 {
	if at, known := w.search(char); known {
		return w.masks[at].places
	}
	return w.any
}
