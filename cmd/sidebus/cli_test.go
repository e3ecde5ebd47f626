package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/test/filetest"
)

func runLine(t *testing.T, args []string, to terminal.Streams) int {
	t.Helper()
	return cli.Run(t.Context(), &grammar{}, args, to)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	bad := filetest.Write(t, "no-such-key: 1\n")
	outside := filetest.Write(t, "store: memory\ndrain-timeout: 2h\n")
	tests := map[string]struct {
		args []string
		want int
		text string
	}{
		"no verb":            {nil, cli.Usage, `"sidebus --help" lists the commands`},
		"no argument":        {[]string{"send"}, cli.Usage, `Run "sidebus send --help"`},
		"no verb of a group": {[]string{"dlq"}, cli.Usage, `Run "sidebus dlq --help"`},
		"flag before verb":   {[]string{"--grpc-addr=h:1", "stats"}, cli.Usage, `Flags follow the command`},
		"no address":         {[]string{"stats", "--grpc-addr=h"}, cli.Usage, "must be host:port"},
		"no admin address":   {[]string{"wait", "--admin-addr=h"}, cli.Usage, "must be host:port"},
		"unknown verb":       {[]string{"fly"}, cli.Usage, "fly"},
		"unknown flag":       {[]string{"serve", "--fly"}, cli.Usage, "--fly"},
		"no such feature":    {[]string{"serve", "--mqtt-addr=:1"}, cli.Usage, "--mqtt-addr"},
		"flag of wrong type": {[]string{"serve", "--redis-pool-size=many"}, cli.Usage, "--redis-pool-size"},
		"help":               {[]string{"--help"}, cli.Clean, ""},
		"help of a verb":     {[]string{"serve", "--help"}, cli.Clean, ""},
		"version":            {[]string{"version"}, cli.Clean, ""},
		"bad file":           {[]string{"serve", "--config", bad}, cli.Failure, "no-such-key"},
		"no file":            {[]string{"serve", "--config", bad + "x"}, cli.Failure, "--config"},
		"out of bounds":      {[]string{"serve", "--redis-pool-size=0"}, cli.Failure, "--redis-pool-size"},
		"bound in a file":    {[]string{"serve", "--config", outside}, cli.Failure, outside + ":2: --drain-timeout is 2h, must be 0s to 1h"},
		"log level":          {[]string{"serve", "--log-level=loud"}, cli.Failure, "--log-level"},
		"log format":         {[]string{"serve", "--log-format=xml"}, cli.Failure, "--log-format"},
		"max entities":       {[]string{"serve", "--max-entities=-1"}, cli.Failure, "--max-entities"},
		"socket mode":        {[]string{"serve", "--socket-mode=0060"}, cli.Failure, "--socket-mode is \"0060\", must be octal"},
		"ttl sweep":          {[]string{"serve", "--ttl-sweep=never"}, cli.Failure, "must be eager or lazy"},
		"durability":         {[]string{"serve", "--durability=tape"}, cli.Failure, "must be memory, disk or replica"},
		"DUR-3 in memory":    {[]string{"serve", "--store=memory", "--durability=disk"}, cli.Failure, "keeps messages in memory only"},
		"DUR-3 embedded":     {[]string{"serve", "--durability=replica"}, cli.Failure, "has no replicas; use disk"},
		"sentinel":           {[]string{"serve", "--store=redis+sentinel://h:1"}, cli.Failure, "must have the name of the primary"},
		"cluster":            {[]string{"serve", "--store=redis+cluster://h"}, cli.Failure, "must have a host and a port for each server"},
		"store scheme":       {[]string{"serve", "--store=http://h"}, cli.Failure, "redis://"},
		"store word":         {[]string{"serve", "--store=disk"}, cli.Failure, "embedded or memory"},
		"password file":      {[]string{"serve", "--store=redis://h", "--redis-password-file", bad + "x"}, cli.Failure, "--redis-password-file"},
		"TLS file":           {[]string{"serve", "--store=rediss://h", "--redis-tls-ca-file", bad}, cli.Failure, "PEM"},
		"nobody to wait for": {[]string{"wait", "--timeout=50ms", "--admin-addr=127.0.0.1:1"}, cli.Failure, "127.0.0.1:1"},
		"nobody to drain":    {[]string{"drain", "--admin-addr=127.0.0.1:1"}, cli.Failure, "127.0.0.1:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			got := runLine(t, test.args, terminal.Streams{Stdout: &stdout, Stderr: &stderr})
			if got != test.want || !strings.Contains(stderr.String(), test.text) {
				t.Errorf("got exit code %d and %q; want %d and %q", got, &stderr, test.want, test.text)
			}
		})
	}
}

