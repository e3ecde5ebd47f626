package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completeVerb is the hidden verb that the scripts of the shells call. Its arguments are the words after "sidebus" up
// to the cursor, of which the last one may be empty. It prints one candidate a line.
const completeVerb = "__complete"

// fileMark is printed in place of candidates where the name of a file is expected.
const fileMark = ":file"

// complete prints the candidates for the last of words.
func complete(app *kong.Application, words []string, to io.Writer) {
	words = splitAssignments(words)
	last := ""
	if len(words) > 0 {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	c := &completion{node: app.Node}
	if len(words) > 0 && words[0] == "help" {
		words = words[1:]
	}
	for _, word := range words {
		c.step(word)
	}
	for _, candidate := range c.candidates(last) {
		if candidate == fileMark || strings.HasPrefix(candidate, last) {
			fmt.Fprintln(to, candidate) //nolint:errcheck // the shell is gone
		}
	}
}

// splitAssignments returns "--output=json" as two words. Bash passes it as three, with the equals sign alone.
func splitAssignments(words []string) []string {
	var split []string
	for _, word := range words {
		flag, value, isAssignment := strings.Cut(word, "=")
		switch {
		case word == "=":
		case isAssignment && strings.HasPrefix(flag, "--"):
			split = append(split, flag, value)
		default:
			split = append(split, word)
		}
	}
	if len(words) > 0 && words[len(words)-1] == "=" {
		split = append(split, "")
	}
	return split
}

// completion is how far the words of a command line lead.
type completion struct {
	node    *kong.Node
	pending *kong.Flag // whose value comes next
	taken   int        // positional arguments of the node
}

func (c *completion) step(word string) {
	switch {
	case c.pending != nil:
		c.pending = nil
	case strings.HasPrefix(word, "-") && word != "-":
		if flag := c.flag(word); flag != nil && !flag.IsBool() {
			c.pending = flag
		}
	default:
		if child := childOf(c.node, word); child != nil {
			c.node, c.taken = child, 0
			return
		}
		c.taken++
	}
}

func childOf(node *kong.Node, word string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == word || slices.Contains(child.Aliases, word) {
			return child
		}
	}
	return nil
}

func (c *completion) flag(word string) *kong.Flag {
	for _, flag := range c.flags() {
		if word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

// flags are those that the node takes.
func (c *completion) flags() []*kong.Flag {
	var all []*kong.Flag
	for _, group := range c.node.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

func (c *completion) candidates(last string) []string {
	switch {
	case c.pending != nil && strings.Contains(c.pending.PlaceHolder, "FILE"):
		return []string{fileMark}
	case c.pending != nil:
		return enumOf(c.pending.Value)
	case strings.HasPrefix(last, "-"):
		var names []string
		for _, flag := range c.flags() {
			names = append(names, "--"+flag.Name)
		}
		slices.Sort(names)
		return names
	}
	var names []string
	for _, child := range c.node.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	if len(names) == 0 && c.taken < len(c.node.Positional) {
		return enumOf(c.node.Positional[c.taken])
	}
	return names
}

func enumOf(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}
