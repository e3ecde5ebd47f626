package test

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// dockerfile gives the instructions of deploy/Dockerfile in order.
func dockerfile(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// argument gives what follows the last instruction that begins with prefix.
func argument(t *testing.T, lines []string, prefix string) string {
	t.Helper()
	found := ""
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			found = strings.TrimSpace(rest)
		}
	}
	if found == "" {
		t.Fatalf("deploy/Dockerfile has no %q", prefix)
	}
	return found
}

func TestImageBinaryIsStatic(t *testing.T) {
	t.Parallel()
	const target = "/out/sidebus"
	build := argument(t, dockerfile(t), "RUN CGO_ENABLED")
	binary := filepath.Join(t.TempDir(), "sidebus")
	if strings.Count(build, target) != 1 {
		t.Fatalf("the build command must write %s once: %s", target, build)
	}
	command := exec.Command("sh", "-c", "CGO_ENABLED"+strings.Replace(build, target, binary, 1))
	command.Dir = ".."
	command.Env = append(os.Environ(), "VERSION=v1.2.3-test", "TARGETOS=linux", "TARGETARCH=amd64")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary has a %s segment, so it is not static", segment.Type)
		}
	}
	data, err := os.ReadFile(binary)
	if err != nil || !strings.Contains(string(data), "v1.2.3-test") {
		t.Errorf("the binary does not carry its version (%v)", err)
	}
}

func TestImageRunsWithoutRootAndShell(t *testing.T) {
	t.Parallel()
	lines := dockerfile(t)
	user := argument(t, lines, "USER ")
	if !regexp.MustCompile(`^[1-9][0-9]*(:[1-9][0-9]*)?$`).MatchString(user) {
		t.Errorf("USER %s: want numbers other than 0", user)
	}
	base := argument(t, lines, "FROM ")
	if base != "scratch" && !strings.Contains(base, "distroless/static") {
		t.Errorf("the last stage is built on %s, want scratch or distroless/static", base)
	}
	entry := words(t, argument(t, lines, "ENTRYPOINT "))
	if len(entry) != 1 {
		t.Fatalf("ENTRYPOINT: got %v, want the binary alone", entry)
	}
	if start := words(t, argument(t, lines, "CMD ")); len(start) == 0 || !hasVerb(t, start...) {
		t.Errorf("CMD %v is no command line of the binary", start)
	}
	health := argument(t, lines, "HEALTHCHECK ")
	check := words(t, health[strings.Index(health, "["):])
	if check[0] != entry[0] || !hasVerb(t, check[1:]...) {
		t.Errorf("HEALTHCHECK %v is no command line of the binary", check)
	}
}

// words reads the exec form of an instruction; the shell form would need a shell.
func words(t *testing.T, text string) []string {
	t.Helper()
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%s is not in exec form: %v", text, err)
	}
	return list
}

// hasVerb reports whether the binary knows a verb with these flags: it asks for their help.
func hasVerb(t *testing.T, args ...string) bool {
	t.Helper()
	code, _ := sidecartest.Run(t, append(args, "--help")...)
	return code == 0
}
