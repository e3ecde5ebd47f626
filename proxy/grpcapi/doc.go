// Package grpcapi serves the services of sidebus.v1 by translating to and from broker.Broker. It knows no rule of its
// own: what it refuses is what cannot be translated. proxy/httpapi serves the same objects as JSON.
//
// Methods return a *semantics.Error; Register makes a gRPC status of it, proxy/httpapi an HTTP answer.
package grpcapi

import "github.com/sidebus/sidebus/semantics"

// fieldError is INVALID_ARGUMENT that names the field, in lowerCamelCase.
func fieldError(field, format string, args ...any) *semantics.Error {
	return semantics.FieldError(semantics.InvalidArgument, field, format, args...)
}
