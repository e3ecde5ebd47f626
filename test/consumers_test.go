package test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
	"github.com/sidebus/sidebus/test/syncbuf"
)

// consumerExample is one of the consumers of examples that use a standard library only.
type consumerExample struct {
	command []string
	stopped int      // exit code after SIGTERM
	bodies  []string // what it prints for the bodies of each kind, after the sequence number
}

func TestPythonConsumer(t *testing.T) {
	t.Parallel()
	python := program(t, "python3")
	consumerExample{
		command: []string{python, "../examples/python-consumer/consumer.py"},
		bodies:  []string{"{'number': '12345678901234567'}", "a JSON string", "b'hello'"},
	}.run(t)
}

func TestNodeConsumer(t *testing.T) {
	t.Parallel()
	node := program(t, "node")
	consumerExample{
		command: []string{node, "../examples/node-consumer/consumer.mjs"},
		bodies:  []string{"{ number: '12345678901234567' }", "a JSON string", "<Buffer 68 65 6c 6c 6f>"},
	}.run(t)
}

// The example is compiled once, since each start from the source compiles it again.
func TestJavaConsumer(t *testing.T) {
	t.Parallel()
	java, classes := program(t, "java"), t.TempDir()
	javac := program(t, "javac")
	out, err := exec.Command(javac, "-d", classes, "../examples/java-consumer/Consumer.java").CombinedOutput()
	if err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	consumerExample{
		command: []string{java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes, "Consumer"},
		stopped: 128 + int(syscall.SIGTERM),
		bodies:  []string{`{"number":"12345678901234567"}`, `"a JSON string"`, "5 bytes"},
	}.run(t)
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("no %s on PATH: run `make test`, which installs it", name)
	}
	return path
}

func (e consumerExample) run(t *testing.T) {
	t.Helper()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	for _, name := range []string{"messages", "sessions"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e.killAndStop(t, s, name)
		})
	}
}

// killAndStop sends 100 messages to two consumers, which have unreliable connections. One of them is killed. The other
// one renews a lock, processes the rest and is stopped.
func (e consumerExample) killAndStop(t *testing.T, s *sidecartest.Sidecar, name string) {
	t.Helper()
	connection := &unreliable{sidecar: "http://" + s.HTTP, sessionOf: map[string]string{}, states: map[string][]int{}}
	server := httptest.NewServer(connection)
	defer server.Close()
	queue := "/v1/queues/team%2F" + name
	s.Must(t, http.MethodPut, queue, fmt.Sprintf(`{"lockDuration":"5s","requiresSession":%t}`, name == "sessions"))

	// The first message of the survivor takes longer than a lock lasts.
	slow := map[string]any{"text": "slow", "sessionId": "slow", "properties": map[string]any{"seconds": 5.5}}
	e.send(t, s, queue, slow)
	survivor := e.start(t, server.URL, "team/"+name)
	sidecartest.Eventually(t, "the survivor works", func() bool { return counts(t, s, queue).Locked == 1 })

	messages, good, bad := batch(e.bodies)
	e.send(t, s, queue, messages...)
	victim := e.start(t, server.URL, "team/"+name)
	sidecartest.Eventually(t, "the victim completes messages", func() bool {
		return victim.stderr.count(`(?m) complete: done$`) >= 20
	})
	victim.kill()
	sidecartest.Eventually(t, "all messages but the dead letters are completed", func() bool {
		left := counts(t, s, queue)
		return left.Total == len(bad) && left.DeadLetters == len(bad)
	})

	e.checkDeadLetters(t, s, queue, bad)
	printed := append(victim.printed(), survivor.printed()...)
	lost := victim.stderr.count("_LOCK_LOST") + survivor.stderr.count("_LOCK_LOST")
	for _, want := range append(good, "slow") {
		if !slices.Contains(printed, want) {
			t.Errorf("no consumer printed %q", want)
		}
	}
	// Only what the victim had done and not completed is done again, and what a busy machine did not renew in time.
	if repeated := len(printed) - len(good) - 1; repeated < 0 || repeated > 1+lost {
		t.Errorf("%d messages were processed %d times, with %d lost locks", len(good)+1, len(printed), lost)
	}
	if victim.stderr.count("THROTTLED|STORE_UNAVAILABLE") == 0 {
		t.Errorf("the victim repeated no call; it wrote\n%s", victim.stderr)
	}
	connection.checkOrder(t, name == "sessions")
	e.checkStop(t, s, queue, survivor)
}

// batch returns 99 messages, what is printed for the good ones, and the texts of the bad ones.
func batch(bodies []string) (messages []map[string]any, good, bad []string) {
	for i := range 99 {
		text, properties := fmt.Sprintf("message %d", i), map[string]any{"seconds": 0.01}
		m := map[string]any{"sessionId": fmt.Sprintf("s%d", i%5), "properties": properties}
		switch {
		case i == 1:
			m["json"], text = map[string]string{"number": "12345678901234567"}, bodies[0]
		case i == 2:
			m["json"], text = "a JSON string", bodies[1]
		case i == 3:
			m["body"], text = []byte("hello"), bodies[2]
		default:
			m["text"] = text
		}
		switch {
		case i%20 == 7:
			properties["fail"] = "always"
			bad = append(bad, text)
		default:
			if i%40 == 13 {
				properties["fail"] = "once"
			}
			good = append(good, text)
		}
		messages = append(messages, m)
	}
	return messages, good, bad
}

