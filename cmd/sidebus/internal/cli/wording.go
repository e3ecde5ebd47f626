package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// rewordings turn texts of the parser into those of this project: where a value stands if not on the command line,
// the name, the value, what is permitted.
var rewordings = []struct {
	parser *regexp.Regexp
	ours   string
}{
	{regexp.MustCompile(`^expected "(<[^"]*)"$`), `missing argument $1`},
	{regexp.MustCompile(`^expected one of (.*)$`), `missing command, one of $1`},
	{regexp.MustCompile(`^(--\S+): expected \S+ value but got "EOL".*$`), `$1 has no value`},
	{regexp.MustCompile(`expected a valid \d+ bit u?int but got (".*")$`), `is $1, must be a whole number`},
	{regexp.MustCompile(`expected a float but got (".*") \(string\)$`), `is $1, must be a number`},
	{regexp.MustCompile(`bool value must be true, .* or no but got (".*")$`), `is $1, must be true or false`},
	{regexp.MustCompile(`^(--\S+): (.+: )?(?:[a-z][a-z.-]* )?(is ".*)$`), `$2$1 $3`},
}

// oneOf is the parser's text for a value that is not one of its words, which it lists in quotes.
var oneOf = regexp.MustCompile(`^(\S+) must be one of (.+) but got (".*")$`)

// letterFlag is the parser's text for an unknown flag of one letter.
var letterFlag = regexp.MustCompile(`^(unknown flag -\w), did you mean`)

// reword returns the text of a command line that does not parse.
func reword(failed *kong.ParseError) string {
	text := failed.Error()
	if rest, ok := strings.CutPrefix(text, "unexpected argument "); ok && expectsCommand(failed) {
		word, hint, _ := strings.Cut(rest, ", did you mean ")
		text = fmt.Sprintf("there is no command %q", word)
		if hint != "" {
			text += "; did you mean " + hint
		}
		return text
	}
	if match := oneOf.FindStringSubmatch(text); match != nil {
		words := strings.ReplaceAll(strings.ReplaceAll(match[2], `"`, ""), ",", ", ")
		return fmt.Sprintf("%s is %s, must be one of %s", match[1], match[3], words)
	}
	if match := letterFlag.FindStringSubmatch(text); match != nil { // the hint is any other letter
		return match[1]
	}
	for _, r := range rewordings {
		text = r.parser.ReplaceAllString(text, r.ours)
	}
	return text
}

// commandOf returns the command that a command line names as far as it parses, nil for none.
func commandOf(failed *kong.ParseError) *kong.Node {
	var command *kong.Node
	for _, step := range failed.Context.Path {
		if step.Command != nil {
			command = step.Command
		}
	}
	return command
}

// expectsCommand reports whether the next word had to be the name of a command.
func expectsCommand(failed *kong.ParseError) bool {
	command := commandOf(failed)
	return command == nil || len(command.Children) > 0
}

// advice is what to do next about a command line that does not parse.
func advice(failed *kong.ParseError) string {
	command := commandOf(failed)
	switch {
	case command != nil && expectsCommand(failed):
		return fmt.Sprintf(`Run "%s --help" for its commands.`, pathOf(command))
	case command != nil:
		return fmt.Sprintf(`Run "%s --help" for arguments and flags.`, pathOf(command))
	case strings.HasPrefix(failed.Error(), "unknown flag"):
		return `Flags follow the command: "sidebus COMMAND --flag". Run "sidebus --help" for the commands.`
	default:
		return `Run "sidebus --help" for the commands and "sidebus COMMAND --help" for their flags.`
	}
}

// pathOf returns a command as it is typed, without its aliases.
func pathOf(n *kong.Node) string {
	if n.Parent == nil {
		return n.Name
	}
	return pathOf(n.Parent) + " " + n.Name
}

// explain returns the help of an argument or a flag. The parser shows a default only in place of a placeholder.
func explain(v *kong.Value) string {
	if v.Flag == nil || v.Tag.PlaceHolder == "" || v.Default == "" {
		return kong.DefaultHelpValueFormatter(v)
	}
	with := *v
	with.Help += " Default: " + v.Default + "."
	return kong.DefaultHelpValueFormatter(&with)
}
