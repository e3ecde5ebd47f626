// Package grpcapi serves the services of sidebus.v1 by translating to and from broker.Broker. It knows no rule of its
// own: what it refuses is what cannot be translated. proxy/httpapi serves the same objects as JSON.
//
// Methods return a *semantics.Error; Register makes a gRPC status of it, proxy/httpapi an HTTP answer.
package grpcapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/semantics"
)

// fieldError is INVALID_ARGUMENT that names the field, in lowerCamelCase.
func fieldError(field, format string, args ...any) *semantics.Error {
	return semantics.Errorf(semantics.InvalidArgument, "%s %s", field, fmt.Sprintf(format, args...)).
		With(semantics.DetailField, field)
}

// refuseUnknown refuses a message with fields this version does not know. Ignoring them, as protobuf does, would break
// a promise the caller relies on, such as a delay.
func refuseUnknown(field string, m proto.Message) error {
	unknown := m.ProtoReflect().GetUnknown()
	if len(unknown) == 0 {
		return nil
	}
	return fieldError(
		field,
		"has fields that this sidecar does not know, with the numbers %s; upgrade the sidecar, or do not set them",
		fieldNumbers(unknown),
	)
}

// maxFieldNumbers is how many numbers of unknown fields an error names.
const maxFieldNumbers = 5

// fieldNumbers lists the numbers of encoded fields, each once.
func fieldNumbers(encoded protoreflect.RawFields) string {
	var numbers []string
	for len(encoded) > 0 {
		number, _, n := protowire.ConsumeField(encoded)
		if n < 0 {
			break
		}
		encoded = encoded[n:]
		text := strconv.Itoa(int(number))
		if slices.Contains(numbers, text) {
			continue
		}
		if len(numbers) == maxFieldNumbers {
			return strings.Join(numbers, ", ") + " and others"
		}
		numbers = append(numbers, text)
	}
	return strings.Join(numbers, ", ")
}

// duration translates a duration. More than time.Duration holds, 292 years, counts as that, which is semantics.Never.
func duration(field string, d *durationpb.Duration) (time.Duration, error) {
	const second = int32(time.Second)
	if n := d.GetNanos(); n <= -second || n >= second || (d.GetSeconds() > 0 && n < 0) ||
		(d.GetSeconds() < 0 && n > 0) {
		return 0, fieldError(field, "is not a duration: nanos must have the sign of seconds and be less than a second")
	}
	return d.AsDuration(), nil
}

// instant translates an instant, nil to the zero time. The first instant there is, which is the zero time too, is moved
// by what stores can tell apart, so that nobody takes it for absent: a purge of what is older removes nothing and not
// everything.
func instant(field string, at *timestamppb.Timestamp) (time.Time, error) {
	if at == nil {
		return time.Time{}, nil
	}
	if !at.IsValid() {
		return time.Time{}, fieldError(field, "is not an instant in the years 1 to 9999")
	}
	first := time.Time{}.Add(time.Millisecond)
	if t := at.AsTime(); t.After(first) {
		return t, nil
	}
	return first, nil
}
