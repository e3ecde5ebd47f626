// Command finishopenapi makes an OpenAPI document say what its generator cannot: the JSON form of typed properties, of
// embedded JSON, and of failures; operations by name; no routes that only refuse. generate.sh runs it.
//
//	finishopenapi FILE
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

type object = map[string]any

const valueText = `A string, bool, number or null as it is (a number without fraction is an int64, any other a double), ` +
	`else {"type":"uuid","value":"..."} with one of the types of MSG-12.`

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: finishopenapi FILE"))
	}
	if err := finish(os.Args[1]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "finishopenapi:", err)
	os.Exit(1)
}

func finish(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the file to work on
	if err != nil {
		return err
	}
	var document object
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	definitions := document["definitions"].(object)
	definitions["sidebusV1Value"] = object{"title": "One application property with its exact type", "description": valueText}
	delete(definitions, "protobufNullValue")
	for _, message := range []string{"v1Message", "v1ReceivedMessage"} {
		fields := definitions[message].(object)["properties"].(object)
		fields["json"] = object{"description": "Any JSON value, kept byte for byte."} // no type: any
	}
	definitions["Error"] = object{
		"type": "object",
		"properties": object{
			"reason":       object{"type": "string", "description": "A word of the closed set of reasons; programs switch on it."},
			"message":      object{"type": "string", "description": "For people."},
			"retryable":    object{"type": "boolean", "description": "The same call may succeed later."},
			"retryAfterMs": object{"type": "integer", "description": "0 when nothing is known."},
			"details":      object{"type": "object", "additionalProperties": object{"type": "string"}},
		},
	}
	failure := object{"description": "A failure.", "schema": object{"$ref": "#/definitions/Error"}}
	paths := document["paths"].(object)
	for path, methods := range paths {
		if onlyRefuses(path) {
			delete(paths, path)
			continue
		}
		for _, operation := range methods.(object) {
			o := operation.(object)
			o["responses"].(object)["default"] = failure
			o["operationId"] = nameOf(o["operationId"].(string), path)
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644) //nolint:gosec // a source file
}

const (
	ofTopic        = "/v1/topics/{topic}/"
	ofSubscription = ofTopic + "subscriptions/{subscription}/"
)

// sends are the verbs that a subscription refuses. A topic refuses the others, but for what shows its scheduled messages.
var sends = []string{"messages:send", "messages:cancelScheduled", "messages:request"}

// onlyRefuses tells the routes that exist so that who takes them is told why not (TOPIC-8).
func onlyRefuses(path string) bool {
	if verb, ok := strings.CutPrefix(path, ofSubscription); ok {
		return slices.Contains(sends, verb)
	}
	verb, ok := strings.CutPrefix(path, ofTopic)
	isOfMessages := strings.HasPrefix(verb, "messages:") || strings.HasPrefix(verb, "sessions")
	return ok && isOfMessages && verb != "messages:peek" && !slices.Contains(sends, verb)
}

// nameOf gives an operation that exists for several kinds of entities a name instead of a number: Send2 becomes TopicSend.
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
