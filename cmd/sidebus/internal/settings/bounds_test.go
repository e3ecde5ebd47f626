package settings

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestEveryNumberHasBounds(t *testing.T) {
	t.Parallel()
	bounds := (&Settings{}).bounds()
	fields := reflect.TypeFor[Settings]()
	for i := range fields.NumField() {
		field := fields.Field(i)
		name, help := field.Tag.Get("name"), field.Tag.Get("help")
		switch field.Type.Kind() {
		case reflect.Int, reflect.Int64, reflect.Float64: // durations too
		default:
			continue
		}
		if name == "max-entities" {
			continue
		}
		if !slices.ContainsFunc(bounds, func(b bound) bool { return b.flag == name }) {
			t.Errorf("--%s has no bounds", name)
		}
		if span := "${span_" + strings.ReplaceAll(name, "-", "_") + "}"; !strings.Contains(help, span) {
			t.Errorf("the help of --%s is %q, want %s in it", name, help, span)
		}
	}
}
