package proxy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// consoled starts a sidecar with a console.
func consoled(t *testing.T, mode proxy.ConsoleMode, change ...func(*proxy.Config)) *sidecar {
	t.Helper()
	over := memstore.New()
	return start(t, over, append([]func(*proxy.Config){func(c *proxy.Config) {
		c.Console, c.Entities, c.Namespace = mode, over, "shop"
	}}, change...)...)
}

// uiAnswer is an answer of the console.
type uiAnswer struct {
	StatusCode int
	Status     string
	Header     http.Header
	Text       string
}

// ui makes a request of the console. headers are names and values.
func (s *sidecar) ui(method, path, body string, headers ...string) uiAnswer {
	s.t.Helper()
	answer := s.uiStream(method, path, body, headers...)
	defer answer.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return uiAnswer{StatusCode: answer.StatusCode, Status: answer.Status, Header: answer.Header, Text: string(text)}
}

// uiStream is like ui, and leaves the body of the answer to the caller, who closes it.
func (s *sidecar) uiStream(method, path, body string, headers ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.proxy.AdminAddr().String()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
		if pair[0] == "Host" {
			r.Host = pair[1]
		}
	}
	client := *s.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

func TestConsolePages(t *testing.T) {
	t.Parallel()
	s := consoled(t, proxy.ConsoleOn)
	page := s.ui(http.MethodGet, "/ui/", "")
	if page.StatusCode != http.StatusOK || !strings.Contains(page.Text, "console.js") {
		t.Errorf("got %s %s", page.Status, page.Text)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'",
	} {
		if got := page.Header.Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if policy := page.Header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("the policy is %q", policy)
	}
	if again := s.ui(http.MethodGet, "/ui/", "", "If-None-Match", page.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("again: %s", again.Status)
	}
	// Below a proxy that serves the sidecar at /sidebus/, only a relative address is right.
	if moved := s.ui(http.MethodGet, "/ui", ""); moved.StatusCode != http.StatusPermanentRedirect || moved.Header.Get("Location") != "ui/" {
		t.Errorf("/ui: %s to %q", moved.Status, moved.Header.Get("Location"))
	}
	for path, want := range map[string]int{"/ui/none.js": http.StatusNotFound, "/ui/../config": http.StatusTemporaryRedirect} {
		if got := s.ui(http.MethodGet, path, ""); got.StatusCode != want {
			t.Errorf("%s: %s", path, got.Status)
		}
	}
	if off := consoled(t, proxy.ConsoleOff).ui(http.MethodGet, "/ui/", ""); off.StatusCode != http.StatusNotFound {
		t.Errorf("with --ui off: %s", off.Status)
	}
}

// Acts are calls of the API: with its errors, and its audit. Another web page cannot make them.
func TestConsoleActs(t *testing.T) {
	t.Parallel()
	s := consoled(t, proxy.ConsoleOn)
	if got := s.ui(http.MethodPut, "/ui/api/v1/queues/new", `{}`); got.StatusCode != http.StatusOK {
		t.Errorf("got %s %s", got.Status, got.Text)
	}
	eventually(t, "the log has a line of audit", func() bool { // which follows the answer
		return strings.Contains(s.log.String(), "msg=audit method=Admin.EnsureQueue wire=http code=OK entity=queues/new peer=127.0.0.1:")
	})
	if got := s.ui(http.MethodPut, "/ui/api/v1/queues/new", `{"none":1}`); !strings.Contains(got.Text, "INVALID_ARGUMENT") {
		t.Errorf("got %s", got.Status)
	}
	for name, headers := range map[string][]string{
		"another site":   {"Sec-Fetch-Site", "cross-site"},
		"another origin": {"Origin", "https://example.com"},
		"another host":   {"Host", "example.com"},
	} {
		got := s.ui(http.MethodDelete, "/ui/api/v1/queues/new", "", headers...)
		if got.StatusCode != http.StatusForbidden && got.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s: %s", name, got.Status)
		}
	}
	for _, route := range []string{"/ui/find", "/ui/letters", "/ui/explain"} {
		if got := s.ui(http.MethodPost, route, `{"entity":"orders"}`, "Sec-Fetch-Site", "cross-site"); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s from another site: %s", route, got.Status)
		}
	}
	if got := s.ui(http.MethodGet, "/ui/live", "", "Sec-Fetch-Site", "cross-site"); got.StatusCode != http.StatusForbidden {
		t.Errorf("the stream for another site: %s", got.Status)
	}
	if got := s.ui(http.MethodGet, "/ui/live", "", "Host", "example.com"); got.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("the stream for another host: %s", got.Status)
	}
}

