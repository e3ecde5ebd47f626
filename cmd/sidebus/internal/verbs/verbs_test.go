package verbs

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/test/filetest"
)

func TestVerbsRefuse(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	tests := map[string]struct {
		args []string
		code int
		text string
	}{
		"no queue":             {[]string{"send"}, cli.Usage, "<queue>"},
		"unknown queue":        {[]string{"send", "none", "x"}, cli.Failure, `sidebus: ENTITY_NOT_FOUND: entity "none" does not exist; check the name or create it; "sidebus entity create none" creates it`},
		"bad name":             {[]string{"peek", "a b"}, cli.Failure, "INVALID_ARGUMENT: name"},
		"unknown topic":        {[]string{"peek", "topics/t"}, cli.Failure, `ENTITY_NOT_FOUND: entity "t" does not exist`},
		"unknown subscription": {[]string{"receive", "topics/t/subscriptions/s"}, cli.Failure, `ENTITY_NOT_FOUND`},
		"bad output":           {[]string{"stats", "-o", "xml"}, cli.Usage, "--output"},
		"no time":              {[]string{"stats", "--timeout=0s"}, cli.Usage, "--timeout"},
		"bad property":         {[]string{"send", "orders", "x", "-p", "n:int=5"}, cli.Usage, "the types are null, string"},
		"bad number":           {[]string{"send", "orders", "x", "-p", "n:byte=many"}, cli.Usage, "the value is not of type byte"},
		"property of no range": {[]string{"send", "orders", "x", "-p", "n:byte=256"}, cli.Failure, "INVALID_ARGUMENT"},
		"property twice":       {[]string{"send", "orders", "x", "-p", "n=1", "-p", "n=2"}, cli.Usage, "twice"},
		"bad ttl":              {[]string{"send", "orders", "x", "--ttl=soon"}, cli.Usage, "--ttl is"},
		"zero ttl":             {[]string{"send", "orders", "x", "--ttl=0"}, cli.Failure, "ARGUMENT_OUT_OF_RANGE"},
		"bad at":               {[]string{"send", "orders", "x", "--at=noon"}, cli.Usage, "--at is"},
		"in the past":          {[]string{"send", "orders", "x", "--in=-5s"}, cli.Usage, "--in is -5s, must not be negative"},
		"from below zero":      {[]string{"peek", "orders", "--from=-3"}, cli.Usage, "--from is -3, must not be negative"},
		"unknown letter":       {[]string{"send", "orders", "x", "-v"}, cli.Usage, "unknown flag -v\n"},
		"bad in":               {[]string{"send", "orders", "x", "--in=noon"}, cli.Usage, "--in is"},
		"at and in":            {[]string{"send", "orders", "x", "--in=1s", "--at=2030-01-01T00:00:00Z"}, cli.Usage, "--at"},
		"lines and bodies":     {[]string{"send", "orders", "x", "--lines"}, cli.Usage, "--lines"},
		"file and bodies":      {[]string{"send", "orders", "x", "--file=y"}, cli.Usage, "--file"},
		"one id for many":      {[]string{"send", "orders", "x", "y", "--message-id=m"}, cli.Usage, "--message-id"},
		"too few":              {[]string{"receive", "orders", "--max=0"}, cli.Usage, "--max"},
		"too many":             {[]string{"receive", "orders", "--max=1001"}, cli.Usage, "--complete or --delete"},
		"two ends":             {[]string{"receive", "orders", "--complete", "--abandon"}, cli.Usage, "--abandon"},
		"too long":             {[]string{"receive", "orders", "--wait=301s"}, cli.Usage, "--wait is 301s, must be 0s to 5m"},
		"unlike states":        {[]string{"peek", "orders", "--state=odd"}, cli.Usage, "--state"},
		"negative":             {[]string{"peek", "orders", "--max=-1"}, cli.Usage, "--max"},
		"unknown option":       {[]string{"entity", "create", "q", "--set", "lockduration=3s"}, cli.Usage, `there is no option "lockduration"; did you mean lockDuration?`},
		"no such option":       {[]string{"entity", "create", "q", "--set", "colour=red"}, cli.Usage, "the options of a queue are lockDuration"},
		"bad option":           {[]string{"entity", "create", "q", "--set", "lockDuration=never"}, cli.Usage, "lockDuration is"},
		"option twice":         {[]string{"entity", "create", "q", "--set", "status=ACTIVE", "--set", "status=DISABLED"}, cli.Usage, "twice"},
		"bad status":           {[]string{"entity", "create", "q", "--set", "status=odd"}, cli.Usage, "ACTIVE, DISABLED"},
		"out of range":         {[]string{"entity", "create", "q", "--set", "lockDuration=1h"}, cli.Failure, "ARGUMENT_OUT_OF_RANGE: lockDuration"},
		"immutable":            {[]string{"entity", "update", "orders", "--set", "requiresDuplicateDetection=true"}, cli.Failure, "PROPERTY_IMMUTABLE"},
		"nothing to update":    {[]string{"entity", "update", "orders"}, cli.Usage, "--set"},
		"a name of the API":    {[]string{"entity", "create", "q", "--set", "createdAt=2030-01-01T00:00:00Z"}, cli.Usage, "no option"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.verb(t, nil, test.args...).wants(t, test.code, test.text)
		})
	}
	s.ok(t, "entity", "create", "closed", "--set", "status=DISABLED")
	s.verb(t, nil, "send", "closed", "x").wants(t, cli.Failure, "ENTITY_DISABLED", `"sidebus entity update closed --set status=ACTIVE" enables it`)
}