// A sidecar that takes the connection and does not answer was asked all the same.
func TestWaitForASilentSidecar(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // the kernel takes connections
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // it served no client
	var stderr bytes.Buffer
	got := runLine(t, []string{"wait", "--timeout=50ms", "--admin-addr", silent.Addr().String()}, terminal.Streams{Stdout: io.Discard, Stderr: &stderr})
	if got != cli.Failure || !strings.Contains(stderr.String(), "within 50ms: it did not answer") {
		t.Errorf("got exit code %d and %q", got, &stderr)
	}
}

func TestVersionSaysWhat(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if code := runLine(t, []string{"version"}, terminal.Streams{Stdout: &stdout, Stderr: &stderr}); code != cli.Clean {
		t.Fatalf("got exit code %d: %s", code, &stderr)
	}
	if got := stdout.String(); !strings.HasPrefix(got, "sidebus ") || !strings.Contains(got, "go1.") {
		t.Errorf("got %q", got)
	}
}

// What the command line is refused for must not repeat an address on it.
func TestAUTH_3_ErrorsOfTheCommandLineShowNoSecret(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"redis://:s3crt9x@h", "redis://u:s3cr t9x@h", "u:s3cr@t9x@h", "redis://u:s3cr%zz\"t9x@h"} {
		for _, args := range [][]string{
			{"serve", "--store=" + store, "--redis-tls-cert-file=x"},
			{"serve", store},
			{store},
			{"serve", "--store", "embedded", store},
			{"serve", "--stroe=" + store},
			{"serve", "--store=" + store, "--redis-pool-size=many"},
			{"serve", "--redis-pool-size=" + store},
			{"serve", "--http-addr=" + store, "--redis-pool-size=0"},
			{"serve", "--namespace=" + store, "--redis-pool-size=0"},
			{"serve", "--config=" + filetest.Write(t, "store: {\n"+store)},
			{"serve", "--config=" + filetest.Write(t, "redis-pool-size: '"+store+"'\n")},
		} {
			var stdout, stderr bytes.Buffer
			code := runLine(t, args, terminal.Streams{Stdout: &stdout, Stderr: &stderr})
			if all := stdout.String() + stderr.String(); code == cli.Clean || strings.Contains(all, "s3cr") || strings.Contains(all, "t9x") {
				t.Errorf("%q: exit code %d and %q", args, code, all)
			}
		}
	}
}

func printed(t *testing.T, code int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := runLine(t, args, terminal.Streams{Stdout: &stdout, Stderr: &stderr}); got != code {
		t.Errorf("%q: exit code %d, want %d: %s", args, got, code, &stderr)
	}
	return stdout.String() + stderr.String()
}

func TestVersionFlag(t *testing.T) {
	t.Parallel()
	if got, want := printed(t, cli.Clean, "--version"), printed(t, cli.Clean, "version"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHelpOfAVerb(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"send"}, {"dlq", "list"}, {"entity", "create"}, nil} {
		want := printed(t, cli.Clean, append(args, "--help")...)
		if got := printed(t, cli.Clean, append([]string{"help"}, args...)...); got != want || got == "" {
			t.Errorf("help %q: got %q, want %q", args, got, want)
		}
	}
	printed(t, cli.Usage, "help", "nope")
}

// helpTexts are all pages of help.
func helpTexts(t *testing.T) string {
	t.Helper()
	parser, err := kong.New(&grammar{}, settings.Vars(), kong.Vars{"version": "v"}, settings.Durations())
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString(printed(t, cli.Clean, "--help"))
	for _, leaf := range parser.Model.Leaves(true) {
		var words []string
		for node := leaf; node.Type != kong.ApplicationNode; node = node.Parent {
			words = append([]string{node.Name}, words...)
		}
		fmt.Fprintf(&text, "\n## %s\n\n%s", strings.Join(words, " "), printed(t, cli.Clean, append(words, "--help")...))
	}
	return text.String()
}

// The help of every verb is what it was. UPDATE=1 writes it anew: read the difference as a user would.
func TestHelpIsGolden(t *testing.T) {
	t.Parallel()
	const golden = "testdata/help.txt"
	got := helpTexts(t)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("help differs from %s; UPDATE=1 rewrites it (-want +got)\n%s", golden, diff)
	}
	if id := regexp.MustCompile(`\b[A-Z]{3,9}-\d+\b`).FindString(strings.ReplaceAll(got, "ISO-8601", "")); id != "" {
		t.Errorf("help has the id of a rule, %s", id)
	}
	for _, word := range []string{"whoever", "nobody", "somebody", "anew", "says whether", "in hand", "passed over", "by itself", "it is no "} {
		if strings.Contains(got, word) {
			t.Errorf("help has %q, which docs/contributing/writing.md replaces", word)
		}
	}
}

