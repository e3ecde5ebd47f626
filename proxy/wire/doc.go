// Package wire converts between the messages of sidebus.v1 and the types of semantics. Servers and the command line use
// it. A function named ...Of reads what came over the wire, one named ...From is its opposite. It refuses only what
// cannot be translated, with INVALID_ARGUMENT; the rules are the Broker's to check.
package wire

import "github.com/sidebus/sidebus/semantics"

// fieldError is INVALID_ARGUMENT that names the field, in lowerCamelCase.
func fieldError(field, format string, args ...any) *semantics.Error {
	return semantics.FieldError(semantics.InvalidArgument, field, format, args...)
}