func TestOddNames(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveMemory(t)
	for _, name := range []string{"a/b", "queues/list", "Case.d-x_1/2"} {
		resource := "queues/" + name
		s.verb(t, nil, "entity", "create", resource).wants(t, cli.Clean, "created "+resource)
		s.ok(t, "send", resource, "in "+name)
		escaped := "queues/" + strings.ReplaceAll(name, "/", "%2F")
		s.wantTexts(t, []string{"in " + name}, escaped)
		s.verb(t, typing(name+"\n"), "purge", escaped).wants(t, cli.Clean, "removed 1 message from "+resource)
		if got := s.ok(t, "dlq", resource, "count"); got != "0\n" {
			t.Errorf("%s: got %q", name, got)
		}
		if got := decoded(t, s.ok(t, "stats", escaped, "-o", "json")); got[0]["queues"].([]any)[0].(map[string]any)["name"] != name {
			t.Errorf("%s: got %v", name, got)
		}
	}
	s.verb(t, nil, "entity", "show", "100%").wants(t, cli.Failure, "INVALID_ARGUMENT")
}

func TestEmptyResults(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveMemory(t)
	for _, args := range [][]string{
		{"receive", "orders"},
		{"receive", "orders", "--dlq", "--delete"},
		{"peek", "orders"},
		{"dlq", "orders", "list"},
	} {
		for _, form := range []string{"table", "json"} {
			got := s.verb(t, nil, append(args, "-o", form)...)
			if got.wants(t, cli.Clean, "no messages in "); got.stdout != "" {
				t.Errorf("%q: got %q, want nothing", args, got.stdout)
			}
		}
	}
	s.ok(t, "send", "orders", "a")
	s.verb(t, nil, "peek", "orders", "--state=locked,deferred").wants(t, cli.Clean, "no locked or deferred messages in queues/orders\n")
	s.verb(t, nil, "peek", "orders", "--from=9").wants(t, cli.Clean, "no messages from number 9 on in queues/orders\n")
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	const hint = `start one with "sidebus serve"`
	gone := &served{grpc: "127.0.0.1:1"}
	gone.verb(t, nil, "stats").wants(t, cli.Failure, "no sidecar answers at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; "+hint)
	socket := &served{grpc: "unix://" + t.TempDir() + "/none.sock"}
	socket.verb(t, nil, "peek", "q").wants(t, cli.Failure, "no sidecar answers at "+socket.grpc, hint)
	(&served{grpc: "nowhere"}).verb(t, nil, "stats").wants(t, cli.Usage, `--grpc-addr is "nowhere", must be host:port or unix:///path`)

	other := &served{grpc: serveMemory(t).http}
	other.verb(t, nil, "stats").wants(t, cli.Failure, other.grpc+" is an address of HTTP, not of gRPC; set the gRPC address")

	deaf, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	(&served{grpc: deaf.Addr().String()}).verb(t, nil, "stats", "--timeout=50ms").wants(t, cli.Failure, "did not answer within 50ms", "--timeout")
	serveFake(t, &fake{}).verb(t, nil, "entity", "list").wants(t, cli.Failure, "does not know this call")
}

