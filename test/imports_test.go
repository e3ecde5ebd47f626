// Package test checks the repository as a whole: which package may import which, that what the README says works when
// pasted, that what deploy and examples hold fits the binary.
package test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sidebus/sidebus/"

// pkg is a package in the output of "go list".
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string // filled for our own packages by listPackages
}

// listPackages returns all packages of the module and all they need, by path.
func listPackages(t *testing.T) map[string]*pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", module+"...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	all := map[string]*pkg{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all[p.ImportPath] = &p
	}
}

// layer says what the packages under a path may need.
type layer struct {
	under  string   // path in the module; a trailing /... takes what lies below too
	ours   []string // packages of ours they may need, directly or not; nil: any
	theirs []string // modules of others they may import directly; nil: any
	never  []string // what they may not need, directly or not
}

var layers = []layer{
	{under: "semantics", ours: []string{}, theirs: []string{}},
	{under: "semantics/broker", ours: []string{"semantics", "semantics/broker/..."}, theirs: []string{}},
	{under: "semantics/broker/internal/loop", ours: []string{}, theirs: []string{}},
	{under: "semantics/broker/delivery", ours: []string{"semantics"}, theirs: []string{}},
	{under: "semantics/broker/reply", ours: []string{
		"semantics", "semantics/broker/delivery", "semantics/broker/internal/loop",
	}, theirs: []string{}},
	{under: "semantics/broker/stream", ours: []string{
		"semantics", "semantics/broker/delivery", "semantics/broker/internal/loop", "semantics/broker/stream/internal/account",
	}, theirs: []string{}},
	{under: "semantics/broker/stream/internal/account", ours: []string{
		"semantics", "semantics/broker/delivery", "semantics/broker/internal/loop",
	}, theirs: []string{}},
	{under: "semantics/memstore", ours: []string{"semantics"}, theirs: []string{}},
	{under: "semantics/partitioned", ours: []string{"semantics"}, theirs: []string{}},
	{under: "semantics/filter", ours: []string{"semantics"}, theirs: []string{}},
	{under: "semantics/nearest", ours: []string{}, theirs: []string{}},
	{under: "semantics/encoded", ours: []string{"semantics"}, theirs: []string{"google.golang.org/protobuf"}},
	{under: "lua", ours: []string{}, theirs: []string{}},
	{under: "semantics/sealed", ours: []string{"semantics"}, theirs: []string{}},
	{under: "redisstore/audit", ours: []string{"semantics", "semantics/sealed"}, theirs: []string{"github.com/redis/go-redis/v9"}},
	{under: "redisstore", ours: []string{"redisstore/audit", "semantics", "semantics/encoded", "semantics/sealed", "lua", "proto/sidebus/storage/..."}, theirs: []string{
		"github.com/redis/go-redis/v9", "google.golang.org/protobuf",
	}},
	{under: "proto/...", ours: []string{"proto/..."}, theirs: []string{
		"google.golang.org/protobuf", "google.golang.org/grpc", "google.golang.org/genproto", "github.com/grpc-ecosystem/grpc-gateway/v2",
	}},
	{under: "proxy/...", ours: []string{
		"semantics", "semantics/broker/...", "semantics/encoded", "semantics/filter", "semantics/nearest", "proto/...", "proxy/...",
	}, never: []string{"github.com/redis/go-redis"}},
	{under: "proxy/dapr/internal/inflight", ours: []string{"semantics", "semantics/broker/..."}},
	{under: "proxy/internal/admission/internal/counts", ours: []string{
		"proto/externalscaler", "proto/sidebus/v1", "proxy/access", "proxy/internal/obs", "proxy/internal/traces", "proxy/lograte",
		"proxy/wireerror", "semantics", "semantics/broker/...",
	}},
	{under: "proxy/amqp/internal/codec", ours: []string{}, theirs: []string{}},
	{under: "proxy/amqp/internal/frame", ours: []string{"proxy/amqp/internal/codec"}, theirs: []string{}},
	{under: "proxy/amqp/internal/engine", ours: []string{"proxy/amqp/internal/codec", "proxy/amqp/internal/frame"}, theirs: []string{}},
	{under: "proxy/amqp/internal/convert", ours: []string{"semantics", "proxy/amqp/internal/codec"}, theirs: []string{}},
	{under: "proxy/internal/traces", ours: []string{"semantics"}},
	{under: "proxy/wire", ours: []string{"semantics", "semantics/encoded", "proto/sidebus/v1"}},
	{under: "proxy/wirejson", ours: []string{"semantics", "semantics/nearest", "proto/sidebus/v1"}},
	{under: "proxy/sas", ours: []string{"semantics"}},
	{under: "proxy/resubmit", ours: []string{"proto/sidebus/v1"}},
	{under: "cmd/sidebus/internal/client", ours: []string{
		"semantics", "semantics/encoded", "semantics/filter", "proto/...", "proxy/wire", "proxy/wirejson", "cmd/sidebus/internal/duration", "semantics/nearest",
	}},
	{under: "examples/...", ours: []string{"proto/client", "proto/sidebus/v1", "examples/..."}, theirs: []string{
		"google.golang.org/protobuf", "google.golang.org/grpc",
	}, never: []string{"github.com/redis/go-redis"}},
}

