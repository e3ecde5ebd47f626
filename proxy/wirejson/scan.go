package wirejson

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// MemberNames returns the names of a JSON object, none if the text is not an object.
func MemberNames(data []byte) []string {
	if !json.Valid(data) {
		return nil
	}
	var names []string
	if s := (&scanner{data: data}); s.open('{') {
		for s.next('}') {
			names = append(names, s.key())
			s.value()
		}
	}
	return names
}

// scanner reads valid JSON, so that it need not check for errors and can return slices of the input without copying
// them.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the first byte of the next token.
func (s *scanner) peek() byte {
	s.space()
	return s.data[s.pos]
}

// open enters an object or array. It returns false and does not advance if the next value is neither.
func (s *scanner) open(bracket byte) bool {
	if s.peek() != bracket {
		return false
	}
	s.pos++
	return true
}

// next advances to the next element of an object or array, or leaves it and returns false.
func (s *scanner) next(bracket byte) bool {
	if s.peek() == ',' {
		s.pos++
		return true
	}
	if s.data[s.pos] == bracket {
		s.pos++
		return false
	}
	return true
}

// key reads the name of a member and the colon after it.
func (s *scanner) key() string {
	s.space()
	name, _ := unquote(s.value())
	s.space()
	s.pos++
	return name
}

// value reads the next value and returns its bytes.
func (s *scanner) value() []byte {
	s.space()
	start := s.pos
	depth := 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '"':
			s.skipString()
		case '{', '[':
			depth++
			s.pos++
		case '}', ']':
			depth--
			s.pos++
		case ' ', '\t', '\n', '\r', ',', ':':
			s.pos++
		default:
			s.skipWord()
		}
		if depth == 0 {
			break
		}
	}
	return s.data[start:s.pos]
}

func (s *scanner) skipString() {
	for s.pos++; s.data[s.pos] != '"'; s.pos++ {
		if s.data[s.pos] == '\\' {
			s.pos++
		}
	}
	s.pos++
}

// skipWord skips a number, true, false or null.
func (s *scanner) skipWord() {
	for s.pos < len(s.data) && !strings.ContainsRune(" \t\n\r,:]}", rune(s.data[s.pos])) {
		s.pos++
	}
}

// unquote reads a JSON string. It returns false if the value is not a string, or has an unpaired surrogate, which is
// not valid UTF-8.
func unquote(raw []byte) (string, bool) {
	if raw[0] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", false
	}
	// encoding/json replaces an unpaired surrogate with U+FFFD. The result is valid if it has no more U+FFFD than the
	// input.
	const replacement = string(utf8.RuneError)
	written := strings.Count(string(inner), replacement) + strings.Count(strings.ToLower(string(inner)), `\ufffd`)
	return text, strings.Count(text, replacement) <= written
}
