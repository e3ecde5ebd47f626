package main

import (
	"slices"
	"strings"
)

// Where parts of a document of version 2, and of version 3, are.
const (
	definitions = "#/definitions/"
	schemas     = "#/components/schemas/"
)

// convert makes a document of OpenAPI 3.0 of one of version 2, as far as the generator writes it.
func convert(v2 object) object {
	paths := object{}
	for path, methods := range v2["paths"].(object) {
		converted := object{}
		for method, operation := range methods.(object) {
			converted[method] = convertOperation(method, path, operation.(object))
		}
		paths[path] = converted
	}
	return moveReferences(object{
		"openapi": "3.0.3", "info": v2["info"], "tags": tagsIn(v2["tags"].([]any), paths), "paths": paths,
		"servers": []any{object{"url": "http://127.0.0.1:7420", "description": "The sidecar, as --http-addr says."}},
		"components": object{
			"schemas": v2["definitions"], "responses": failureResponses(),
			"securitySchemes": object{"sharedAccess": object{
				"type": "apiKey", "in": "header", "name": "Authorization",
				"description": "A shared access signature, with --sas-keys-file only.",
			}},
		},
		"security": []any{object{}, object{"sharedAccess": []any{}}},
	}).(object)
}

func convertOperation(method, path string, operation object) object {
	responses := object{}
	for status, response := range operation["responses"].(object) {
		if status != "default" {
			r := response.(object)
			responses[status] = object{"description": r["description"], "content": inJSON(r["schema"])}
		}
	}
	for _, status := range statusesOf(method, path) {
		responses[status] = object{"$ref": "#/components/responses/Failure" + status}
	}
	operation["responses"] = responses
	parameters := []any{}
	for _, parameter := range asList(operation["parameters"]) {
		p := parameter.(object)
		if p["in"] == "body" {
			operation["requestBody"] = object{"required": p["required"], "content": inJSON(p["schema"])}
			continue
		}
		schema := object{"type": p["type"]}
		if format, ok := p["format"]; ok {
			schema["format"] = format
		}
		delete(p, "type")
		delete(p, "format")
		p["schema"] = schema
		parameters = append(parameters, p)
	}
	operation["parameters"] = parameters
	return operation
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

// inJSON is the content of a body.
func inJSON(schema any) object { return object{"application/json": object{"schema": schema}} }

// moveReferences points references at where schemas are in version 3. What stands beside a reference counts for nothing
// there, so a reference with a description becomes a part of a schema.
func moveReferences(part any) any {
	switch part := part.(type) {
	case object:
		for name, value := range part {
			part[name] = moveReferences(value)
		}
		ref, ok := part["$ref"].(string)
		if !ok {
			return part
		}
		ref = strings.Replace(ref, definitions, schemas, 1)
		if len(part) == 1 {
			return object{"$ref": ref}
		}
		delete(part, "$ref")
		part["allOf"] = []any{object{"$ref": ref}}
	case []any:
		for i, value := range part {
			part[i] = moveReferences(value)
		}
	}
	return part
}

// tagsIn returns the tags that an operation has: a service without routes is not part of the document.
func tagsIn(tags []any, paths object) []any {
	used := map[any]bool{}
	for _, methods := range paths {
		for _, operation := range methods.(object) {
			for _, tag := range operation.(object)["tags"].([]any) {
				used[tag] = true
			}
		}
	}
	return slices.DeleteFunc(tags, func(tag any) bool { return !used[tag.(object)["name"]] })
}