func TestNegativeNumbersNameTheirBound(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"peek", "orders", "--max", "-1"}, {"peek", "orders", "--max=-1"}, {"peek", "orders", "-n", "-1"}} {
		if got := printed(t, cli.Usage, args...); got != "sidebus: --max is -1, must be 0 (all) or more\n" {
			t.Errorf("%q: got %q", args, got)
		}
	}
	if got := printed(t, cli.Usage, "receive", "orders", "--max", "-1"); !strings.Contains(got, "--max is -1, must be 1 to 1000") {
		t.Errorf("got %q", got)
	}
}

// What the parser says is said as everything else is: the name, the value, what is permitted, what to do next.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"dlq list":                    "missing argument <queue>\nRun \"sidebus dlq list --help\" for arguments and flags.\n",
		"dlq ls":                      "missing argument <queue>\nRun \"sidebus dlq list --help\" for arguments and flags.\n",
		"dlq":                         "missing command, one of \"list\", \"count\", \"resubmit\", \"edit\", \"delete\"\nRun \"sidebus dlq --help\" for its commands.\n",
		"dlq show":                    "there is no command \"show\"\nRun \"sidebus dlq --help\" for its commands.\n",
		"sned orders":                 "there is no command \"sned\"; did you mean \"send\"?\nRun \"sidebus --help\" for the commands and \"sidebus COMMAND --help\" for their flags.\n",
		"peek orders more":            "unexpected argument more\nRun \"sidebus peek --help\" for arguments and flags.\n",
		"peek orders --max x":         "--max is \"x\", must be a whole number\n",
		"receive orders --number 1,x": "--number is \"x\", must be a whole number\n",
		"receive orders --wait 5":     "--wait is \"5\", must be a duration such as 30s, 1d2h30m, 7d or PT30S\n",
		"peek orders --max":           "--max has no value\n",
		"peek orders --state lost":    "--state is \"lost\", must be one of available, locked, deferred, scheduled\n",
		"completion tcsh":             "<shell> is \"tcsh\", must be one of bash, zsh, fish\n",
		"serve --rate-limit=x":        "--rate-limit is \"x\", must be a number\n",
		"serve --pprof=on":            "--pprof is \"on\", must be true or false\n",
	} {
		if got := printed(t, cli.Usage, strings.Fields(args)...); !strings.HasPrefix(got, "sidebus: "+want) {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
	file := filetest.Write(t, "drain-timeout: soon\n")
	got := printed(t, cli.Failure, "serve", "--config", file)
	if want := "sidebus: " + file + ":1: --drain-timeout is \"soon\", must be a duration"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDurationsOfFlags(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"400s": "--wait is 400s, must be 0s to 5m", "1d": "--wait is 1d, must be 0s to 5m", "P7D": "--wait is 7d, must be 0s to 5m",
		"1d2h30m": "--wait is 1d2h30m, must be", "-5s": "--wait is -5s, must be", "soon": `wait is "soon", must be a duration such as 30s, 1d2h30m, 7d or PT30S`,
	} {
		if got := printed(t, cli.Usage, "receive", "orders", "--wait", text); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestMisspeltVariables(t *testing.T) {
	for name, value := range map[string]string{
		"SIDEBUS_GRPC_ADR": "x", "SIDEBUS_NAMESPCE": "y", "SIDEBUS_COLOUR_OF_THE_BUS": "z", "SIDEBUS_TEST_ONLY": "1", "SIDEBUS_PORT_7420_TCP": "tcp://10.0.0.1:7420",
		"SIDEBUS_SERVICE_HOST": "10.0.0.1", "SIDEBUS_REDIS_PASSWORD": "p", "SIDEBUS_LOG_LEVEL": "info",
	} {
		t.Setenv(name, value)
	}
	got := printed(t, cli.Clean, "version")
	for _, want := range []string{
		"warning: the variable SIDEBUS_GRPC_ADR is not a setting and is ignored; did you mean SIDEBUS_GRPC_ADDR?\n",
		"warning: the variable SIDEBUS_NAMESPCE is not a setting and is ignored; did you mean SIDEBUS_NAMESPACE?\n",
		"warning: the variable SIDEBUS_COLOUR_OF_THE_BUS is not a setting and is ignored\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if n := strings.Count(got, "warning"); n != 3 {
		t.Errorf("%d warnings, want 3: %s", n, got)
	}
	if log := printed(t, cli.Failure, "serve", "--store=disk", "--log-format=json"); !strings.Contains(log, "did you mean SIDEBUS_NAMESPACE?") || strings.Contains(log, "password") {
		t.Errorf("serve: got %s", log)
	}
}