func (e consumerExample) send(t *testing.T, s *sidecartest.Sidecar, queue string, messages ...map[string]any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	s.Must(t, http.MethodPost, queue+"/messages:send", string(body))
}

func (e consumerExample) checkDeadLetters(t *testing.T, s *sidecartest.Sidecar, queue string, bad []string) {
	t.Helper()
	var dead struct {
		Messages []struct{ Text, DeadLetterReason string }
	}
	answer := s.Must(t, http.MethodPost, queue+"/messages:peek", `{"subQueue":"DEAD_LETTER","maxMessages":100}`)
	if err := json.Unmarshal([]byte(answer.Text), &dead); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range dead.Messages {
		if m.DeadLetterReason != "NotWanted" {
			t.Errorf("%q is a dead letter: %s", m.Text, m.DeadLetterReason)
		}
		texts = append(texts, m.Text)
	}
	slices.Sort(texts)
	slices.Sort(bad)
	if !slices.Equal(texts, bad) {
		t.Errorf("dead letters: got %q, want %q", texts, bad)
	}
}

// checkStop stops a consumer that works: it finishes its message and gives back the others, uncounted.
func (e consumerExample) checkStop(t *testing.T, s *sidecartest.Sidecar, queue string, consumer *consumerProcess) {
	t.Helper()
	before := counts(t, s, queue).Total
	var messages []map[string]any
	for range 10 {
		properties := map[string]any{"seconds": 0.5}
		messages = append(messages, map[string]any{"text": "stop", "sessionId": "stop", "properties": properties})
	}
	e.send(t, s, queue, messages...)
	sidecartest.Eventually(t, "the consumer works", func() bool { return slices.Contains(consumer.printed(), "stop") })
	if code := consumer.stop(t); code != e.stopped {
		t.Errorf("exit code %d, want %d; it wrote\n%s", code, e.stopped, consumer.stderr)
	}
	left := counts(t, s, queue)
	done := strings.Count(strings.Join(consumer.printed(), "\n"), "stop")
	if done == 10 || left.Locked != 0 || left.Total-before != 10-done {
		t.Errorf("%d messages done, %d left, %d locked", done, left.Total-before, left.Locked)
	}
	peeked := s.Must(t, http.MethodPost, queue+"/messages:peek", `{"maxMessages":10}`)
	if regexp.MustCompile(`"deliveryCount": *[1-9]`).MatchString(peeked.Text) {
		t.Errorf("what was given back is counted: %s", peeked.Text)
	}
}

// queueCounts is what the tests need of the counts of a queue.
type queueCounts struct {
	Locked      int `json:"lockedCount,string"`
	DeadLetters int `json:"deadLetterMessageCount,string"`
	Total       int `json:"totalMessageCount,string"`
}

