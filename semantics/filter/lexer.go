package filter

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
)

type tokenKind uint8

const (
	tokenEnd       tokenKind = iota
	tokenBad                 // text says what is wrong; nothing follows it
	tokenSymbol              // text is one of = <> != > >= < <= + - * / % ( ) , ; .
	tokenWord                // a regular name, keyword or not
	tokenName                // a name in [ ] or " ", text without them
	tokenString              // text without the quotes
	tokenInteger             // digits
	tokenReal                // digits with a point or an exponent
	tokenParameter           // @name, text without the @
)

// token is one word of the language. Column counts characters from 1.
type token struct {
	kind   tokenKind
	text   string // decoded
	word   string // the text in lower case, if it is a keyword (SQL-6)
	source string // as written
	column int
}

// is reports whether the token is a symbol, or a keyword in lower case.
func (t token) is(what string) bool {
	switch t.kind {
	case tokenSymbol:
		return t.text == what
	case tokenWord:
		return t.word == what
	default:
		return false
	}
}

// String describes the token for an error message.
func (t token) String() string {
	if t.kind == tokenEnd {
		return "the end"
	}
	const most = 30
	return semantics.ShortenTo(t.source, most)
}

// keywords are the words of SQL-1, which cannot be names without [ ] or " ".
var keywords = map[string]bool{
	"and": true, "or": true, "not": true, "is": true, "null": true, "in": true, "like": true, "escape": true,
	"exists": true,
	"true":   true, "false": true, "sys": true, "user": true, "newid": true, "property": true, "p": true,
}

// lexer cuts a text into tokens. Text that is not a token becomes a tokenBad at its place.
type lexer struct {
	text   string
	at     int // in bytes
	column int // of text[at]
}

func (l *lexer) next() token {
	for l.at < len(l.text) {
		r, size := utf8.DecodeRuneInString(l.text[l.at:])
		if !unicode.IsSpace(r) {
			break
		}
		l.skip(size)
	}
	at, column := l.at, l.column
	t := l.scan()
	t.source = l.text[at:l.at]
	if t.column == 0 {
		t.column = column
	}
	return t
}

// skip passes n bytes, which must be whole characters.
func (l *lexer) skip(n int) {
	l.column += utf8.RuneCountInString(l.text[l.at : l.at+n])
	l.at += n
}

func (l *lexer) scan() token {
	rest := l.text[l.at:]
	if rest == "" {
		return token{kind: tokenEnd}
	}
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case r == utf8.RuneError && size == 1:
		return bad("the text is not valid UTF-8")
	case r == '\'':
		return l.delimited(tokenString, '\'', "string")
	case r == '"':
		return l.delimited(tokenName, '"', "name")
	case r == '[':
		return l.delimited(tokenName, ']', "name")
	case r == '@':
		return l.parameter()
	case isDigit(rest, 0) || r == '.' && isDigit(rest, 1):
		return l.number()
	case unicode.IsLetter(r):
		return l.word()
	default:
		return l.symbol(r)
	}
}

// delimited reads up to the closing character; twice that character is one of it.
func (l *lexer) delimited(kind tokenKind, end byte, what string) token {
	rest, i := l.text[l.at:], 1
	var text strings.Builder
	for {
		n := strings.IndexByte(rest[i:], end)
		if n < 0 {
			return bad(fmt.Sprintf("the %s is not closed, expected %c", what, end))
		}
		text.WriteString(rest[i : i+n])
		i += n + 1
		if i == len(rest) || rest[i] != end {
			break
		}
		text.WriteByte(end)
		i++
	}
	switch {
	case !utf8.ValidString(rest[:i]):
		return bad("the " + what + " is not valid UTF-8")
	case kind == tokenName && text.Len() == 0:
		return bad("a name must not be empty")
	}
	l.skip(i)
	return token{kind: kind, text: text.String()}
}

func (l *lexer) parameter() token {
	n := regularLength(l.text[l.at+1:])
	if n == 0 {
		return bad("expected the name of a parameter after @")
	}
	l.skip(1 + n)
	return token{kind: tokenParameter, text: l.text[l.at-n : l.at]}
}

// number reads digits, and makes it a real if there is a point or an exponent (SQL-5).
func (l *lexer) number() token {
	rest := l.text[l.at:]
	kind, i := tokenInteger, digits(rest, 0)
	if i < len(rest) && rest[i] == '.' {
		kind, i = tokenReal, digits(rest, i+1)
	}
	if i < len(rest) && (rest[i] == 'e' || rest[i] == 'E') {
		from := i + 1
		if from < len(rest) && (rest[from] == '+' || rest[from] == '-') {
			from++
		}
		if !isDigit(rest, from) {
			l.skip(from)
			return l.badHere("expected digits after E")
		}
		kind, i = tokenReal, digits(rest, from)
	}
	l.skip(i)
	if r, _ := utf8.DecodeRuneInString(rest[i:]); unicode.IsLetter(r) || r == '_' {
		return l.badHere("a number runs into a letter")
	}
	return token{kind: kind, text: rest[:i]}
}

func (l *lexer) word() token {
	n := regularLength(l.text[l.at:])
	text := l.text[l.at : l.at+n]
	l.skip(n)
	t := token{kind: tokenWord, text: text}
	if lower := fold(text); keywords[lower] {
		t.word = lower
	}
	return t
}

func (l *lexer) symbol(r rune) token {
	rest := l.text[l.at:]
	for _, symbol := range []string{"<>", "!=", ">=", "<="} {
		if strings.HasPrefix(rest, symbol) {
			l.skip(len(symbol))
			return token{kind: tokenSymbol, text: symbol}
		}
	}
	if strings.ContainsRune("=<>+-*/%(),;.", r) {
		l.skip(1)
		return token{kind: tokenSymbol, text: rest[:1]}
	}
	return bad(fmt.Sprintf("unexpected character %q", r))
}

// bad is a fault at the start of a token.
func bad(problem string) token { return token{kind: tokenBad, text: problem} }

// badHere is a fault where the lexer stands.
func (l *lexer) badHere(problem string) token {
	return token{kind: tokenBad, text: problem, column: l.column}
}

// regularLength returns the bytes of the regular name at the start of s: a letter, then letters, digits and "_".
func regularLength(s string) int {
	for i, r := range s {
		if !unicode.IsLetter(r) && (i == 0 || r != '_' && !unicode.IsDigit(r)) {
			return i
		}
	}
	return len(s)
}

func isDigit(s string, i int) bool { return i < len(s) && s[i] >= '0' && s[i] <= '9' }

// digits returns the end of the run of digits that starts at i.
func digits(s string, i int) int {
	for isDigit(s, i) {
		i++
	}
	return i
}
