package test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// readPage returns the text of a page, by its path from the root.
func readPage(t *testing.T, page string) string {
	t.Helper()
	return readFile(t, filepath.Join("..", page))
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the fenced code blocks of a page that follow the mark directly.
func blocks(t *testing.T, page, mark string) []string {
	t.Helper()
	var found []string
	for _, match := range regexp.MustCompile("(?s)"+regexp.QuoteMeta(mark)+"\n(.*?)\n```").FindAllStringSubmatch(readPage(t, page), -1) {
		found = append(found, match[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s has no block after %q", page, mark)
	}
	return found
}

// shell runs a pasted session in bash, against s in place of the default port, and gives what it printed.
func shell(t *testing.T, s *sidecartest.Sidecar, script string) string {
	t.Helper()
	if !strings.Contains(script, "127.0.0.1:742") {
		t.Fatalf("the session does not use the default address:\n%s", script)
	}
	script = strings.NewReplacer("127.0.0.1:7420", s.HTTP, "127.0.0.1:7421", s.GRPC, "127.0.0.1:7422", s.Admin).Replace(script)
	command := exec.Command("bash", "-euo", "pipefail", "-c", script)
	command.Env = append(os.Environ(), "no_proxy=*")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\nprinted:\n%s", err, script, out)
	}
	return string(out)
}

func TestReadmeSessionWorksWhenPasted(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	sessions := blocks(t, "README.md", "<!-- runs -->\n```sh")
	if len(sessions) != 3 {
		t.Fatalf("the README has %d sessions, want 3", len(sessions))
	}
	printed := shell(t, s, sessions[0])
	for _, want := range []string{
		`"created":true`, `"messageId":"m-1"`, `"text":"hello"`, `"deadLetterReason":"NotAGreeting"`,
		`"deadLetterErrorDescription":"it does not greet"`, `"deadLetterMessageCount":"1"`,
	} {
		if !strings.Contains(strings.ReplaceAll(printed, `": `, `":`), want) {
			t.Errorf("the session did not print %s; it printed:\n%s", want, printed)
		}
	}
	if strings.Contains(printed, "LOCK_LOST") {
		t.Errorf("a settlement failed:\n%s", printed)
	}
	left := s.Must(t, http.MethodGet, "/v1/queues/greetings/runtime", "")
	if total := left.Body["totalMessageCount"]; total != "1" {
		t.Errorf("after the session the queue holds %v messages, want the dead letter alone: %s", total, left.Text)
	}
	printed = strings.ReplaceAll(shell(t, s, sessions[1]), `": `, `":`)
	for _, want := range []string{`"sessionId":"order-7"`, `"text":"pay"`, `"version":"`, `"availableCount":"1"`, `"stateSize":"4"`} {
		if !strings.Contains(printed, want) {
			t.Errorf("the session about sessions did not print %s; it printed:\n%s", want, printed)
		}
	}
	if strings.Contains(printed, "LOCK_LOST") || strings.Contains(printed, `"text":"ship"`) {
		t.Errorf("a settlement failed or two messages came:\n%s", printed)
	}
	printed = strings.ReplaceAll(shell(t, s, sessions[2]), `": `, `":`)
	if strings.Count(printed, `"created":true`) != 3 || strings.Count(printed, `"text":"a car"`) != 1 {
		t.Errorf("the session about topics did not make three entities and print one message:\n%s", printed)
	}
}

// apiPages are the pages of docs/api in the order a reader takes them.
var apiPages = []string{"queues", "topics", "rules", "send", "receive", "settle", "sessions", "request", "peek", "resubmit", "purge"}

// A reader comes from the README, with all that it has made.
func TestAPIPagesWorkWhenPasted(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	for _, session := range blocks(t, "README.md", "<!-- runs -->\n```sh") {
		shell(t, s, session)
	}
	for _, page := range apiPages {
		for _, session := range blocks(t, "docs/api/"+page+".md", "<!-- runs -->\n```sh") {
			printed := shell(t, s, session)
			if page == "settle" && strings.Count(printed, "MESSAGE_LOCK_LOST") != 1 {
				t.Errorf("%s: want one lost lock, the one announced; printed:\n%s", page, printed)
			}
			if page == "rules" && (strings.Count(printed, "FILTER_INVALID") != 1 || strings.Count(printed, `"option":"filter"`) != 1) {
				t.Errorf("%s: want one refused rule and one difference; printed:\n%s", page, printed)
			}
			if page == "request" && strings.Count(printed, `"text":"42"`) != 1 {
				t.Errorf("%s: want the reply; printed:\n%s", page, printed)
			}
		}
	}
}

func TestSessionsPageWorksWhenPasted(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	printed := strings.ReplaceAll(shell(t, s, blocks(t, "docs/sessions.md", "<!-- runs -->\n```sh")[0]), `": `, `":`)
	for want, times := range map[string]int{
		`"text":"packed"`: 1, `"text":"shipped"`: 1, `"sessionId":"parcel-2"`: 1, `"availableCount":"1"`: 1, `"availableCount":"2"`: 1,
	} {
		if n := strings.Count(printed, want); n != times {
			t.Errorf("the session printed %s %d times, want %d; it printed:\n%s", want, n, times, printed)
		}
	}
	if strings.Contains(printed, "LOCK_LOST") {
		t.Errorf("a settlement failed:\n%s", printed)
	}
}

func TestTopicsPageWorksWhenPasted(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	for _, session := range blocks(t, "README.md", "<!-- runs -->\n```sh") {
		shell(t, s, session)
	}
	printed := strings.ReplaceAll(shell(t, s, blocks(t, "docs/topics.md", "<!-- runs -->\n```sh")[0]), `": `, `":`)
	for want, times := range map[string]int{
		`"text":"two shirts"`: 2, `"text":"a car"`: 2, `"urgent":true`: 1, `"RuleName":"total"`: 1, `"subscriptionCount":"3"`: 1, `"totalMessageCount":"0"`: 1,
	} {
		if n := strings.Count(printed, want); n != times {
			t.Errorf("the session printed %s %d times, want %d; it printed:\n%s", want, n, times, printed)
		}
	}
	if strings.Contains(printed, "LOCK_LOST") {
		t.Errorf("a settlement failed:\n%s", printed)
	}
}

func TestForwardingPageWorksWhenPasted(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	sessions := blocks(t, "docs/forwarding.md", "<!-- runs -->\n```sh")
	printed := strings.ReplaceAll(shell(t, s, sessions[0]), `": `, `":`)
	for want, times := range map[string]int{
		`"created":true`: 4, `"text":"Hallo"`: 2, `"text":"Bonjour"`: 2, `"deadLetterSource":"work"`: 1, `"deadLetterReason":"NotFrench"`: 1,
		`"deadLetterReason":"TransferDestinationDisabled"`: 1, `"transferDeadLetterMessageCount":"1"`: 1, `"reason":"INVALID_OPERATION"`: 1,
	} {
		if n := strings.Count(printed, want); n != times {
			t.Errorf("the session printed %s %d times, want %d; it printed:\n%s", want, n, times, printed)
		}
	}
	if strings.Contains(printed, "LOCK_LOST") {
		t.Errorf("a settlement failed:\n%s", printed)
	}
	if printed := shell(t, s, sessions[1]); !strings.Contains(printed, "to whom it may concern") {
		t.Errorf("the unwanted message did not arrive:\n%s", printed)
	}
}

func TestTemporaryEntitiesPageWorksWhenPasted(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	printed := strings.ReplaceAll(shell(t, s, blocks(t, "docs/temporary-entities.md", "<!-- runs -->\n```sh")[0]), `": `, `":`)
	for want, times := range map[string]int{`"text":"42"`: 1, `"correlationId":"q-1"`: 1, `"autoDeleteOnIdle":"300s"`: 2, `"accessedAt":"`: 3} {
		if n := strings.Count(printed, want); n != times {
			t.Errorf("the session printed %s %d times, want %d; it printed:\n%s", want, n, times, printed)
		}
	}
}

// snippetHead makes the Go of the pages compile: the lines that docs/api/README.md says they share are its parameters.
const snippetHead = `package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

var _ = []any{client.New, sidebusv1.NewAdminClient, fmt.Println, time.Second, grpc.NewClient, insecure.NewCredentials, durationpb.New, status.Convert,
	fieldmaskpb.FieldMask{}.Paths, timestamppb.New, errdetails.ErrorInfo{}.Domain, errors.Is, io.EOF}
`

// goSetup finds what a page adds to the lines of docs/api/README.md that its Go examples share.
var goSetup = regexp.MustCompile("(?s)```go-setup\n(.*?)```")

// useAll returns Go lines, and uses of what they declare.
func useAll(lines string) string {
	for _, declared := range regexp.MustCompile(`(?m)^(\w+)(?:, err)? :=`).FindAllStringSubmatch(lines, -1) {
		lines += "\n_ = " + declared[1]
	}
	return lines
}

func TestGoSnippetsCompile(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	source.WriteString(snippetHead)
	add := func(parameters, body string) {
		fmt.Fprintf(&source, "\nvar _ = func(ctx context.Context, %s) error {\n%s\nreturn nil\n}\n", parameters, body)
	}
	for _, body := range blocks(t, "docs/client-go.md", "```go") {
		add("sidebus *client.Client, sender *client.Sender, message *client.Message, work func(context.Context, []byte) error", body)
	}
	setup := blocks(t, "docs/api/README.md", "```go-setup")[0]
	add("_ int", useAll(setup))
	pages := []string{"docs/sessions.md", "docs/topics.md", "docs/forwarding.md", "docs/api/streams.md", "docs/api/errors.md"}
	for _, page := range apiPages {
		pages = append(pages, "docs/api/"+page+".md")
	}
	for _, page := range pages {
		for _, more := range goSetup.FindAllStringSubmatch(readPage(t, page), -1) {
			add("_ int", useAll(setup+"\n"+more[1]))
		}
		for _, body := range blocks(t, page, "```go") {
			add("sidebus *client.Client, messages sidebusv1.MessagesClient, sessions sidebusv1.SessionsClient, admin sidebusv1.AdminClient, token string", body)
		}
	}
	source.WriteString("\nfunc main() {}\n")
	if out, err := exec.Command("go", "vet", "-copylocks=false", writeProgram(t, source.String())).CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

// writeProgram writes Go source to a file and gives its name.
func writeProgram(t *testing.T, source string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "snippets.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The README's program in Go comes after the session with curl, which has created the queue and left one dead letter.
func TestReadmeProgramRuns(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	shell(t, s, blocks(t, "README.md", "<!-- runs -->\n```sh")[0])
	program := strings.ReplaceAll(blocks(t, "README.md", "```go")[0], "127.0.0.1:7421", s.GRPC)
	printed, err := exec.Command("go", "run", writeProgram(t, program)).CombinedOutput()
	if err != nil || string(printed) != "hello from Go\n" {
		t.Fatalf("%v; it printed:\n%s", err, printed)
	}
	left := s.Must(t, http.MethodGet, "/v1/queues/greetings/runtime", "")
	if total := left.Body["totalMessageCount"]; total != "1" {
		t.Errorf("the queue holds %v messages, want the dead letter alone: %s", total, left.Text)
	}
}

// The snippets about streams are one program, since curl cannot show them.
func TestStreamsPageRuns(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	var source strings.Builder
	source.WriteString(snippetHead)
	setup := strings.ReplaceAll(blocks(t, "docs/api/README.md", "```go-setup")[0], "127.0.0.1:7421", s.GRPC)
	fmt.Fprintf(&source, "\nfunc run(ctx context.Context) error {\n%s\n", setup)
	for _, body := range blocks(t, "docs/api/streams.md", "```go") {
		fmt.Fprintf(&source, "if err := func() error {\n%s\nreturn nil\n}(); err != nil {\nreturn err\n}\n", body)
	}
	source.WriteString("return nil\n}\n\nfunc main() {\nif err := run(context.Background()); err != nil {\npanic(err)\n}\n}\n")
	printed, err := exec.Command("go", "run", writeProgram(t, source.String())).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	const want = "one is number 1\ntwo is number 2\nthree is number 3\nworking on one\nworking on two\nworking on three\n"
	if string(printed) != want {
		t.Errorf("it printed\n%s\nwant\n%s", printed, want)
	}
	left := s.Must(t, http.MethodGet, "/v1/queues/jobs/runtime", "")
	if total := left.Body["totalMessageCount"]; total != nil && total != "0" {
		t.Errorf("%v messages are left", total)
	}
}

func TestPagesLinkToWhatExists(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"../docs/*.md", "../docs/*/*.md", "../examples/*/*.md", "../deploy/*.md", "../lua/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	link := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	for _, page := range pages {
		for _, match := range link.FindAllStringSubmatch(codeBlock.ReplaceAllString(readFile(t, page), ""), -1) {
			target := page
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(page), match[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
				continue
			}
			if match[2] != "" && filepath.Ext(target) == ".md" && !slices.Contains(anchorsOf(readFile(t, target)), match[2]) {
				t.Errorf("%s links to %s#%s: that page has no such heading", page, match[1], match[2])
			}
		}
	}
}

// codeBlock finds what is no text of a page.
var codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")

// anchorsOf returns the ids of a page: those that it sets, and those that GitHub derives from its headings.
func anchorsOf(page string) []string {
	page = codeBlock.ReplaceAllString(page, "")
	var all []string
	for _, match := range regexp.MustCompile(`<a id="([^"]+)">`).FindAllStringSubmatch(page, -1) {
		all = append(all, match[1])
	}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(match[1], "$1")
		text = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(text), "")
		id := strings.ReplaceAll(text, " ", "-")
		for n := 1; slices.Contains(all, id); n++ {
			id = fmt.Sprintf("%s-%d", strings.ReplaceAll(text, " ", "-"), n)
		}
		all = append(all, id)
	}
	return all
}

func TestOperationsListsEverySetting(t *testing.T) {
	t.Parallel()
	code, help := sidecartest.Run(t, "serve", "--help")
	if code != 0 {
		t.Fatalf("serve --help: exit code %d", code)
	}
	page := readPage(t, "docs/operations.md")
	flags := regexp.MustCompile(`--[a-z][a-z.-]*[a-z]`)
	inHelp := flags.FindAllString(help, -1)
	for _, flag := range inHelp {
		if flag != "--help" && flag != "--version" && !strings.Contains(page, "`"+flag+"`") {
			t.Errorf("docs/operations.md lacks %s", flag)
		}
	}
	settings, _, _ := strings.Cut(page, "### Stores")
	for _, flag := range flags.FindAllString(settings, -1) {
		if !slices.Contains(inHelp, flag) {
			t.Errorf("docs/operations.md has %s, which the binary does not know", flag)
		}
	}
	for _, variable := range regexp.MustCompile(`SIDEBUS_[A-Z_]+`).FindAllString(page, -1) {
		if !strings.Contains(help, variable) {
			t.Errorf("docs/operations.md has %s, which the binary does not know", variable)
		}
	}
}

// lifeOfSharedCopies stores copies that share bodies, receives and settles some, deletes a subscription that has
// some, and then the topic.
const lifeOfSharedCopies = `
T=http://127.0.0.1:7420/v1/topics/shared
call() { curl -sS --fail-with-body "$@"; echo; }
call -X PUT $T -d '{}'
for name in a b c; do call -X PUT $T/subscriptions/$name -d '{}'; done
body=$(printf '%01000d' 0)
call $T/messages:send -d "{\"messages\":[{\"text\":\"$body\"},{\"text\":\"$body\"},{\"text\":\"$body\"}]}"
answer=$(call $T/subscriptions/a/messages:receive -d '{"maxWait":"5s","maxMessages":3}')
tokens=($(echo "$answer" | grep -o '"lockToken": *"[^"]*"' | sed 's/.*"\(.*\)"/\1/'))
call $T/subscriptions/a/messages:renewLocks -d "{\"lockTokens\":[\"${tokens[0]}\"]}"
call $T/subscriptions/a/messages:complete -d "{\"lockTokens\":[\"${tokens[0]}\"]}"
call $T/subscriptions/a/messages:deadLetter -d "{\"lockTokens\":[\"${tokens[1]}\"]}"
call $T/subscriptions/a/messages:defer -d "{\"lockTokens\":[\"${tokens[2]}\"]}"
call -X DELETE $T/subscriptions/b
call $T/subscriptions/c/messages:purge -d '{"maxMessages":10}'
call -X DELETE $T
`

// TestTheACLOfTheDoctorIsEnough runs the pages' sessions as the Redis user that "sidebus doctor --acl" describes.
func TestTheACLOfTheDoctorIsEnough(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		t.Cleanup(server.Stop)
		rule := createUser(t, server.URL)
		shown := blocks(t, "docs/operations.md", "<!-- acl -->\n```")[0]
		if !strings.Contains(rule, "+waitaof") {
			shown = strings.Replace(shown, " +waitaof", "", 1) // the page is about Redis 7.2 or later
		}
		if strings.TrimSpace(shown) != rule {
			t.Errorf("docs/operations.md shows\n%s\nand sidebus doctor --acl prints\n%s", shown, rule)
		}
		wantRightsEnough(t, server.URL, false)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster := redistest.StartCluster(t)
		t.Cleanup(cluster.Stop)
		createUser(t, cluster.URL)
		wantRightsEnough(t, cluster.URL, true)
	})
}

