package settings

import (
	"fmt"
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
)

// Durations lets all flags read durations as the API does, and also with days.
func Durations() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[time.Duration](), durationMapper{})
}

// durationMapper reads the value of a flag.
type durationMapper struct{}

// Decode reads the value of a flag.
func (durationMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := duration.Parse(text)
	if err != nil {
		return fmt.Errorf("%s %w", ctx.Value.Name, err)
	}
	target.Set(reflect.ValueOf(d))
	return nil
}
