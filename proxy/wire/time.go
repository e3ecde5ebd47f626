package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/semantics"
)

// DurationOf translates a duration. One beyond time.Duration, 292 years, becomes the maximum, which is semantics.Never.
func DurationOf(field string, d *durationpb.Duration) (time.Duration, error) {
	const second = int32(time.Second)
	if n := d.GetNanos(); n <= -second || n >= second || (d.GetSeconds() > 0 && n < 0) ||
		(d.GetSeconds() < 0 && n > 0) {
		return 0, semantics.InvalidField(field, "is not a duration: nanos must have the sign of seconds and be less than a second")
	}
	return d.AsDuration(), nil
}

// InstantOf translates an instant, nil to the zero time. The first instant of the range, which is also the zero time,
// becomes the next instant that stores distinguish, so that it does not count as absent: a purge of older messages then
// removes nothing instead of everything.
func InstantOf(field string, at *timestamppb.Timestamp) (time.Time, error) {
	if at == nil {
		return time.Time{}, nil
	}
	if !at.IsValid() {
		return time.Time{}, semantics.InvalidField(field, "is not an instant in the years 1 to 9999")
	}
	first := time.Time{}.Add(time.Millisecond)
	if t := at.AsTime(); t.After(first) {
		return t, nil
	}
	return first, nil
}

// setTime sets to and returns it, nil for the zero time.
func setTime(to *timestamppb.Timestamp, at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	to.Seconds, to.Nanos = at.Unix(), int32(at.Nanosecond()) //nolint:gosec // less than a second
	return to
}

func setDuration(to *durationpb.Duration, d time.Duration) {
	to.Seconds, to.Nanos = int64(d/time.Second), int32(d%time.Second) //nolint:gosec // less than a second
}

// TimestampFrom is the opposite of InstantOf.
func TimestampFrom(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return setTime(&timestamppb.Timestamp{}, at)
}
