package lua

import (
	"slices"
	"strings"
	"testing"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// globals are what Lua and Redis give to a script.
var globals = strings.Fields(`ARGV KEYS ipairs math pairs redis select string table tonumber tostring type unpack`)

// A name that nothing defines is nil, or an error of Redis in the branch that meets it. No branch has one.
func TestEveryNameIsDefined(t *testing.T) {
	t.Parallel()
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range scripts {
		for _, text := range []string{s.Text, s.Guarded().Text} {
			chunk, err := parse.Parse(strings.NewReader(strings.SplitN(text, "\n", 2)[1]), name)
			if err != nil {
				t.Fatal(err)
			}
			proto, err := glua.Compile(chunk, name)
			if err != nil {
				t.Fatal(err)
			}
			undefined(proto, func(global string) {
				if !slices.Contains(globals, global) {
					t.Errorf("%s uses %s, which nothing defines", name, global)
				}
			})
		}
	}
}

// undefined calls with for each global that a function or one inside it reads or writes.
func undefined(proto *glua.FunctionProto, with func(name string)) {
	for _, code := range proto.Code {
		switch int(code >> 26) {
		case glua.OP_GETGLOBAL, glua.OP_SETGLOBAL:
			with(proto.Constants[code&0x3ffff].String())
		}
	}
	for _, inner := range proto.FunctionPrototypes {
		undefined(inner, with)
	}
}
