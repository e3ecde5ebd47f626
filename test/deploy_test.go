package test

import (
	"debug/elf"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// dockerfile returns the instructions of deploy/Dockerfile in order.
func dockerfile(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
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

// stages returns the instructions of each image that the Dockerfile builds, by name.
func stages(t *testing.T) map[string][]string {
	t.Helper()
	all, name := map[string][]string{}, ""
	for _, line := range dockerfile(t) {
		if strings.HasPrefix(line, "FROM ") {
			_, name, _ = strings.Cut(line, " AS ")
		}
		all[name] = append(all[name], line)
	}
	return all
}

func TestImagesRunWithoutRoot(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sidecar", "standalone"} {
		lines := stages(t)[name]
		user := argument(t, lines, "USER ")
		if !regexp.MustCompile(`^[1-9][0-9]*(:[1-9][0-9]*)?$`).MatchString(user) {
			t.Errorf("%s: USER %s: want numbers other than 0", name, user)
		}
		entry := words(t, argument(t, lines, "ENTRYPOINT "))
		if len(entry) != 1 {
			t.Fatalf("%s: ENTRYPOINT: got %v, want the binary alone", name, entry)
		}
		if start := words(t, argument(t, lines, "CMD ")); len(start) == 0 || !hasVerb(t, start...) {
			t.Errorf("%s: CMD %v is no command line of the binary", name, start)
		}
		health := argument(t, lines, "HEALTHCHECK ")
		check := words(t, health[strings.Index(health, "["):])
		if check[0] != entry[0] || !hasVerb(t, check[1:]...) {
			t.Errorf("%s: HEALTHCHECK %v is no command line of the binary", name, check)
		}
		for _, label := range []string{"title", "description", "source", "documentation", "licenses", "version", "revision", "created"} {
			if text := argument(t, lines, "LABEL "); !strings.Contains(text, "org.opencontainers.image."+label+"=") {
				t.Errorf("%s has no label %s: %s", name, label, text)
			}
		}
	}
	if base := argument(t, stages(t)["sidecar"], "FROM "); base != "scratch AS sidecar" {
		t.Errorf("the sidecar is built on %s, want scratch", base)
	}
}

// A build today and one in a year start from the same bases, and with the Go that go.mod asks for.
func TestImageBasesArePinned(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`^\S+:\d+\.\d+\.\d+@sha256:[0-9a-f]{64}$`)
	base := argument(t, dockerfile(t), "ARG BASE=")
	if !pinned.MatchString(base) {
		t.Errorf("the standalone image is built on %s, want a version and a digest", base)
	}
	own := map[string]bool{"scratch": true, "$BUILT": true, "$BASE": true}
	for name, lines := range stages(t) {
		if name == "" { // the arguments before the first stage
			continue
		}
		base := strings.Fields(strings.ReplaceAll(lines[0], "--platform=$BUILDPLATFORM", ""))[1]
		if !own[base] && !pinned.MatchString(base) {
			t.Errorf("%s is built on %s, want a version and a digest", name, base)
		}
	}
	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(readPage(t, "go.mod"))[1]
	if from := stages(t)["build"][0]; !strings.Contains(from, "golang:"+version+"@") {
		t.Errorf("%s: go.mod asks for %s", from, version)
	}
}

// environment returns the variables of an image as arguments of env.
func environment(t *testing.T, stage string) []string {
	t.Helper()
	var variables []string
	for _, line := range stages(t)[stage] {
		if rest, ok := strings.CutPrefix(line, "ENV "); ok {
			variables = append(variables, strings.Fields(rest)...)
		}
	}
	return variables
}

// "docker run" of the sidecar without a store fails, and says what to set.
func TestSidecarImageWithoutAStoreSaysWhatToSet(t *testing.T) {
	t.Parallel()
	command := exec.Command(sidecartest.Binary(t), words(t, argument(t, stages(t)["sidecar"], "CMD "))...)
	command.Dir = t.TempDir()
	command.Env = append(environment(t, "sidecar"), "PATH=/nowhere")
	out, err := command.CombinedOutput()
	if command.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "SIDEBUS_STORE") || !strings.Contains(string(out), "redis://") {
		t.Errorf("got %v\n%s", err, out)
	}
}

// "docker run" of the standalone image serves, on addresses that can be published.
func TestStandaloneImageServes(t *testing.T) {
	t.Parallel()
	var data string
	settings := map[string]string{}
	for _, variable := range environment(t, "standalone") {
		name, value, _ := strings.Cut(variable, "=")
		settings[name] = value
		if name == "SIDEBUS_DATA_DIR" {
			data = value
		}
	}
	if data == "" || argument(t, stages(t)["standalone"], "VOLUME ") != data {
		t.Errorf("the data is in %q, which is no volume", data)
	}
	if settings["SIDEBUS_HTTP_ADDR"] != "0.0.0.0:7420" || settings["SIDEBUS_GRPC_ADDR"] != "0.0.0.0:7421" || settings["SIDEBUS_ADMIN_ADDR"] != "" || settings["SIDEBUS_ALLOW_ANONYMOUS"] != "true" {
		t.Errorf("the addresses cannot be published, or the admin address can: %v", settings)
	}
	s := sidecartest.Start(t, "--http-addr", "0.0.0.0:0", "--allow-anonymous", "--data-dir", t.TempDir())
	_, port, err := net.SplitHostPort(s.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	s.HTTP = net.JoinHostPort("localhost", port) // as a client on the host of the container calls it
	s.Must(t, http.MethodPut, "/v1/queues/orders", `{}`)
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