func TestConsoleReadOnly(t *testing.T) {
	t.Parallel()
	s := consoled(t, proxy.ConsoleReadOnly)
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodGet, "/v1/queues/orders", "", http.StatusOK},
		{http.MethodGet, "/v1/queues/orders/runtime", "", http.StatusOK},
		{http.MethodPost, "/v1/queues/orders/messages:peek", `{}`, http.StatusOK},
		{http.MethodPost, "/v1/queues/orders/messages:send", `{"messages":[{"text":"a"}]}`, http.StatusForbidden},
		{http.MethodPost, "/v1/queues/orders/messages:receive", `{"maxWait":"0s"}`, http.StatusForbidden},
		{http.MethodPut, "/v1/queues/new", `{}`, http.StatusForbidden},
		{http.MethodPatch, "/v1/queues/orders", `{"lockDuration":"30s"}`, http.StatusForbidden},
		{http.MethodDelete, "/v1/queues/orders", "", http.StatusForbidden},
	} {
		if got := s.ui(c.method, "/ui/api"+c.path, c.body); got.StatusCode != c.want {
			t.Errorf("%s %s: %s, want %d", c.method, c.path, got.Status, c.want)
		}
	}
}

// liveEvent is what a test reads of an event.
type liveEvent struct {
	About *struct {
		Namespace, Caller string
		ReadOnly          bool
		Store             struct{ State string }
	}
	Listed bool
	Rows   []struct {
		Path, Kind string
		Read       bool
		Available  int
	}
	Gone          []string
	Totals, Shown *struct{ At []int64 }
	Receivers     *struct {
		Sidecar string
		Here    struct{ Waiting, Held int }
		Held    []struct {
			ID, Holder string
			Until      int64
			Available  int
		}
		Ready []struct {
			ID    string
			Since int64
		}
	}
}

// events opens a stream, and returns what returns its next event.
func (s *sidecar) events(path string, headers ...string) func() liveEvent {
	t := s.t
	t.Helper()
	answer := s.uiStream(http.MethodGet, path, "", headers...)
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("got %s %s", answer.Status, text)
	}
	lines := bufio.NewReader(answer.Body)
	return func() (e liveEvent) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if data, is := strings.CutPrefix(line, "data: "); is {
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					t.Fatal(err)
				}
				return e
			}
		}
	}
}

// A stream begins with what there is, and goes on with what changes.
func TestConsoleLive(t *testing.T) {
	t.Parallel()
	s := consoled(t, proxy.ConsoleOn)
	next := s.events("/ui/live")
	first := next()
	if first.About == nil || first.About.Namespace != "shop" || first.About.Store.State != "ready" {
		t.Fatalf("the first event is %+v", first)
	}
	available := func(e liveEvent, path string) int {
		for _, row := range e.Rows {
			if row.Path == path && row.Read {
				return row.Available
			}
		}
		return -1
	}
	await := func(what string, yes func(liveEvent) bool) {
		t.Helper()
		for e := first; !yes(e); e = next() {
			if len(e.Rows) > 1 {
				t.Fatalf("%s: more than what changed: %+v", what, e)
			}
		}
	}
	await("orders is empty", func(e liveEvent) bool { return available(e, "orders") == 0 })
	if got := s.ui(http.MethodPost, "/ui/api/v1/queues/orders/messages:send", `{"messages":[{"text":"a"},{"text":"b"}]}`); got.StatusCode != http.StatusOK {
		t.Fatal(got.Status)
	}
	first = next()
	await("both messages are there", func(e liveEvent) bool { return available(e, "orders") == 2 })
	if got := s.ui(http.MethodDelete, "/ui/api/v1/queues/orders", ""); got.StatusCode != http.StatusOK {
		t.Fatal(got.Status)
	}
	first = next()
	await("orders is gone", func(e liveEvent) bool { return slices.Equal(e.Gone, []string{"orders"}) })
}

// A page about one entity gets its history, and each new sample of it, by the stream.
func TestConsoleStreamsTheHistoryOfAnEntity(t *testing.T) {
	t.Parallel()
	s := consoled(t, proxy.ConsoleOn)
	next := s.events("/ui/live?entity=Orders")
	for n := 0; n < 2; {
		if e := next(); e.Shown != nil {
			n += len(e.Shown.At)
		}
	}
	again := s.events("/ui/live?entity=orders")
	if e := again(); e.Shown == nil || len(e.Shown.At) < 2 {
		t.Errorf("the first event of a second page is %+v", e)
	}
}

