package cli

import (
	"regexp"
)

// Rewriter is a grammar that accepts forms of its command lines that the parser does not know.
type Rewriter interface {
	Rewrite(args []string) []string
}

// rewrite turns "help VERB" into "VERB --help", lets a value be a negative number, and applies the forms of the
// grammar.
func rewrite(grammar any, args []string) []string {
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:len(args):len(args)], "--help")
	}
	args = joinNegatives(args)
	if r, ok := grammar.(Rewriter); ok {
		args = r.Rewrite(args)
	}
	return args
}

var (
	negative  = regexp.MustCompile(`^-\d`)
	longFlag  = regexp.MustCompile(`^--[a-z][a-z.-]*$`)
	shortFlag = regexp.MustCompile(`^-[a-z]$`)
)

// joinNegatives writes "--max -1" as "--max=-1", because the parser takes "-1" for a flag. A verb can then name the
// bound.
func joinNegatives(args []string) []string {
	var joined []string
	for i, arg := range args {
		if arg == "--" {
			return append(joined, args[i:]...)
		}
		last := len(joined) - 1
		switch {
		case last >= 0 && negative.MatchString(arg) && longFlag.MatchString(joined[last]):
			joined[last] += "=" + arg
		case last >= 0 && negative.MatchString(arg) && shortFlag.MatchString(joined[last]):
			joined[last] += arg
		default:
			joined = append(joined, arg)
		}
	}
	return joined
}
