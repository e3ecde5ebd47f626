package main

import (
	"slices"
	"strings"
)

// failures are the answers of calls that fail: status, and the reasons with it. A test of proxy/wireerror compares them
// with the table that the sidecar uses.
var failures = []struct {
	status  string
	reasons string
}{
	{
		"400",
		"INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, INVALID_OPERATION, SESSION_REQUIRED, SESSION_ID_MISSING, SESSION_NOT_SUPPORTED, " +
			"PARTITION_KEY_MISMATCH, FILTER_INVALID, ACTION_INVALID, FORWARD_DESTINATION_INVALID, TRANSACTION_TOO_LARGE",
	},
	{"401", "UNAUTHENTICATED"},
	{"403", "PERMISSION_DENIED"},
	{"404", "ENTITY_NOT_FOUND, MESSAGE_NOT_FOUND, RULE_NOT_FOUND, ROUTE_NOT_FOUND, TRANSACTION_NOT_FOUND"},
	{"405", "ROUTE_NOT_FOUND"},
	{"408", "SERVICE_TIMEOUT"},
	{"409", "ENTITY_ALREADY_EXISTS, RULE_ALREADY_EXISTS, CONFLICT_IN_PROGRESS, PROPERTY_IMMUTABLE, ENTITY_DISABLED, " +
		"SESSION_CANNOT_BE_LOCKED, TRANSACTION_TIMED_OUT, NO_MATCHING_SUBSCRIPTION"},
	{"410", "MESSAGE_LOCK_LOST, SESSION_LOCK_LOST"},
	{"412", "PRECONDITION_FAILED"},
	{"413", "MESSAGE_SIZE_EXCEEDED, SESSION_STATE_TOO_LARGE"},
	{"421", "INVALID_ARGUMENT"},
	{"429", "THROTTLED"},
	{"499", "CANCELLED"},
	{"500", "INTERNAL"},
	{"503", "STORE_UNAVAILABLE, DURABILITY_NOT_MET, PAYLOAD_KEY_MISSING"},
	{"504", "SERVICE_TIMEOUT"},
	{"507", "ENTITY_FULL, QUOTA_EXCEEDED"},
}

// meanings are what a status means where its reasons do not say it.
var meanings = map[string]string{
	"405": "The route exists, but not with this method; Allow lists the methods.",
	"408": "The body of the request did not arrive in time.",
	"421": "The host of the request is not served; see --allowed-hosts.",
}

// everywhere are the statuses that every call can have.
var everywhere = []string{"400", "401", "403", "404", "408", "413", "421", "429", "500", "503", "504"}

// statusesOf lists the statuses that a call which fails can have.
func statusesOf(method, path string) []string {
	statuses := slices.Clone(everywhere)
	_, verb, isVerb := strings.Cut(path, ":")
	switch {
	case !isVerb && method == "get", !isVerb && method == "delete":
		statuses = append(statuses, "409") // another one is being deleted
	case !isVerb:
		statuses = append(statuses, "409", "412", "507")
	case verb == "send" || verb == "request" || verb == "resubmit":
		statuses = append(statuses, "409", "410", "507")
	default:
		statuses = append(statuses, "409", "410", "412", "507")
	}
	slices.Sort(statuses)
	return statuses
}

// failureResponses are the components that the operations refer to.
func failureResponses() object {
	all := object{}
	for _, f := range failures {
		text := "Reason " + f.reasons + "."
		if strings.Contains(f.reasons, ",") {
			text = "One of the reasons " + f.reasons + "."
		}
		if meaning := meanings[f.status]; meaning != "" {
			text = meaning + " " + text
		}
		response := object{"description": text, "content": inJSON(object{"$ref": schemas + "Error"})}
		if f.status == "429" || f.status == "503" {
			response["headers"] = object{"Retry-After": object{
				"description": "Seconds after which to try again.", "schema": object{"type": "integer"},
			}}
		}
		all["Failure"+f.status] = response
	}
	return all
}
