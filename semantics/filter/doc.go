// Package filter decides which messages a subscription's SQL rule selects (spec section 12.4, SQL-1 to SQL-18).
//
// Parse turns a text into a Filter and refuses everything that can be known to be wrong without a message. Matches
// asks the Filter about one message, seen through Properties; View is Properties over a semantics message. The body is
// out of reach (RULE-5).
//
// # Three values
//
// A condition is true, false or unknown; a message is selected on true only. A missing property, null and operands
// of unlike types make a condition unknown, never an error. What is an error is arithmetic without a result: an
// integer divided by zero, a number, instant or joined text beyond its bounds (RULE-8). AND, OR and IN go from left
// to right and stop when the result is certain, so "n <> 0 AND 10 / n > 2" never divides by zero.
//
// # Numbers
//
// All integer types are one, compared and calculated exactly; results must fit int64, or uint64 where an operand is
// beyond int64 already. An integer against a double compares exactly too, without rounding the integer. A decimal
// compares exactly with integers and decimals; against a double, and in arithmetic, it counts as the double nearest
// to it, so that a decimal 0.1 equals the constant 0.1. A 32-bit float 0.1 does not: it is another number. NaN equals
// nothing, itself included, as in IEEE 754.
//
// # Other types
//
// A char is a text of one character and a uri is a text. Texts compare by code point. An instant compares with an instant
// or an ISO text: a date, or date and time with or without offset, UTC where there is none. Bytes compare with
// nothing.
//
// # Layers
//
// lexer.go cuts text into tokens, parser.go and parser_value.go make a tree of nodes: a node is a condition with a truth
// (condition.go) or a value (value.go). operand.go, compare.go, arithmetic.go and like.go know values and no tree.
// Rule actions will use the same lexer, parser and nodes under ACTION_INVALID.
package filter