// A page about one entity gets who receives from it, as that changes.
func TestConsoleStreamsWhoReceives(t *testing.T) {
	t.Parallel()
	s := consoled(t, proxy.ConsoleOn)
	do := func(method, path, body string) {
		t.Helper()
		if got := s.ui(method, "/ui/api/v1/queues/"+path, body); got.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", path, got.Status, got.Text)
		}
	}
	do(http.MethodPut, "tales", `{"requiresSession":true}`)
	next := s.events("/ui/live?entity=tales")
	await := func(what string, yes func(liveEvent) bool) liveEvent {
		t.Helper()
		for {
			if e := next(); e.Receivers != nil && yes(e) {
				return e
			}
		}
	}
	do(http.MethodPost, "tales/messages:send", `{"messages":[{"sessionId":"a","text":"x"},{"sessionId":"b","text":"y"}]}`)
	await("both are ready", func(e liveEvent) bool { return len(e.Receivers.Ready) == 2 && e.Receivers.Ready[0].ID == "a" })
	do(http.MethodPost, "tales/sessions:accept", `{"sessionId":"b"}`)
	e := await("one is held", func(e liveEvent) bool { return len(e.Receivers.Held) == 1 && len(e.Receivers.Ready) == 1 })
	if held := e.Receivers.Held[0]; held.ID != "b" || held.Holder != e.Receivers.Sidecar || held.Available != 1 || held.Until < time.Now().UnixMilli() {
		t.Errorf("held is %+v of %+v", held, e.Receivers)
	}
	if e.Receivers.Here.Held != 1 {
		t.Errorf("here is %+v", e.Receivers.Here)
	}
	do(http.MethodPost, "tales/sessions:accept", `{"sessionId":"a"}`)
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		s.ui(http.MethodPost, "/ui/api/v1/queues/tales/sessions:accept", `{"maxWait":"20s"}`)
	}()
	await("a receiver waits", func(e liveEvent) bool { return e.Receivers.Here.Waiting == 1 })
	do(http.MethodPost, "tales/messages:send", `{"messages":[{"sessionId":"c","text":"x"}]}`)
	wait(t, "the receiver", waiting)
}

// A caller sees what it may receive from, and nothing else.
func TestConsoleShowsWhatThePolicyGrants(t *testing.T) {
	t.Parallel()
	pattern := func(text string) access.Pattern {
		p, err := access.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	policy := access.NewPolicy([]access.Identity{
		{Name: "all", Tokens: []access.Token{access.NewToken("token-of-all-1234")}, Grants: []access.Grant{
			{Entities: []access.Pattern{pattern("*")}, Claims: access.Send | access.Listen | access.Manage},
		}},
		{Name: "one", Tokens: []access.Token{access.NewToken("token-of-one-1234")}, Grants: []access.Grant{
			{Entities: []access.Pattern{pattern("mine")}, Claims: access.Listen},
		}},
	}, nil, nil)
	over := memstore.New()
	s := launch(t, over, func(c *proxy.Config) {
		c.Console, c.Entities, c.Authorizer = proxy.ConsoleOn, over, access.Policies(func() *access.Policy { return policy })
	})
	wait(t, "start", s.proxy.Started())
	all, one := []string{"Authorization", "Bearer token-of-all-1234"}, []string{"Authorization", "Bearer token-of-one-1234"}
	for _, name := range []string{"mine", "theirs"} {
		if got := s.ui(http.MethodPut, "/ui/api/v1/queues/"+name, `{}`, all...); got.StatusCode != http.StatusOK {
			t.Fatal(got.Status)
		}
	}
	if got := s.ui(http.MethodGet, "/ui/live", ""); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", got.Status)
	}
	if got := s.ui(http.MethodGet, "/ui/live?entity=theirs", "", one...); got.StatusCode != http.StatusForbidden {
		t.Errorf("the stream about what one may not see: %s", got.Status)
	}
	for path, want := range map[string]int{"mine": http.StatusOK, "theirs": http.StatusForbidden, "": http.StatusForbidden} {
		body := fmt.Sprintf(`{"entity":%q,"subQueue":"DEAD_LETTER"}`, path)
		for _, route := range []string{"/ui/find", "/ui/letters"} {
			if got := s.ui(http.MethodPost, route, body, one...); got.StatusCode != want {
				t.Errorf("%s of %q: %s %s, want %d", route, path, got.Status, got.Text, want)
			}
		}
	}
	if got := s.ui(http.MethodDelete, "/ui/api/v1/queues/mine", "", one...); got.StatusCode != http.StatusForbidden {
		t.Errorf("a deletion without Manage: %s", got.Status)
	}
	for _, c := range []struct {
		headers []string
		caller  string
		want    []string
	}{{all, "all", []string{"mine", "theirs"}}, {one, "one", []string{"mine"}}} {
		next := s.events("/ui/live", c.headers...)
		var paths []string
		e := next()
		if e.About.Caller != c.caller {
			t.Errorf("the first event of %s is %+v", c.caller, e)
		}
		for isSummed := false; ; e = next() {
			isSummed = isSummed || e.Totals != nil
			for _, row := range e.Rows {
				if !slices.Contains(paths, row.Path) {
					paths = append(paths, row.Path)
				}
			}
			if e.Listed && len(paths) > 0 && (isSummed || c.caller == "one") {
				if isSummed && c.caller == "one" {
					t.Error("who may not see all has got the sums of all")
				}
				break
			}
		}
		slices.Sort(paths)
		if !slices.Equal(paths, c.want) {
			t.Errorf("%s sees %v", c.caller, paths)
		}
	}
}