// testOnly packages must never reach a user's binary.
var testOnly = []string{"semantics/storetest", "redisstore/redistest", "test/sidecartest", "test/apptest", "test/syncbuf", "test/lockrule", "test/filetest"}

func TestImportDirections(t *testing.T) {
	t.Parallel()
	all := listPackages(t)
	for _, l := range layers {
		found := false
		for path, p := range all {
			name, isOurs := strings.CutPrefix(path, module)
			if !isOurs || !matches(name, l.under) || isTestOnly(name) {
				continue
			}
			found = true
			l.check(t, all, name, p)
		}
		if !found {
			t.Errorf("no package under %s; has it moved?", l.under)
		}
	}
}

func (l layer) check(t *testing.T, all map[string]*pkg, name string, p *pkg) {
	t.Helper()
	for _, dep := range p.Deps {
		ours, isOurs := strings.CutPrefix(dep, module)
		if isOurs && l.ours != nil && !slices.ContainsFunc(l.ours, func(rule string) bool { return matches(ours, rule) }) {
			t.Errorf("%s needs %s; packages of ours it may need: %v", name, ours, l.ours)
		}
		for _, banned := range l.never {
			if strings.HasPrefix(dep, banned) {
				t.Errorf("%s needs %s, which it must not", name, dep)
			}
		}
	}
	for _, imported := range p.Imports {
		if l.theirs == nil || all[imported] == nil || all[imported].Standard || strings.HasPrefix(imported, module) {
			continue
		}
		if !slices.ContainsFunc(l.theirs, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") }) {
			t.Errorf("%s imports %s; modules it may import: %v", name, imported, l.theirs)
		}
	}
}

func TestOnlyCmdJoinsProxyAndStores(t *testing.T) {
	t.Parallel()
	for path, p := range listPackages(t) {
		name, isOurs := strings.CutPrefix(path, module)
		if !isOurs || strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "test/") {
			continue
		}
		if needs(p, "proxy") && (needs(p, "redisstore") || needs(p, "semantics/memstore")) {
			t.Errorf("%s joins the proxy with a store; only cmd may", name)
		}
	}
}

// daprPackages are what is used of Dapr: the generated code of components, and the SDK to call the runtime.
var daprPackages = []string{"github.com/dapr/dapr/pkg/proto/components/v1", "github.com/dapr/go-sdk/client"}

// daprRuntime is what must never be linked: Dapr's runtime, and the components of others.
var daprRuntime = []string{"github.com/dapr/dapr/pkg/runtime", "github.com/dapr/dapr/cmd", "github.com/dapr/components-contrib"}

