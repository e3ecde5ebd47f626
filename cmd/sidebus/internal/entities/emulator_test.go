package entities

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/inprocess"
)

func TestEmulatorFile(t *testing.T) {
	t.Parallel()
	text := readFile(t, "testdata/Config.json")
	set := mustRead(t, text)
	if diff := cmp.Diff(readFile(t, "testdata/Config.yaml"), yamlOf(t, set)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	want := []string{
		"f:121:5: UserConfig.Logging is ignored: the flags of serve say what is logged",
		"f:6:9: UserConfig.Namespaces[0].Name is ignored: --namespace of serve says which one it is",
		"f:13:15: UserConfig.Namespaces[0].Queues[0].Properties.DuplicateDetectionHistoryTimeWindow is raised to 20s, the least that Sidebus has",
	}
	if diff := cmp.Diff(want, set.Notes); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	api := inprocess.Empty()
	apply(t, api, false, text)
	if again := planOf(t, api, text); again.Unchanged != 7 || len(again.Changes) != 0 {
		t.Errorf("applied again: %+v", again)
	}
}

// The emulator's own parser does not mind the case of keys, nor what is null or left out.
func TestEmulatorFileInOtherForms(t *testing.T) {
	t.Parallel()
	const want = "entities:\n  queues:\n    - name: q\n      defaultMessageTimeToLive: 1h\n      maxDeliveryCount: 3\n" +
		"      duplicateDetectionHistoryTimeWindow: 20s\n      autoDeleteOnIdle: 10m\n"
	for _, text := range []string{
		`{"UserConfig":{"Namespaces":[{"Queues":[{"Name":"q","Properties":{"AutoDeleteOnIdle":"PT10M","LockDuration":null}}]}]}}`,
		`{"userConfig":{"namespaces":[{"name":"x","queues":[{"name":"q","properties":{"autoDeleteOnIdle":"PT10M"}}],"topics":null}],"logging":null}}`,
		"UserConfig:\n  Namespaces:\n  - Queues:\n    - {Name: q, Properties: {AutoDeleteOnIdle: PT10M}}\n",
	} {
		if diff := cmp.Diff(want, yamlOf(t, mustRead(t, text))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
	}
	set := mustRead(t, `{"UserConfig":{"Namespaces":[{"Topics":[{"Name":"t","Subscriptions":[{"Name":"s","Rules":[{"Name":"r","Properties":{
		"FilterType":"sql","SqlFilter":{"SqlExpression":"1=0"},"CorrelationFilter":{"To":"x"},"Action":{"SqlExpression":""}}}]}]}]}]}}`)
	if len(set.Notes) != 1 || !strings.Contains(set.Notes[0], "CorrelationFilter is ignored, since FilterType is sql") || !strings.HasSuffix(yamlOf(t, set), "expression: 1=0\n") {
		t.Errorf("got %s and %q", yamlOf(t, set), set.Notes)
	}
}

func TestErrorsOfEmulatorFiles(t *testing.T) {
	t.Parallel()
	const namespace, rule = `{"UserConfig":{"Namespaces":[{`, `"Topics":[{"Name":"t","Subscriptions":[{"Name":"s","Rules":[{"Name":"r","Properties":`
	for name, c := range map[string]struct{ text, want string }{
		"unknown at the top":  {`{"UserConfig":{},"Other":1}`, `f:1:18: unknown key "Other"; keys are UserConfig`},
		"nothing":             {`{"UserConfig":{}}`, "f:1:2: UserConfig must have Namespaces"},
		"null":                {`{"UserConfig":null}`, "must have UserConfig"},
		"two namespaces":      {`{"UserConfig":{"Namespaces":[{},{}]}}`, "UserConfig.Namespaces has 2 namespaces, must have one"},
		"unknown below":       {namespace + `"Queue":[]}]}}`, `unknown key "UserConfig.Namespaces[0].Queue"; keys are Name, Queues, Topics`},
		"unknown property":    {namespace + `"Queues":[{"Name":"q","Properties":{"LockTime":"PT5S"}}]}]}}`, `unknown key "UserConfig.Namespaces[0].Queues[0].Properties.LockTime"; keys are LockDuration, `},
		"same key":            {namespace + `"Queues":[],"queues":[]}]}}`, "UserConfig.Namespaces[0].queues stands already at f:1:31"},
		"no name":             {namespace + `"Queues":[{"Properties":{}}]}]}}`, "UserConfig.Namespaces[0].Queues[0] must have a name"},
		"bad duration":        {namespace + `"Queues":[{"Name":"q","Properties":{"LockDuration":"P1Y"}}]}]}}`, `Queues[0].Properties.LockDuration is "P1Y", must be a duration`},
		"out of bounds":       {namespace + `"Queues":[{"Name":"q","Properties":{"LockDuration":"PT1S"}}]}]}}`, "Queues[0].Properties.LockDuration: ARGUMENT_OUT_OF_RANGE"},
		"no properties":       {namespace + rule[:len(rule)-len(`,"Properties":`)] + `}]}]}]}]}}`, "Rules[0] must have Properties"},
		"no type":             {namespace + rule + `{}}]}]}]}]}}`, "Rules[0].Properties must have FilterType"},
		"other type":          {namespace + rule + `{"FilterType":"True"}}]}]}]}]}}`, `FilterType is "True", must be Correlation or Sql`},
		"no filter":           {namespace + rule + `{"FilterType":"Sql"}}]}]}]}]}}`, "Rules[0].Properties must have SqlFilter"},
		"bad SQL":             {namespace + rule + `{"FilterType":"Sql","SqlFilter":{"SqlExpression":"a = "}}}]}]}]}]}}`, "Rules[0]: FILTER_INVALID: column 5"},
		"unknown correlation": {namespace + rule + `{"FilterType":"Correlation","CorrelationFilter":{"Color":"x"}}}]}]}]}]}}`, "unknown key"},
		"empty correlation":   {namespace + rule + `{"FilterType":"Correlation","CorrelationFilter":{"To":""}}}]}]}]}]}}`, "FILTER_INVALID"},
	} {
		set, err := read(c.text)
		if err == nil {
			err = set.Check(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
