package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestVerbsRefuse(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	tests := map[string]struct {
		args []string
		code int
		text string
	}{
		"no queue":             {[]string{"send"}, exitUsage, "<queue>"},
		"unknown queue":        {[]string{"send", "none", "x"}, exitFailure, `sidebus: ENTITY_NOT_FOUND: entity "none" does not exist; create it first` + "\n"},
		"bad name":             {[]string{"peek", "a b"}, exitFailure, "INVALID_ARGUMENT: name"},
		"unknown topic":        {[]string{"peek", "topics/t"}, exitFailure, `ENTITY_NOT_FOUND: entity "t" does not exist`},
		"unknown subscription": {[]string{"receive", "topics/t/subscriptions/s"}, exitFailure, `ENTITY_NOT_FOUND`},
		"bad output":           {[]string{"stats", "-o", "xml"}, exitUsage, "--output"},
		"no time":              {[]string{"stats", "--timeout=0s"}, exitUsage, "--timeout"},
		"bad property":         {[]string{"send", "orders", "x", "-p", "n:int=5"}, exitUsage, "the types are null, string"},
		"bad number":           {[]string{"send", "orders", "x", "-p", "n:byte=many"}, exitUsage, "the value is no byte"},
		"property of no range": {[]string{"send", "orders", "x", "-p", "n:byte=256"}, exitFailure, "INVALID_ARGUMENT"},
		"property twice":       {[]string{"send", "orders", "x", "-p", "n=1", "-p", "n=2"}, exitUsage, "twice"},
		"bad ttl":              {[]string{"send", "orders", "x", "--ttl=soon"}, exitUsage, "--ttl is"},
		"zero ttl":             {[]string{"send", "orders", "x", "--ttl=0"}, exitFailure, "ARGUMENT_OUT_OF_RANGE"},
		"bad at":               {[]string{"send", "orders", "x", "--at=noon"}, exitUsage, "--at is"},
		"bad in":               {[]string{"send", "orders", "x", "--in=noon"}, exitUsage, "--in is"},
		"at and in":            {[]string{"send", "orders", "x", "--in=1s", "--at=2030-01-01T00:00:00Z"}, exitUsage, "--at"},
		"lines and bodies":     {[]string{"send", "orders", "x", "--lines"}, exitUsage, "--lines"},
		"file and bodies":      {[]string{"send", "orders", "x", "--file=y"}, exitUsage, "--file"},
		"one id for many":      {[]string{"send", "orders", "x", "y", "--message-id=m"}, exitUsage, "--message-id"},
		"too few":              {[]string{"receive", "orders", "--max=0"}, exitUsage, "--max"},
		"too many":             {[]string{"receive", "orders", "--max=1001"}, exitUsage, "--complete or --delete"},
		"two ends":             {[]string{"receive", "orders", "--complete", "--abandon"}, exitUsage, "--abandon"},
		"too long":             {[]string{"receive", "orders", "--wait=301s"}, exitFailure, "ARGUMENT_OUT_OF_RANGE"},
		"unlike states":        {[]string{"peek", "orders", "--state=odd"}, exitUsage, "--state"},
		"negative":             {[]string{"peek", "orders", "--max=-1"}, exitUsage, "--max"},
		"unknown option":       {[]string{"entity", "create", "q", "--set", "lockduration=3s"}, exitUsage, "the options of a queue are lockDuration"},
		"bad option":           {[]string{"entity", "create", "q", "--set", "lockDuration=never"}, exitUsage, "lockDuration is"},
		"option twice":         {[]string{"entity", "create", "q", "--set", "status=ACTIVE", "--set", "status=DISABLED"}, exitUsage, "twice"},
		"bad status":           {[]string{"entity", "create", "q", "--set", "status=odd"}, exitUsage, "ACTIVE, DISABLED"},
		"out of range":         {[]string{"entity", "create", "q", "--set", "lockDuration=1h"}, exitFailure, "ARGUMENT_OUT_OF_RANGE: lockDuration"},
		"immutable":            {[]string{"entity", "update", "orders", "--set", "requiresDuplicateDetection=true"}, exitFailure, "PROPERTY_IMMUTABLE"},
		"nothing to update":    {[]string{"entity", "update", "orders"}, exitUsage, "--set"},
		"a name of the API":    {[]string{"entity", "create", "q", "--set", "createdAt=2030-01-01T00:00:00Z"}, exitUsage, "no option"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.verb(t, nil, test.args...).wants(t, test.code, test.text)
		})
	}
	s.ok(t, "entity", "create", "closed", "--set", "status=DISABLED")
	s.verb(t, nil, "send", "closed", "x").wants(t, exitFailure, "ENTITY_DISABLED", `"sidebus entity update closed --set status=ACTIVE" does that`)
}

