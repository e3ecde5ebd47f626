package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// bash runs a script in a bash that has sidebus on its path.
func bash(t *testing.T, script string) string {
	t.Helper()
	command := exec.Command("bash", "--norc", "-c", script)
	command.Dir = t.TempDir()
	command.Env = append(sidecartest.Environment(), "PATH="+filepath.Dir(sidecartest.Binary(t))+":"+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestCompletionOfBash(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"sidebus rec":                       "receive",
		"sidebus dlq ":                      "list count resubmit edit delete",
		"sidebus help dlq re":               "resubmit",
		"sidebus entity ls --pre":           "--prefix",
		"sidebus peek orders --state sch":   "scheduled",
		"sidebus stats --output j":          "json",
		"sidebus stats --output=j":          "json",
		"sidebus stats -o t":                "table",
		"sidebus completion f":              "fish",
		"sidebus serve --redis-tls-ca":      "--redis-tls-ca-file",
		"sidebus send orders --file entit":  "entities.yaml",
		"sidebus send orders --file=entit":  "entities.yaml",
		"sidebus send orders --file=":       "entities.yaml",
		"sidebus send orders ":              "",
		"sidebus send orders hello --subje": "--subject",
		"sidebus session state s":           "set",
	} {
		script := `touch entities.yaml; source <(sidebus completion bash)
			COMP_LINE='` + line + `'; COMP_POINT=${#COMP_LINE}
			COMP_WORDS=(` + strings.ReplaceAll(line, "=", " = ") + `)
			[ "${COMP_LINE: -1}" = " " ] && COMP_WORDS+=("")
			COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
			_sidebus; echo "${COMPREPLY[*]}"; complete -p sidebus`
		if got := bash(t, script); got != want+"\ncomplete -F _sidebus sidebus\n" {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// Only bash is certain to be there. What the scripts of the others must have is checked as text: they ask sidebus for
// candidates with the words up to the cursor, know its mark for files, and every block is closed.
func TestCompletionScriptsOfOtherShells(t *testing.T) {
	t.Parallel()
	_, mark := sidecartest.Run(t, "__complete", "send", "orders", "--file", "")
	for shell, want := range map[string]struct {
		pieces           []string
		opening, closing string // first words of lines that open and close a block
	}{
		"zsh": {
			[]string{"#compdef sidebus\n", `"${words[1]}" __complete "${(@)words[2,CURRENT]}"`, "compset -P '*='", "compdef _sidebus sidebus"},
			"_sidebus() { if", "} fi",
		},
		"fish": {
			[]string{"(commandline -opc) $current", "$words[1] __complete $words[2..-1]", "complete -c sidebus -f -a '(__sidebus_complete)'\n"},
			"function if for", "end",
		},
	} {
		_, script := sidecartest.Run(t, "completion", shell)
		for _, piece := range append(want.pieces, `"`+strings.TrimSpace(mark)+`"`) {
			if !strings.Contains(script, piece) {
				t.Errorf("%s: it does not contain %s", shell, piece)
			}
		}
		depth := 0
		for line := range strings.Lines(script) {
			code, _, _ := strings.Cut(line, " #")
			if strings.Count(code, `"`)%2 != 0 || strings.Count(code, "'")%2 != 0 ||
				strings.Count(code, "(") != strings.Count(code, ")") {
				t.Errorf("%s: a quote or a parenthesis is not closed: %s", shell, line)
			}
			switch word, _, _ := strings.Cut(strings.TrimSpace(code), " "); {
			case word == "":
			case slices.Contains(strings.Fields(want.opening), word):
				depth++
			case slices.Contains(strings.Fields(want.closing), word):
				depth--
			}
		}
		if depth != 0 {
			t.Errorf("%s: %d blocks are not closed", shell, depth)
		}
	}
}