func TestOnlyTheComponentKnowsDapr(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for path, p := range listPackages(t) {
		for _, banned := range daprRuntime {
			if strings.HasPrefix(path, banned) {
				t.Errorf("%s is needed; of %s nothing may be", path, banned)
			}
		}
		name, isOurs := strings.CutPrefix(path, module)
		for _, imported := range p.Imports {
			if !isOurs || !strings.HasPrefix(imported, "github.com/dapr/") {
				continue
			}
			used[imported] = true
			if name != "proxy/dapr" || !slices.Contains(daprPackages, imported) {
				t.Errorf("%s imports %s; only proxy/dapr may import anything of Dapr, and that is %v", name, imported, daprPackages)
			}
		}
	}
	for _, path := range daprPackages {
		if !used[path] {
			t.Errorf("nothing needs %s any more", path)
		}
	}
}

// commandLine are the packages of the command line, and ofWire what they may import of the proxy: the wire and what it asks for in steps, no server.
// To try a file of entities before a sidecar is asked, package inprocess calls the gRPC handlers on a store in memory.
// These handlers, and what they need, are all that the command line may need of a server, directly or not: nothing of it
// listens.
var (
	commandLine = []string{
		"cmd/sidebus/internal/cli", "cmd/sidebus/internal/client", "cmd/sidebus/internal/duration",
		"cmd/sidebus/internal/entities", "semantics/nearest", "cmd/sidebus/internal/settings",
		"cmd/sidebus/internal/terminal", "cmd/sidebus/internal/verbs", "cmd/sidebus/internal/version",
		"cmd/sidebus/internal/yamlfile",
	}
	ofWire    = []string{"proxy/wire", "proxy/wirejson", "proxy/sas", "proxy/resubmit"}
	inprocess = "cmd/sidebus/internal/inprocess"
	handlers  = "proxy/grpcapi"
)

func TestCommandLineNeedsNoServer(t *testing.T) {
	t.Parallel()
	all := listPackages(t)
	if all[module+handlers] == nil {
		t.Fatalf("no package %s; has it moved?", handlers)
	}
	for _, name := range append([]string{inprocess}, commandLine...) {
		p := all[module+name]
		if p == nil {
			t.Errorf("no package %s; has it moved?", name)
			continue
		}
		for _, imported := range p.Imports {
			ours, isOurs := strings.CutPrefix(imported, module)
			if isOurs && name != inprocess && matches(ours, "proxy/...") && !slices.Contains(ofWire, ours) {
				t.Errorf("%s imports %s; of the proxy it may import %v", name, ours, ofWire)
			}
		}
		for _, dep := range p.Deps {
			ours, isOurs := strings.CutPrefix(dep, module)
			if !isOurs || slices.Contains(ofWire, ours) || ours == handlers || needs(all[module+handlers], ours) {
				continue
			}
			if matches(ours, "proxy/...") || ours == "redisstore" {
				t.Errorf("%s needs %s; of the proxy it may need %v, %s and what that needs", name, ours, ofWire, handlers)
			}
		}
	}
}

func TestTestPackagesStayInTests(t *testing.T) {
	t.Parallel()
	for path, p := range listPackages(t) {
		name, isOurs := strings.CutPrefix(path, module)
		if !isOurs || isTestOnly(name) || strings.HasPrefix(name, "test/") {
			continue
		}
		for _, banned := range append([]string{"testing"}, testOnly...) {
			if needs(p, banned) || slices.Contains(p.Deps, banned) {
				t.Errorf("%s needs %s outside its tests", name, banned)
			}
		}
	}
}

func needs(p *pkg, name string) bool { return slices.Contains(p.Deps, module+name) }

func isTestOnly(name string) bool { return slices.Contains(testOnly, name) }

// matches compares a path in the module with a rule; "a/..." means a and all below.
func matches(name, rule string) bool {
	above, deep := strings.CutSuffix(rule, "/...")
	return name == above || deep && strings.HasPrefix(name, above+"/")
}