func TestOddNames(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	for _, name := range []string{"a/b", "queues/list", "Case.d-x_1/2"} {
		resource := "queues/" + name
		s.verb(t, nil, "entity", "create", resource).wants(t, exitClean, "created "+resource)
		s.ok(t, "send", resource, "in "+name)
		escaped := "queues/" + strings.ReplaceAll(name, "/", "%2F")
		s.wantTexts(t, []string{"in " + name}, escaped)
		s.verb(t, typing(name+"\n"), "purge", escaped).wants(t, exitClean, "removed 1 message from "+resource)
		if got := s.ok(t, "dlq", resource, "count"); got != "0\n" {
			t.Errorf("%s: got %q", name, got)
		}
		if got := decoded(t, s.ok(t, "stats", escaped, "-o", "json")); got[0]["queues"].([]any)[0].(map[string]any)["name"] != name {
			t.Errorf("%s: got %v", name, got)
		}
	}
	s.verb(t, nil, "entity", "show", "100%").wants(t, exitFailure, "INVALID_ARGUMENT")
}

func TestEmptyResults(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	for _, args := range [][]string{
		{"receive", "orders"},
		{"receive", "orders", "--dlq", "--delete"},
		{"peek", "orders"},
		{"peek", "orders", "--state=locked"},
		{"dlq", "orders", "list"},
	} {
		for _, form := range []string{"table", "json"} {
			got := s.verb(t, nil, append(args, "-o", form)...)
			if got.wants(t, exitClean, "no messages in "); got.stdout != "" {
				t.Errorf("%q: got %q, want nothing", args, got.stdout)
			}
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	const hint = `start one with "sidebus serve"`
	gone := &served{grpc: "127.0.0.1:1"}
	gone.verb(t, nil, "stats").wants(t, exitFailure, "no sidecar answers at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; "+hint)
	socket := &served{grpc: "unix://" + t.TempDir() + "/none.sock"}
	socket.verb(t, nil, "peek", "q").wants(t, exitFailure, "no sidecar answers at "+socket.grpc, hint)
	(&served{grpc: "nowhere"}).verb(t, nil, "stats").wants(t, exitFailure, `--grpc-addr is "nowhere", must be host:port or unix:///path`)

	other := &served{grpc: serveMemory(t).http}
	other.verb(t, nil, "stats").wants(t, exitFailure, "no sidecar answers at "+other.grpc)

	deaf, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	(&served{grpc: deaf.Addr().String()}).verb(t, nil, "stats", "--timeout=50ms").wants(t, exitFailure, "did not answer within 50ms", "--timeout")
	serveFake(t, &fake{}).verb(t, nil, "entity", "list").wants(t, exitFailure, "does not know this verb")
}

func TestUnixSocketAndEnvironment(t *testing.T) {
	s := serveMemory(t)
	t.Setenv("SIDEBUS_GRPC_ADDR", s.grpc)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"stats"}, terminal{stdout: &stdout, stderr: &stderr}); code != exitClean || !strings.Contains(stdout.String(), "orders") {
		t.Errorf("got exit code %d, %s%s", code, &stdout, &stderr)
	}
	file := writeFile(t, "store: memory\ngrpc-addr: "+s.grpc+"\n")
	t.Setenv("SIDEBUS_GRPC_ADDR", "")
	if code := run(t.Context(), []string{"stats", "--config", file}, terminal{stdout: &stdout, stderr: &stderr}); code != exitClean {
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
