// Command finishopenapi turns the document of protoc-gen-openapiv2 into one of OpenAPI 3.0, and adds what the generator
// cannot know: the JSON form of typed properties and of embedded JSON, failures with their statuses and reasons,
// operations by name. It leaves out routes that only refuse. generate.sh runs it.
//
//	finishopenapi FROM TO
//
// It removes FROM.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

type object = map[string]any

const valueText = `A string, bool, number or null as it is (a number without fraction is an int64, any other a double), ` +
	`else {"type":"uuid","value":"..."} with the name of its type.`

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: finishopenapi FROM TO"))
	}
	if err := finish(os.Args[1], os.Args[2]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "finishopenapi:", err)
	os.Exit(1)
}

func finish(from, to string) error {
	text, err := os.ReadFile(from) //nolint:gosec // the file to work on
	if err != nil {
		return err
	}
	var document object
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	definitions := document["definitions"].(object)
	definitions["sidebusV1Value"] = object{
		"title":       "One application property with its exact type",
		"description": valueText,
	}
	delete(definitions, "protobufNullValue")
	for _, message := range []string{"v1Message", "v1ReceivedMessage"} {
		fields := definitions[message].(object)["properties"].(object)
		fields["json"] = object{"description": "Any JSON value, kept byte for byte."} // no type: any
	}
	definitions["Error"] = object{
		"type": "object",
		"properties": object{
			"reason": object{
				"type":        "string",
				"description": "A word of the closed set of reasons; programs switch on it.",
			},
			"message":      object{"type": "string", "description": "For people."},
			"retryable":    object{"type": "boolean", "description": "The same call may succeed later."},
			"retryAfterMs": object{"type": "integer", "description": "0 when nothing is known."},
			"details":      object{"type": "object", "additionalProperties": object{"type": "string"}},
		},
	}
	paths := document["paths"].(object)
	for path, methods := range paths {
		if onlyRefuses(path) {
			delete(paths, path)
			continue
		}
		for _, operation := range methods.(object) {
			o := operation.(object)
			o["operationId"] = nameOf(o["operationId"].(string), path)
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(withoutRules(convert(document))); err != nil {
		return err
	}
	if err := os.WriteFile(to, out.Bytes(), 0o644); err != nil { //nolint:gosec // a source file
		return err
	}
	return os.Remove(from)
}

// ruleIDs are the rules that a comment of a .proto file cites. The document stands alone, so they lead nowhere there.
var ruleIDs = regexp.MustCompile(`\s?\([A-Z]{2,}-\d+[a-z]?((,|,? to|,? and)\s[A-Z]{2,}-\d+[a-z]?)*\)`)

// withoutRules removes the citations of rules from all texts of a part of the document.
func withoutRules(part any) any {
	switch part := part.(type) {
	case string:
		return ruleIDs.ReplaceAllString(part, "")
	case object:
		for name, value := range part {
			part[name] = withoutRules(value)
		}
	case []any:
		for i, value := range part {
			part[i] = withoutRules(value)
		}
	}
	return part
}

const (
	ofTopic        = "/v1/topics/{topic}/"
	ofSubscription = ofTopic + "subscriptions/{subscription}/"
)

// sends are the verbs that a subscription refuses. A topic refuses the others, except what shows its scheduled
// messages.
var sends = []string{"messages:send", "messages:cancelScheduled", "messages:request"}

// onlyRefuses reports whether a route exists only to return a helpful error (TOPIC-8).
func onlyRefuses(path string) bool {
	if verb, ok := strings.CutPrefix(path, ofSubscription); ok {
		return slices.Contains(sends, verb)
	}
	verb, ok := strings.CutPrefix(path, ofTopic)
	isOfMessages := strings.HasPrefix(verb, "messages:") || strings.HasPrefix(verb, "sessions")
	return ok && isOfMessages && verb != "messages:peek" && !slices.Contains(sends, verb)
}

// nameOf replaces the number in the name of an operation that exists for several kinds of entities by a name: Send2
// becomes TopicSend.
func nameOf(id, path string) string {
	base := strings.TrimRight(id, "23")
	switch {
	case base == id:
		return id
	case strings.HasPrefix(path, ofSubscription):
		return "Subscription" + base
	default:
		return "Topic" + base
	}
}