func counts(t *testing.T, s *sidecartest.Sidecar, queue string) queueCounts {
	t.Helper()
	var c queueCounts
	if err := json.Unmarshal([]byte(s.Must(t, http.MethodGet, queue+"/runtime", "").Text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// consumerProcess is a running consumer.
type consumerProcess struct {
	command        *exec.Cmd
	stdout, stderr *output
	exited         chan struct{}
}

func (e consumerExample) start(t *testing.T, url, queue string) *consumerProcess {
	t.Helper()
	p := &consumerProcess{stdout: &output{}, stderr: &output{}}
	p.command = exec.Command(e.command[0], append(slices.Clone(e.command[1:]), queue)...)
	p.command.Env = append(sidecartest.Environment(), "SIDEBUS_URL="+url, "PYTHONDONTWRITEBYTECODE=1")
	p.command.Stdout, p.command.Stderr = p.stdout, p.stderr
	p.exited = sidecartest.Begin(t, p.command, func() string {
		return fmt.Sprintf("a consumer printed\n%s\nand wrote\n%s", p.stdout, p.stderr)
	})
	return p
}

func (p *consumerProcess) kill() {
	_ = p.command.Process.Kill()
	<-p.exited
}

// stop sends SIGTERM and returns the exit code.
func (p *consumerProcess) stop(t *testing.T) int {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	patience := time.NewTimer(sidecartest.Patience)
	defer patience.Stop()
	select {
	case <-p.exited:
	case <-patience.C:
		t.Fatal("the consumer does not end")
	}
	if status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.command.ProcessState.ExitCode()
}

// printed returns the printed bodies.
func (p *consumerProcess) printed() []string {
	var bodies []string
	for line := range strings.Lines(p.stdout.String()) {
		if _, body, ok := strings.Cut(strings.TrimRight(line, "\n"), " "); ok && strings.HasSuffix(line, "\n") {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// output is what a process writes.
type output struct{ syncbuf.Buffer }

func (o *output) count(pattern string) int {
	return len(regexp.MustCompile(pattern).FindAllString(o.String(), -1))
}

// unreliable forwards calls to a sidecar. It refuses some of them, and drops the answers to some changes.
type unreliable struct {
	sidecar string
	calls   atomic.Int64

	mu        sync.Mutex
	sessionOf map[string]string // by the token of its lock
	states    map[string][]int  // set in a session, in order
}

// noKeepAlive leaves no goroutines behind.
var noKeepAlive = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func (u *unreliable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	n := u.calls.Add(1)
	switch {
	case n%7 == 0:
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"reason":"THROTTLED","message":"a test","retryable":true,"retryAfterMs":20}`)
		return
	case n%11 == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"reason":"STORE_UNAVAILABLE","message":"a test","retryable":true,"retryAfterMs":50}`)
		return
	}
	asked, status, answer, err := u.forward(r)
	_, verb, _ := strings.Cut(r.URL.Path, ":")
	isChange := slices.Contains([]string{"complete", "abandon", "deadLetter", "release", "setState"}, verb)
	if err != nil || isChange && n%13 == 0 {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	u.note(verb, asked, answer)
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

func (u *unreliable) forward(r *http.Request) (asked []byte, status int, answer []byte, err error) {
	if asked, err = io.ReadAll(r.Body); err != nil {
		return nil, 0, nil, err
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, u.sidecar+r.URL.RequestURI(), bytes.NewReader(asked))
	if err != nil {
		return nil, 0, nil, err
	}
	response, err := noKeepAlive.Do(request)
	if err != nil {
		return nil, 0, nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	answer, err = io.ReadAll(response.Body)
	return asked, response.StatusCode, answer, err
}

// note keeps which states are set in which session.
func (u *unreliable) note(verb string, asked, answer []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var call struct{ LockToken, State string }
	var accepted struct {
		Session struct{ SessionID, LockToken string }
		Version string
	}
	if json.Unmarshal(asked, &call) != nil || json.Unmarshal(answer, &accepted) != nil {
		return
	}
	switch {
	case verb == "accept":
		u.sessionOf[accepted.Session.LockToken] = accepted.Session.SessionID
	case verb == "setState" && accepted.Version != "":
		text, _ := base64.StdEncoding.DecodeString(call.State)
		number, _ := strconv.Atoi(string(text))
		session := u.sessionOf[call.LockToken]
		u.states[session] = append(u.states[session], number)
	}
}

// checkOrder checks that the messages of each session were done in order: a repeated call sets the same number again.
func (u *unreliable) checkOrder(t *testing.T, hasSessions bool) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if want := 6; hasSessions && len(u.states) != want {
		t.Errorf("states of %d sessions were set, want %d", len(u.states), want)
	}
	for session, numbers := range u.states {
		if !slices.IsSorted(numbers) {
			t.Errorf("session %s was done in the order %v", session, numbers)
		}
	}
}

// TestConsumerExamplesHavePages checks that each consumer has its page, and that the page and the program agree on
// names.
func TestConsumerExamplesHavePages(t *testing.T) {
	t.Parallel()
	for language, file := range map[string]string{"python": "consumer.py", "node": "consumer.mjs", "java": "Consumer.java"} {
		path := filepath.Join("examples", language+"-consumer", file)
		page, source := readPage(t, "docs/consumer-"+language+".md"), readPage(t, path)
		if !strings.Contains(page, "(../"+path+")") {
			t.Errorf("docs/consumer-%s.md does not link to %s", language, path)
		}
		for _, setting := range regexp.MustCompile("`([A-Z][A-Z_]{3,})`").FindAllStringSubmatch(page, -1) {
			isReason := strings.Contains(readPage(t, "docs/api/errors.md"), "`"+setting[1]+"`")
			if !isReason && !strings.Contains(source, setting[1]) {
				t.Errorf("docs/consumer-%s.md has %s, which %s has not", language, setting[1], path)
			}
		}
	}
}

// TestConsumerPagesWorkWhenPasted runs the commands of the pages from the root of the repository, as they say.
func TestConsumerPagesWorkWhenPasted(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	for _, language := range []string{"python", "node", "java"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			sessions := blocks(t, "docs/consumer-"+language+".md", "<!-- runs -->\n```sh")
			printed := strings.ReplaceAll(shell(t, s, "cd ..\n"+sessions[0]), `": `, `":`)
			wants := []string{
				"1 hello\n", "2 complete: done", "4 takes a second\n", "5 abandon: done", `"deadLetterReason":"NotWanted"`,
			}
			for _, want := range wants {
				if !strings.Contains(printed, want) {
					t.Errorf("the first session did not print %q; it printed:\n%s", want, printed)
				}
			}
			printed = shell(t, s, "cd ..\n"+sessions[1])
			if want := "1 pay\n"; !strings.Contains(printed, want) || strings.Count(printed, "complete: done") != 3 {
				t.Errorf("the second session did not complete three messages; it printed:\n%s", printed)
			}
		})
	}
}
