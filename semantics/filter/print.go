package filter

import (
	"math"
	"strconv"
	"strings"
)

// Precedences, low to high (SQL-2).
const (
	precedenceOr = iota
	precedenceAnd
	precedenceNot
	precedenceTest
	precedenceSum
	precedenceProduct
	precedencePrimary
)

// writer makes canonical text.
type writer struct{ text strings.Builder }

func (w *writer) add(parts ...string) {
	for _, part := range parts {
		w.text.WriteString(part)
	}
}

func textOf(n node) string {
	var w writer
	n.write(&w)
	return w.text.String()
}

// put writes a node where operators of less than the given precedence need parentheses.
func (w *writer) put(n node, least int) {
	if precedenceOf(n) >= least {
		n.write(w)
		return
	}
	w.add("(")
	n.write(w)
	w.add(")")
}

func precedenceOf(n node) int {
	switch n := n.(type) {
	case *or:
		return precedenceOr
	case *and:
		return precedenceAnd
	case *not:
		return precedenceNot
	case *compared, *isNull, *exists, *in, *like:
		return precedenceTest
	case *holds:
		return precedenceOf(n.value)
	case *arithmetic:
		return n.op.precedence()
	default:
		return precedencePrimary
	}
}

func (w *writer) join(terms []condition, between string, least int) {
	for i, term := range terms {
		if i > 0 {
			w.add(between)
		}
		w.put(term, least)
	}
}

// not writes NOT before a word of a test that has been negated.
func (w *writer) not(negated bool) {
	if negated {
		w.add("NOT ")
	}
}

func (n *or) write(w *writer)  { w.join(n.terms, " OR ", precedenceAnd) }
func (n *and) write(w *writer) { w.join(n.terms, " AND ", precedenceNot) }

func (n *not) write(w *writer) {
	w.not(true)
	w.put(n.term, precedenceTest)
}

func (n *holds) write(w *writer) { n.value.write(w) }

func (n *compared) write(w *writer) {
	w.put(n.left, precedenceSum)
	w.add(" ", n.op.String(), " ")
	w.put(n.right, precedenceSum)
}

func (n *isNull) write(w *writer) {
	n.property.write(w)
	w.add(" IS ")
	w.not(n.negated)
	w.add("NULL")
}

func (n *exists) write(w *writer) {
	w.add("EXISTS(")
	n.property.write(w)
	w.add(")")
}

func (n *in) write(w *writer) {
	w.put(n.left, precedenceSum)
	w.add(" ")
	w.not(n.negated)
	w.add("IN (")
	for i, item := range n.items {
		if i > 0 {
			w.add(", ")
		}
		w.put(item, precedenceSum)
	}
	w.add(")")
}

func (n *like) write(w *writer) {
	w.put(n.left, precedenceSum)
	w.add(" ")
	w.not(n.negated)
	w.add("LIKE ")
	w.put(n.pattern, precedenceSum)
	if n.escape != nil {
		w.add(" ESCAPE ")
		w.put(n.escape, precedenceSum)
	}
}

func (n *arithmetic) write(w *writer) {
	w.put(n.left, n.op.precedence())
	w.add(" ", n.op.String(), " ")
	w.put(n.right, n.op.precedence()+1)
}

// write puts parentheses around a number, because a sign right before it would become part of it, and around another
// sign.
func (n *signed) write(w *writer) {
	sign := "+"
	if n.negative {
		sign = "-"
	}
	w.add(sign)
	_, isSigned := n.of.(*signed)
	if c, ok := n.of.(*constant); isSigned || ok && c.value.isNumber() {
		w.add("(")
		n.of.write(w)
		w.add(")")
		return
	}
	w.put(n.of, precedencePrimary)
}

func (newID) write(w *writer) { w.add("newid()") }

func (n *lookup) write(w *writer) {
	w.add("property(")
	n.name.write(w)
	w.add(")")
}

func (n *parameter) write(w *writer) { w.add("@", n.name) }

func (n *property) write(w *writer) {
	switch {
	case n.system != 0:
		w.add("sys.", n.system.String())
	case regularLength(n.name) == len(n.name) && !keywords[fold(n.name)]:
		w.add(n.name)
	default:
		w.add("[", strings.ReplaceAll(n.name, "]", "]]"), "]")
	}
}

func (n *constant) write(w *writer) {
	switch n.value.kind {
	case kindText:
		w.add("'", strings.ReplaceAll(n.value.text, "'", "''"), "'")
	case kindBool:
		w.add(truthOf(n.value.bits != 0).String())
	case kindInteger:
		w.add(strconv.FormatInt(n.value.int(), 10))
	case kindDouble:
		w.add(formatDouble(n.value.float()))
	default:
		w.add("NULL")
	}
}

// formatDouble writes a double so that it does not read as an integer.
func formatDouble(f float64) string {
	const least, most = 1e-6, 1e21 // as JSON does
	if abs := math.Abs(f); abs != 0 && (abs < least || abs >= most) {
		return strconv.FormatFloat(f, 'E', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
