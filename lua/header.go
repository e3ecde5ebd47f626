package lua

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// header is what the comment block at the top of a script declares, in this order:
//
//	-- name: what it does
//	-- Reads: ...  Writes: ...
//	-- Flags: allow-oom            (optional; no-writes or allow-oom)
//	--
//	-- KEYS[1] name  type  meaning  ([1..9] = nine of them, which the script passes on whole: the name is that of a
//	                                 group, perhaps with a prefix for each of its names: transfers_queue)
//	-- ARGV[1] name  type  meaning  ([2..] = this and all that follow; [2..?] = perhaps none)
//	--
//	-- Returns
//	--   STATUS  values
//	-- Cost: ...
type header struct {
	keys, args []Parameter
	flags      []string
	statuses   []string
}

func (h *header) has(flag string) bool { return slices.Contains(h.flags, flag) }

var (
	parameterLine = regexp.MustCompile(`^-- (KEYS|ARGV)\[(\d+)(\.\.(\d*|\?))?\] +(\S+)`)
	statusLine    = regexp.MustCompile(`^--   ([A-Z][A-Z_]+)(?:  | [a-z]|$)`)
	indexUse      = regexp.MustCompile(`\b(KEYS|ARGV)\[([^\]]*)\]`)
)

func parseHeader(name, source string) (*header, error) {
	h := &header{}
	var reads, returns, cost bool
	for i, line := range strings.Split(source, "\n") {
		if i == 0 && !strings.HasPrefix(line, "-- "+name+": ") {
			return nil, fmt.Errorf("line 1 must begin with %q", "-- "+name+": ")
		}
		if !strings.HasPrefix(line, "--") || strings.HasPrefix(line, includeMark) {
			break
		}
		if m := parameterLine.FindStringSubmatch(line); m != nil {
			if err := h.declare(m[1], m[2], m[3] != "", m[4], m[5]); err != nil {
				return nil, err
			}
		}
		if m := statusLine.FindStringSubmatch(line); m != nil && returns {
			h.statuses = append(h.statuses, m[1])
		}
		if flags, ok := strings.CutPrefix(line, "-- Flags: "); ok {
			h.flags = strings.Split(flags, ",")
		}
		reads = reads || strings.HasPrefix(line, "-- Reads: ") && strings.Contains(line, "Writes: ")
		returns = returns || line == "-- Returns"
		cost = cost || strings.HasPrefix(line, "-- Cost: ")
	}
	if !reads || !returns || !cost || len(h.keys) == 0 || !slices.Contains(h.statuses, "OK") {
		return nil, fmt.Errorf("header must have Reads and Writes, KEYS, Returns with OK, and Cost")
	}
	for _, flag := range h.flags {
		if flag != "no-writes" && flag != "allow-oom" {
			return nil, fmt.Errorf("unknown flag %q", flag)
		}
	}
	return h, nil
}

func (h *header) declare(kind, index string, many bool, last, name string) error {
	list := &h.keys
	if kind == "ARGV" {
		list = &h.args
	}
	if index != strconv.Itoa(len(*list)+1) {
		return fmt.Errorf("header declares %s[%s] after %d others", kind, index, len(*list))
	}
	if n := len(*list); n > 0 && (*list)[n-1].Repeats {
		return fmt.Errorf("header declares %s[%s] after a repeating one", kind, index)
	}
	if last == "" || last == "?" {
		*list = append(*list, Parameter{Name: name, Repeats: many, optional: last == "?"})
		return nil
	}
	to, err := strconv.Atoi(last)
	if err != nil || to <= len(*list) {
		return fmt.Errorf("header declares %s[%s..%s]", kind, index, last)
	}
	for len(*list) < to {
		*list = append(*list, Parameter{Name: name, together: true})
	}
	return nil
}

// keysMark begins a line that declares keys that a function takes as a list: the name of the group, then theirs. A
// group goes on in the next line that names it.
const keysMark = "--@keys "

// groupsOf returns the groups that a text declares.
func groupsOf(text string) map[string][]string {
	groups := map[string][]string{}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, keysMark); ok {
			names := strings.Fields(rest)
			groups[names[0]] = append(groups[names[0]], names[1:]...)
		}
	}
	return groups
}

// nameKeys names the keys that were declared as a group as the group does.
func (h *header) nameKeys(groups map[string][]string) error {
	for at := 0; at < len(h.keys); at++ {
		declared := h.keys[at]
		if !declared.together {
			continue
		}
		names, prefix := groups[declared.Name], ""
		for group := range groups {
			if before, ok := strings.CutSuffix(declared.Name, "_"+group); ok {
				names, prefix = groups[group], before+"_"
			}
		}
		for i, name := range names {
			if at+i >= len(h.keys) || h.keys[at+i].Name != declared.Name {
				return fmt.Errorf("KEYS[%d..] %s are not %d", at+1, declared.Name, len(names))
			}
			h.keys[at+i].Name = prefix + name
		}
		if at += len(names); len(names) == 0 || at < len(h.keys) && h.keys[at].Name == declared.Name {
			return fmt.Errorf("KEYS[%d] %s is in no group of keys", at+1, declared.Name)
		}
		at--
	}
	return nil
}

// checkUse compares the declared parameters with those the code indexes: each must be used and none besides. A
// repeating one, and the code that walks it with a variable, is exempt.
func checkUse(h *header, body string) error {
	used := map[string]bool{}
	for line := range strings.Lines(body) {
		code, _, _ := strings.Cut(line, "--")
		for _, m := range indexUse.FindAllStringSubmatch(code, -1) {
			if _, err := strconv.Atoi(m[2]); err == nil {
				used[m[1]+m[2]] = true
			} else if !lastRepeats(h, m[1]) {
				return fmt.Errorf("%s[%s] is indexed by a variable but nothing repeats", m[1], m[2])
			}
		}
	}
	for kind, list := range map[string][]Parameter{"KEYS": h.keys, "ARGV": h.args} {
		for i, p := range list {
			at := kind + strconv.Itoa(i+1)
			if !used[at] && !p.Repeats && !p.together {
				return fmt.Errorf("%s[%d] %s is declared and never used", kind, i+1, p.Name)
			}
			delete(used, at)
		}
	}
	for at := range used {
		return fmt.Errorf("%s is used and not declared", at)
	}
	return nil
}

func lastRepeats(h *header, kind string) bool {
	list := h.keys
	if kind == "ARGV" {
		list = h.args
	}
	return len(list) > 0 && list[len(list)-1].Repeats
}