// createUser runs the command that "sidebus doctor --acl" prints, on every server, and returns it.
func createUser(t *testing.T, url string) (rule string) {
	t.Helper()
	code, output := sidecartest.Run(t, "doctor", "--acl", "--store", url)
	if code != 0 {
		t.Fatalf("doctor --acl: exit %d\n%s", code, output)
	}
	var command []any
	for _, word := range strings.Fields(output) {
		command = append(command, strings.Replace(word, ">PASSWORD", ">s3cret", 1))
	}
	create := func(ctx context.Context, server *redis.Client) error { return server.Do(ctx, command...).Err() }
	var err error
	switch client := redistest.Client(t, url).(type) {
	case *redis.ClusterClient:
		err = client.ForEachShard(t.Context(), create)
	case *redis.Client:
		err = create(t.Context(), client)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(output)
}

// wantRightsEnough runs the pages' sessions as the user sidebus of a store.
func wantRightsEnough(t *testing.T, url string, hasReplicas bool) {
	t.Helper()
	url = strings.Replace(url, "://", "://sidebus:s3cret@", 1)
	s := sidecartest.Start(t, "--store", url)
	shell(t, s, blocks(t, "README.md", "<!-- runs -->\n```sh")[0])
	for _, page := range apiPages {
		for _, session := range blocks(t, "docs/api/"+page+".md", "<!-- runs -->\n```sh") {
			shell(t, s, session)
		}
	}
	for _, session := range blocks(t, "docs/forwarding.md", "<!-- runs -->\n```sh") {
		shell(t, s, session)
	}
	shell(t, s, lifeOfSharedCopies)
	if hasReplicas { // for which WAIT is needed
		s.Queue(t, "replicated", `{"durability":"REPLICA"}`)
		s.Send(t, "replicated", "a")
	}
	if code, output := sidecartest.Run(t, "doctor", "--store", url); code != 0 || !strings.Contains(output, "problems: 0") {
		t.Errorf("doctor: exit %d\n%s", code, output)
	}
	if strings.Contains(s.Log(), "NOPERM") {
		t.Errorf("a right is missing:\n%s", s.Log())
	}
	if !strings.Contains(s.Log(), "***") || strings.Contains(s.Log(), "s3cret") {
		t.Errorf("the password is not masked in the log:\n%s", s.Log())
	}
}
