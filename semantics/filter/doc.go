// Package filter decides which messages a subscription's rule selects, and what the rule's action makes of its copies
// (spec sections 12.2 to 12.5).
//
// Compile turns a whole rule into a semantics.CompiledRule; Explain shows step by step what a rule does with a message,
// and why. Below them, Parse turns an SQL text into a Filter, CompileCorrelation the fields of a correlation filter
// into a Correlation, ParseAction an SQL text into an Action. All of them refuse what can be known to be wrong without
// a message (RULE-7). A Filter sees a message through Properties; View is Properties over a semantics message. The body
// is out of reach (RULE-5).
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
// A char is a text of one character and a uri is a text. Texts compare by code point. An instant compares with an
// instant or an ISO text: a date, or date and time with or without offset, UTC where there is none. Bytes compare with
// nothing.
//
// # Correlation
//
// A correlation filter compares kinds as above, but more strictly: a text is never a uuid or a datetime, and null
// equals null. Since it is equality only it costs a fraction of an SQL filter, and nothing is allocated.
//
// # Actions
//
// An action works on a draft of the message, one statement after the other, each seeing what those before it did. What
// SET puts into a property that exists is converted to its type without loss, else the action fails (ACT-5); a new
// property gets the type of the expression, and exactly that of the property or parameter that is the whole expression.
// Of system properties, a listed one that is unset is null also in actions, so setting something to it clears; ACT-6
// fails an action for a name that is not listed. A time to live is a timespan or a text like "30s"; a number has no
// unit and fails.
//
// # Layers
//
// lexer.go cuts text into tokens, parser.go, parser_value.go and parser_action.go make a tree of nodes: a node is a
// condition with a truth (condition.go), a value (value.go) or a statement (statement.go). operand.go, compare.go,
// arithmetic.go, like.go, convert.go and duration.go know values and no tree. filter.go, correlation.go and action.go
// are what users write; rule.go puts them together, and explain.go, seen.go and explain_rule.go tell people about it.
package filter
