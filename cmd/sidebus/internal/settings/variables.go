package settings

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sidebus/sidebus/semantics/nearest"
)

const variablePrefix = "SIDEBUS_"

// foreign are variables with our prefix that are not settings: those that Kubernetes sets for a Service named sidebus,
// and those of tests and examples.
var foreign = regexp.MustCompile(
	`^SIDEBUS_(?:(?:\w+_)?(?:SERVICE_(?:HOST|PORT\w*)|PORT(?:_\w+)?)|TEST\w*|BENCH\w*|EXAMPLE\w*|HTTP|GRPC|ADMIN|URL)$`,
)

// UnknownVariables returns a warning for each variable of the environment that looks like a setting and is not one.
func UnknownVariables(app *kong.Application) []string {
	known := []string{PasswordVariable, SASKeyVariable}
	known = append(known, variablesOf(reflect.TypeFor[Settings]())...)
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error { // it fails only if next does
		if flag, ok := node.(*kong.Flag); ok {
			known = append(known, flag.Envs...)
		}
		return next(nil)
	})
	var warnings []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, variablePrefix) || slices.Contains(known, name) || foreign.MatchString(name) {
			continue
		}
		text := "the variable " + name + " is not a setting and is ignored"
		if meant := nearest.Of(name, known); meant != "" {
			text += "; did you mean " + meant + "?"
		}
		warnings = append(warnings, text)
	}
	slices.Sort(warnings)
	return warnings
}

func variablesOf(fields reflect.Type) []string {
	var names []string
	for i := range fields.NumField() {
		field := fields.Field(i)
		if field.Anonymous {
			names = append(names, variablesOf(field.Type)...)
		} else if name := field.Tag.Get("env"); name != "" {
			names = append(names, name)
		}
	}
	return names
}
