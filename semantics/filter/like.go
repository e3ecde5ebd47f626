package filter

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
)

// noEscape is the escape character of a LIKE without ESCAPE; no text contains it.
const noEscape rune = -1

// pattern is a LIKE pattern cut at its % signs (SQL-14). One piece means the text must equal it; else the text must
// start with the first, end with the last, and have the others between them in order, nowhere overlapping.
//
// Taking the leftmost place for each piece in between is enough, because it leaves the longest rest for what follows.
// So matching never goes back, and looks at each character of the text once (SQL-18): see window for the exception.
type pattern struct {
	pieces []piece
}

// piece is a run of characters between % signs.
type piece struct {
	literal string // the whole piece, if it has no _
	runes   []rune // else its characters, with anyRune for _
	window  window // over the first of them
}

const anyRune rune = -1

// escapeOf returns the escape character; false if the value is not a string of one character.
func escapeOf(o operand) (rune, bool) {
	if o.kind != kindText || o.text == "" {
		return noEscape, false
	}
	r, size := utf8.DecodeRuneInString(o.text)
	return r, size == len(o.text)
}

// compilePattern reads a pattern; nil and a problem if it is none.
func compilePattern(source string, escape rune) (compiled *pattern, problem string) {
	if n := utf8.RuneCountInString(source); n > MaxTextLength {
		return nil, fmt.Sprintf("the pattern is %d characters long, at most %d are allowed", n, MaxTextLength)
	}
	compiled = &pattern{}
	var current []rune
	escaped := false
	for _, r := range source {
		switch {
		case escaped:
			current, escaped = append(current, r), false
		case r == escape:
			escaped = true
		case r == '%':
			compiled.pieces = append(compiled.pieces, pieceOf(current))
			current = nil
		case r == '_':
			current = append(current, anyRune)
		default:
			current = append(current, r)
		}
	}
	if escaped {
		return nil, "the pattern ends in its escape character"
	}
	compiled.pieces = append(compiled.pieces, pieceOf(current))
	return compiled, ""
}

func pieceOf(runes []rune) piece {
	for _, r := range runes {
		if r == anyRune {
			return piece{runes: runes, window: windowOf(runes)}
		}
	}
	return piece{literal: string(runes)}
}

// matches reports whether the whole text fits the pattern. It takes what it looks at off the budget, and stops when
// that is spent.
func (p *pattern) matches(s string, budget *semantics.Budget) bool {
	if !budget.Spend(len(s)) {
		return false
	}
	first, rest := p.pieces[0], p.pieces[1:]
	end, ok := first.prefix(s)
	if !ok {
		return false
	}
	s = s[end:]
	if len(rest) == 0 {
		return s == ""
	}
	last, between := rest[len(rest)-1], rest[:len(rest)-1]
	for _, piece := range between {
		if end, ok = piece.find(s, budget); !ok {
			return false
		}
		s = s[end:]
	}
	return last.isSuffix(s)
}

// prefix reports whether s starts with the piece, and where the piece ends.
func (p piece) prefix(s string) (end int, ok bool) {
	if p.runes == nil {
		return len(p.literal), strings.HasPrefix(s, p.literal)
	}
	for _, want := range p.runes {
		got, size := utf8.DecodeRuneInString(s[end:])
		if size == 0 || want != anyRune && want != got {
			return 0, false
		}
		end += size
	}
	return end, true
}

// find returns the end of the leftmost place of the piece in s.
func (p piece) find(s string, budget *semantics.Budget) (end int, ok bool) {
	if p.runes == nil {
		at := strings.Index(s, p.literal)
		return at + len(p.literal), at >= 0
	}
	rest := piece{runes: p.runes[p.window.length:]}
	fits, whole := uint64(0), uint64(1)<<(p.window.length-1)
	for at := 0; at < len(s); {
		char, size := utf8.DecodeRuneInString(s[at:])
		at += size
		fits = (fits<<1 | 1) & p.window.places(char)
		if fits&whole == 0 {
			continue
		}
		if len(rest.runes) == 0 {
			return at, true
		}
		if !budget.Spend(len(rest.runes)) {
			return 0, false
		}
		if end, ok := rest.prefix(s[at:]); ok {
			return at + end, true
		}
	}
	return 0, false
}

func (p piece) isSuffix(s string) bool {
	if p.runes == nil {
		return strings.HasSuffix(s, p.literal)
	}
	at := len(s)
	for range p.runes {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size // stays at the start if s is too short, and then prefix fails
	}
	end, ok := p.prefix(s[at:])
	return ok && at+end == len(s)
}
