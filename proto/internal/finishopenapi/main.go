// Command finishopenapi makes an OpenAPI document say what its generator cannot: the JSON form of typed properties, of
// embedded JSON, and of failures. generate.sh runs it.
//
//	finishopenapi FILE
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
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
	for _, methods := range document["paths"].(object) {
		for _, operation := range methods.(object) {
			operation.(object)["responses"].(object)["default"] = failure
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
