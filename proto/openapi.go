// Package proto is what is on the wire. The definitions are in sidebus/v1 (the API) and sidebus/storage/v1 (the stored
// form of a message), the HTTP routes in http.yaml; generate.sh makes the Go code that is committed beside them.
package proto

import _ "embed" // for OpenAPI

// OpenAPI is the OpenAPI 3.0 document of the HTTP API, as JSON. It must not be changed.
//
//go:embed sidebus/v1/openapi.json
var OpenAPI []byte
