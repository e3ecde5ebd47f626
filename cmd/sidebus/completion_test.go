package main

import (
	"os"
	"os/exec"
	"path/filepath"
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

// The other shells are asked for the syntax if they are there.
func TestCompletionScriptsAreValid(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		_, script := sidecartest.Run(t, "completion", shell)
		if !strings.Contains(script, "sidebus") || !strings.Contains(script, "__complete") {
			t.Errorf("%s: got %s", shell, script)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed", shell)
			continue
		}
		check := exec.Command(path, "-n")
		check.Stdin = strings.NewReader(script)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}
