// Package lua holds the scripts that keep Sidebus' promises inside Redis: one file for each operation, and the
// functions they share in lib, in folders by noun. It turns each script into the exact text Redis gets and knows what
// its header declares. It does not talk to Redis.
package lua

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

//go:embed *.lua guard/*.lua lib/*/*.lua
var files embed.FS

// Script is one operation, ready to be sent to Redis. It is immutable.
type Script struct {
	// Name is the operation, which is the file name without its ending.
	Name string
	// Text is what Redis gets: the flags line, the included functions, then the file, with every line of both kept.
	Text string
	// Keys and Args are the declared parameters in order. A last one that repeats stands for any number, at least one
	// unless its header says otherwise.
	Keys, Args []Parameter
	// ReadOnly scripts write nothing and may run on a replica.
	ReadOnly bool
	// Statuses are the words a reply may begin with.
	Statuses []string
	// Groups are the names of keys that the script or a function it includes takes as a list, by the name of the list.
	Groups map[string][]string
}

// Parameter is one KEYS or ARGV of a script as its header declares it.
type Parameter struct {
	Name    string
	Repeats bool

	together bool // one of several that the script passes on whole
	optional bool // of one that repeats: there may be none
}

// Accepts reports whether the script takes that many keys and arguments.
func (s *Script) Accepts(keys, args int) bool {
	return countFits(s.Keys, keys) && countFits(s.Args, args)
}

func countFits(declared []Parameter, n int) bool {
	if len(declared) == 0 || !declared[len(declared)-1].Repeats {
		return n == len(declared)
	}
	if declared[len(declared)-1].optional {
		n++
	}
	return n >= len(declared)
}

// HasStatus reports whether the script declares the status word.
func (s *Script) HasStatus(word string) bool {
	for _, declared := range s.Statuses {
		if declared == word {
			return true
		}
	}
	return false
}

// Scripts returns all operations by name. It fails when a file breaks a rule of this package: header missing or out of
// step with use, unknown or circular include. The scripts are fixed at build time, so a build that passes its tests
// never fails here. It is always the same map, made once, which no caller may change.
func Scripts() (map[string]*Script, error) { return scripts() }

var scripts = sync.OnceValues(loadAll)

func loadAll() (map[string]*Script, error) {
	names, err := fs.Glob(files, "*.lua")
	if err != nil {
		return nil, fmt.Errorf("lua: list scripts: %w", err)
	}
	scripts := make(map[string]*Script, len(names))
	for _, file := range names {
		name := strings.TrimSuffix(file, ".lua")
		script, err := load(files, name)
		if err != nil {
			return nil, fmt.Errorf("lua: %s: %w", file, err)
		}
		scripts[name] = script
	}
	if _, err := readGuard(); err != nil {
		return nil, fmt.Errorf("lua: guard: %w", err)
	}
	scripts["transact_settling"] = scripts["transact"].drains("transact_settling")
	for _, name := range []string{"register_name", "create_entity", "create_subscription", "update_entity"} {
		scripts[name+InPartition] = scripts[name].drains(name + InPartition)
	}
	return scripts, nil
}

// InPartition is behind the name of a script that lets a partition follow a change of its record or definition. A full
// Redis runs it, because it refuses the change itself, and because a partition that did not follow refuses calls that
// take messages out.
const InPartition = "_in_partition"

// drains returns the same script by another name, for calls that a full Redis must run.
func (s *Script) drains(name string) *Script {
	same := *s
	same.Name, same.Text = name, "#!lua flags=allow-oom\n"+strings.TrimPrefix(s.Text, "#!lua\n")
	return &same
}

// OtherHistory is what a guarded script answers if a partition is to be compared with its record.
const OtherHistory = "OTHER_HISTORY"

// Guarded returns the script for a partition of a cluster: it answers OtherHistory, and does nothing, unless the
// partition was compared with its record in the present history of the server. One more key is its entity, behind all
// others.
func (s *Script) Guarded() *Script {
	same := *s
	guard, _ := readGuard() // Scripts has read it
	flags, body, _ := strings.Cut(s.Text, "\n")
	same.Text = flags + "\n" + guard + body
	same.Statuses = append(slices.Clone(s.Statuses), OtherHistory)
	return &same
}

var readGuard = sync.OnceValues(func() (string, error) {
	source, err := fs.ReadFile(files, "guard/guard.lua")
	if err != nil {
		return "", err
	}
	return flatten(files, string(source))
})

func load(from fs.FS, name string) (*Script, error) {
	source, err := fs.ReadFile(from, name+".lua")
	if err != nil {
		return nil, err
	}
	header, err := parseHeader(name, string(source))
	if err != nil {
		return nil, err
	}
	body, err := flatten(from, string(source))
	if err != nil {
		return nil, err
	}
	if err := checkUse(header, body); err != nil {
		return nil, err
	}
	first := "#!lua\n"
	if len(header.flags) > 0 {
		first = "#!lua flags=" + strings.Join(header.flags, ",") + "\n"
	}
	text := first + body
	groups := groupsOf(text) // whose names are parts of the text: those of body would keep it in memory too
	if err := header.nameKeys(groups); err != nil {
		return nil, err
	}
	return &Script{
		Name: name, Text: text, Keys: header.keys, Args: header.args, Statuses: header.statuses,
		Groups: groups, ReadOnly: header.has("no-writes"),
	}, nil
}