func TestUnixSocketAndEnvironment(t *testing.T) {
	s := serveMemory(t)
	t.Setenv("SIDEBUS_GRPC_ADDR", s.grpc)
	var stdout, stderr bytes.Buffer
	if code := cli.Run(t.Context(), &Grammar{}, []string{"stats"}, terminal.Streams{Stdout: &stdout, Stderr: &stderr}); code != cli.Clean || !strings.Contains(stdout.String(), "orders") {
		t.Errorf("got exit code %d, %s%s", code, &stdout, &stderr)
	}
	file := filetest.Write(t, "store: memory\ngrpc-addr: "+s.grpc+"\n")
	t.Setenv("SIDEBUS_GRPC_ADDR", "")
	if code := cli.Run(t.Context(), &Grammar{}, []string{"stats", "--config", file}, terminal.Streams{Stdout: &stdout, Stderr: &stderr}); code != cli.Clean {
		t.Errorf("with a file: got exit code %d, %s", code, &stderr)
	}
}

// TestJSONIsThatOfTheAPI compares what the verbs print with what the sidecar answers over HTTP.
func TestJSONIsThatOfTheAPI(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "entity", "update", "orders", "--set", "redeliveryDelay=1.5s", "--set", "deadLetterTtl=1h", "--set", "userMetadata=\"<é>\u2028")
	post := func(path, body string) string { return s.call(t, http.MethodPost, path, body) }
	post("/v1/queues/orders/messages:send", `{"messages":[{"messageId":"m<1>","json":{"a": [1, 2.50]},"timeToLive":"3601.25s","properties":{
		"s":"t<\u0001\ud83d\ude00","b":true,"n":null,"i":-5,"d":1.5,"two":2.0,"huge":1e300,
		"u":{"type":"uuid","value":"00000000-0000-0000-0000-000000000001"},"by":{"type":"byte","value":7},"c":{"type":"char","value":"é"},
		"i16":{"type":"int16","value":-3},"u64":{"type":"uint64","value":"18446744073709551615"},"f":{"type":"float","value":0.1},
		"nan":{"type":"double","value":"NaN"},"inf":{"type":"float","value":"-Infinity"},"dec":{"type":"decimal","value":"1.50"},
		"uri":{"type":"uri","value":"http://x"},"dt":{"type":"datetime","value":"2026-01-02T03:04:05Z"},
		"ts":{"type":"timespan","value":"-1.5s"},"half":{"type":"char","value":55296},"oct":{"type":"bytes","value":"/w=="}}},
		{"body":"AAE="},{"text":"x","scheduledEnqueueTime":"2100-01-02T03:04:05.25Z"}]}`)
	peeked := post("/v1/queues/orders/messages:peek", `{"maxMessages":10}`)
	lines := strings.TrimSpace(s.ok(t, "peek", "orders", "-o", "json"))
	if want, got := compacted(t, peeked), `{"messages":[`+strings.ReplaceAll(lines, "\n", ",")+"]}"; got != want {
		t.Errorf("peek: got\n%s\nwant\n%s", got, want)
	}
	for what, pair := range map[string][2]string{
		"queue":   {s.call(t, http.MethodGet, "/v1/queues/orders", ""), s.ok(t, "entity", "show", "orders", "-o", "json")},
		"queues":  {s.call(t, http.MethodGet, "/v1/queues", ""), s.ok(t, "entity", "list", "-o", "json")},
		"runtime": {s.call(t, http.MethodGet, "/v1/queues/orders/runtime", ""), unwrapped(s.ok(t, "stats", "orders", "-o", "json"))},
	} {
		if want, got := compacted(t, pair[0]), compacted(t, pair[1]); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
		}
	}
}

// unwrapped takes the counts of one queue out of the document of stats.
func unwrapped(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), `{"queues":[{"name":"orders",`)
	return "{" + strings.TrimSuffix(text, "]}")
}

// compacted gives JSON without spaces and with one way of escaping.
func compacted(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return strings.ReplaceAll(out.String(), "\u2028", `\u2028`)
}

func (s *served) call(t *testing.T, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.http+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := (&http.Transport{}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s %v", method, path, response.StatusCode, text, err)
	}
	return string(text)
}
