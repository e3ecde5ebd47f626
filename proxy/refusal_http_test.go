package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics/memstore"
)

// wrong is JSON that does not fit a field of the kind.
var wrong = map[string][]string{
	"string":  {`5`, `true`, `[]`, `{}`, `"\ud800"`},
	"bool":    {`"true"`, `1`, `[]`, `{}`},
	"integer": {`"x"`, `""`, `1.5`, `true`, `[]`, `{}`, `"1e99999999"`},
	"instant": {`5`, `true`, `"x"`, `""`, `"2026-01-01"`, `"2026-01-01T00:00:00"`, `"2026-02-30T00:00:00Z"`, `"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59-01:00"`, `"never"`, `{}`, `[]`},
	// a duration that cannot be "never"
	"span":     {`5`, `true`, `"x"`, `""`, `"never"`, `"1 minute"`, `"0.1ns"`, `{}`, `[]`},
	"duration": {`5`, `true`, `"x"`, `""`, `"1 minute"`, `"P1Y"`, `"PT"`, `"P"`, `"0.1ns"`, `{}`, `[]`},
	"enum":     {`"NOPE"`, `99`, `true`, `""`, `[]`, `{}`},
	"base64":   {`"*"`, `5`, `true`, `[]`, `"YQ=\n="`},
	"property": {`[]`, `{}`, `{"type":"nope","value":1}`, `{"type":"uuid"}`, `{"value":1}`, `{"type":"uuid","value":"x"}`, `{"type":"byte","value":256}`, `{"type":"int16","value":1.5}`, `{"type":"bool","value":"true"}`, `{"type":"null","value":1}`, `{"type":"char","value":"ab"}`, `{"type":"int32","value":1,"x":2}`, `{"type":"datetime","value":"today"}`, `{"type":"timespan","value":"50ns"}`, `{"type":"decimal","value":"1e5"}`, `{"type":5,"value":1}`, `{"type":"float","value":"x"}`, `{"type":"uint64","value":-1}`, `9223372036854775808`, `1e999`},
	"list":     {`{}`, `"x"`, `5`},
	"integers": {`{}`, `"x"`, `5`, `[null]`, `["x"]`, `[1.5]`, `[1,true]`, `[[1]]`, `[{}]`},
	"strings":  {`{}`, `"x"`, `5`, `[null]`, `[5]`, `["a",{}]`},
	"enums":    {`{}`, `"DEFERRED"`, `1`, `["NOPE"]`, `[99]`, `[null]`, `["deferred"]`, `[-1]`},
	"object":   {`[]`, `"x"`, `5`},

	"token": { // of a session's lock
		`5`, `true`, `[]`, `{}`, `""`, `"x"`, `"\ud800"`, `"` + nobodysToken[:35] + `"`, `" ` + nobodysToken + `"`, `"{` + nobodysToken + `}"`,
		`"` + nobodysToken[:35] + `g"`, `"00000000-0000-0000-0000-000000000000"`, `["` + nobodysToken + `"]`,
	},
	"sessionId": {`5`, `true`, `[]`, `{}`, `""`, `"\ud800"`, `"` + strings.Repeat("x", 129) + `"`, `"` + strings.Repeat("😀", 64) + `x"`},
}

// refusedFields are the fields of each request by kind.
var refusedFields = []struct {
	method, path, frame string // frame holds the field at %s
	fields              map[string]string
}{
	{http.MethodPost, verbPath + "send", `{"messages":[{%s}]}`, map[string]string{
		"messageId": "string", "sessionId": "string", "partitionKey": "string", "correlationId": "string", "subject": "string",
		"to": "string", "replyTo": "string", "replyToSessionId": "string", "contentType": "string", "timeToLive": "duration",
		"properties": "object", "body": "base64", "text": "string", "scheduledEnqueueTime": "instant", "priority": "integer",
	}},
	{http.MethodPost, verbPath + "send", `{"messages":[{"properties":{%s}}]}`, map[string]string{"p": "property"}},
	{http.MethodPost, verbPath + "send", `{%s}`, map[string]string{"messages": "list", "target": "string"}},
	{http.MethodPost, verbPath + "cancelScheduled", `{%s}`, map[string]string{"sequenceNumbers": "integers", "messageIds": "strings"}},
	{http.MethodPost, verbPath + "receive", `{%s}`, map[string]string{
		"maxMessages": "integer", "maxWait": "span", "mode": "enum", "subQueue": "enum", "sessionLockToken": "token",
	}},
	{http.MethodPost, verbPath + "receiveDeferred", `{%s}`, map[string]string{
		"sequenceNumbers": "integers", "mode": "enum", "subQueue": "enum", "sessionLockToken": "token",
	}},
	{http.MethodPost, verbPath + "receiveBySequence", `{%s}`, map[string]string{
		"sequenceNumbers": "integers", "mode": "enum", "subQueue": "enum",
	}},
	{http.MethodPost, verbPath + "peek", `{%s}`, map[string]string{
		"maxMessages": "integer", "fromSequenceNumber": "integer", "subQueue": "enum", "include": "enums",
		"sessionLockToken": "token", "sessionId": "sessionId",
	}},
	{http.MethodPost, verbPath + "complete", `{%s}`, map[string]string{"lockTokens": "strings", "subQueue": "enum"}},
	{http.MethodPost, verbPath + "complete", withToken, map[string]string{"sessionLockToken": "token"}},
	{http.MethodPost, verbPath + "release", withToken, map[string]string{"sessionLockToken": "token"}},
	{http.MethodPost, verbPath + "abandon", withToken, map[string]string{
		"delay": "span", "properties": "object", "subQueue": "enum", "sessionLockToken": "token", "skipOrder": "bool",
	}},
	{http.MethodPost, verbPath + "abandon", withChanges, map[string]string{"p": "property"}},
	{http.MethodPost, verbPath + "defer", withToken, map[string]string{"properties": "object", "subQueue": "enum", "sessionLockToken": "token"}},
	{http.MethodPost, verbPath + "defer", withChanges, map[string]string{"p": "property"}},
	{http.MethodPost, verbPath + "deadLetter", withToken, map[string]string{
		"reason": "string", "description": "string", "properties": "object", "sessionLockToken": "token",
	}},
	{http.MethodPost, verbPath + "deadLetter", withChanges, map[string]string{"p": "property"}},
	{http.MethodPost, verbPath + "renewLocks", `{%s}`, map[string]string{"lockTokens": "strings"}},
	{http.MethodPost, verbPath + "reactivate", `{%s}`, map[string]string{
		"sequenceNumbers": "integers", "subQueue": "enum", "sessionLockToken": "token",
	}},
	{http.MethodPost, verbPath + "deleteBySequence", `{%s}`, map[string]string{"sequenceNumbers": "integers", "subQueue": "enum"}},
	{http.MethodPost, verbPath + "purge", `{%s}`, map[string]string{
		"before": "instant", "include": "enums", "maxMessages": "integer", "subQueue": "enum",
		"sessionLockToken": "token", "sessionId": "sessionId",
	}},
	{http.MethodPost, verbPath + "resubmit", `{%s}`, map[string]string{
		"sequenceNumbers": "integers", "filter": "string", "max": "integer", "target": "string", "newMessageIds": "bool",
		"keepExpiry": "bool", "bypassDuplicateDetection": "bool", "subQueue": "enum",
	}},
	{http.MethodPost, sessionPath + "accept", `{%s}`, map[string]string{"sessionId": "sessionId", "maxWait": "span", "strict": "bool"}},
	{http.MethodPost, sessionPath + "renewLock", `{%s}`, map[string]string{"lockToken": "token"}},
	{http.MethodPost, sessionPath + "close", `{%s}`, map[string]string{"lockToken": "token"}},
	{http.MethodPost, sessionPath + "getState", `{%s}`, map[string]string{"lockToken": "token"}},
	{http.MethodPost, sessionPath + "setState", `{%s}`, map[string]string{"lockToken": "token"}},
	{http.MethodPost, sessionPath + "setState", `{"lockToken":"` + nobodysToken + `",%s}`, map[string]string{"state": "base64", "expectedVersion": "integer"}},
	{http.MethodPost, sessionPath + "unblock", `{%s}`, map[string]string{"sessionId": "sessionId"}},
	{http.MethodPut, "/v1/queues/new", `{%s}`, queueFields},
	{http.MethodPost, "/v1/queues", `{"name":"new",%s}`, queueFields},
	{http.MethodPatch, queuePath, `{%s}`, queueFields},
}

const (
	withToken   = `{"lockTokens":["` + nobodysToken + `"],%s}`
	withChanges = `{"lockTokens":["` + nobodysToken + `"],"properties":{%s}}`
)

var queueFields = map[string]string{
	"lockDuration": "span", "maxSizeInMegabytes": "integer", "maxMessageSizeInKilobytes": "integer",
	"defaultMessageTimeToLive": "duration", "deadLetteringOnMessageExpiration": "bool", "maxDeliveryCount": "integer",
	"maxMessageCount": "integer", "status": "enum", "userMetadata": "string", "enableBatchedOperations": "bool",
	"requiresDuplicateDetection": "bool", "duplicateDetectionHistoryTimeWindow": "span", "duplicateHistoryMaxEntries": "integer",
	"forgetOnCancel": "bool", "enablePartitioning": "bool", "redeliveryDelay": "span", "expireDeferred": "bool",
	"deadLetterTtl": "duration", "requiresSession": "bool", "sessionInFlight": "integer", "onDisconnect": "enum",
	"sessionExpiryMode": "enum", "sessionOnDeadLetter": "enum", "acceptNext": "enum", "sessionStateTtl": "duration",
	"autoDeleteOnIdle": "duration", "autoDeleteKeepsDeadLetters": "bool", "partitions": "integer", "forwardTo": "string", "forwardDeadLetteredMessagesTo": "string",
}

func TestEveryFieldOfWrongTypeIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.furnish(t)
	check := s.unchanged(t)
	for _, r := range refusedFields {
		for field, kind := range r.fields {
			for _, value := range wrong[kind] {
				body := fmt.Sprintf(r.frame, `"`+field+`":`+value)
				a := s.call(t, r.method, r.path, body)
				reason, named := a.reason(t)
				if a.status != http.StatusBadRequest || reason != "INVALID_ARGUMENT" || !strings.Contains(named, field) {
					t.Errorf("%s %s %s: got %d %s", r.method, r.path, body, a.status, a.body)
				}
			}
		}
	}
	check(t)
}

// httpRefusals are requests that must change nothing.
var httpRefusals = []struct {
	name, method, path, body string
	status                   int
	reason, field            string
}{
	{"unknown field", "POST", verbPath + "receive", `{"foo":1}`, 400, "INVALID_ARGUMENT", "foo"},
	{"unknown field of a message", "POST", verbPath + "send", `{"messages":[{},{"foo":1}]}`, 400, "INVALID_ARGUMENT", "messages[1].foo"},
	{"session of a renewal", "POST", verbPath + "renewLocks", `{"lockTokens":["` + nobodysToken + `"],"sessionLockToken":"` + nobodysToken + `"}`, 400, "INVALID_ARGUMENT", "sessionLockToken"},
	{"session by name of a receive", "POST", verbPath + "receive", `{"sessionId":"s"}`, 400, "INVALID_ARGUMENT", "sessionId"},
	{"ENT-16 sessions", "PATCH", queuePath, `{"requiresSession":true,"userMetadata":"x"}`, 409, "PROPERTY_IMMUTABLE", "requiresSession"},
	{"ENT-11 none in flight", "PATCH", queuePath, `{"sessionInFlight":0}`, 400, "ARGUMENT_OUT_OF_RANGE", "sessionInFlight"},
	{"ENT-11 too many in flight", "PUT", "/v1/queues/new", `{"sessionInFlight":1001}`, 400, "ARGUMENT_OUT_OF_RANGE", "sessionInFlight"},
	{"SESS-33c short life of states", "PATCH", queuePath, `{"sessionStateTtl":"999ms"}`, 400, "ARGUMENT_OUT_OF_RANGE", "sessionStateTtl"},
	{"lower case word", "PUT", "/v1/queues/new", `{"onDisconnect":"expire"}`, 400, "INVALID_ARGUMENT", "onDisconnect"},
	{"field twice", "POST", verbPath + "receive", `{"maxWait":"0s","max_wait":"0s"}`, 400, "INVALID_ARGUMENT", "max_wait"},
	{"two bodies", "POST", verbPath + "send", `{"messages":[{"text":"a","body":"YQ=="}]}`, 400, "INVALID_ARGUMENT", "messages[0].body"},
	{"property twice", "POST", verbPath + "send", `{"messages":[{"properties":{"a":1,"a":2}}]}`, 400, "INVALID_ARGUMENT", "messages[0].properties[a]"},
	{"truncated JSON", "POST", verbPath + "send", `{"messages":[{"text":"a"}`, 400, "INVALID_ARGUMENT", ""},
	{"broken JSON", "POST", verbPath + "send", `{"messages":[{"text":a}]}`, 400, "INVALID_ARGUMENT", ""},
	{"trailing garbage", "POST", verbPath + "send", `{"messages":[{"text":"a"}]} x`, 400, "INVALID_ARGUMENT", ""},
	{"two values", "POST", verbPath + "send", `{"messages":[{"text":"a"}]}{}`, 400, "INVALID_ARGUMENT", ""},
	{"no object", "POST", verbPath + "send", `[]`, 400, "INVALID_ARGUMENT", ""},
	{"null body", "POST", verbPath + "send", `null`, 400, "INVALID_ARGUMENT", ""},
	{"no UTF-8", "POST", verbPath + "send", "{\"messages\":[{\"text\":\"\xff\"}]}", 400, "INVALID_ARGUMENT", ""},
	{"no body", "POST", verbPath + "send", ``, 400, "INVALID_ARGUMENT", "messages"},
	{"BATCH-2 no messages", "POST", verbPath + "send", `{"messages":[]}`, 400, "INVALID_ARGUMENT", "messages"},
	{"null message", "POST", verbPath + "send", `{"messages":[null]}`, 400, "INVALID_ARGUMENT", "messages[0]"},
	{"MSG-2 empty message id", "POST", verbPath + "send", `{"messages":[{"messageId":""}]}`, 400, "INVALID_ARGUMENT", "messageId"},
	{"MSG-2 long message id", "POST", verbPath + "send", `{"messages":[{"messageId":"` + strings.Repeat("x", 129) + `"}]}`, 400, "INVALID_ARGUMENT", "messageId"},
	{"MSG-3 keys differ", "POST", verbPath + "send", `{"messages":[{"sessionId":"a","partitionKey":"b"}]}`, 400, "PARTITION_KEY_MISMATCH", "partitionKey"},
	{"MSG-14 names differ in case only", "POST", verbPath + "send", `{"messages":[{"properties":{"a":1,"A":2}}]}`, 400, "INVALID_ARGUMENT", "properties[a]"},
	{"MSG-14 empty name", "POST", verbPath + "send", `{"messages":[{"properties":{"":1}}]}`, 400, "INVALID_ARGUMENT", "properties"},
	{"MSG-15 large property", "POST", verbPath + "send", `{"messages":[{"properties":{"a":"` + strings.Repeat("x", 32<<10+1) + `"}}]}`, 413, "MESSAGE_SIZE_EXCEEDED", "properties[a]"},
	{"TTL-14 no lifetime", "POST", verbPath + "send", `{"messages":[{"timeToLive":"0s"}]}`, 400, "ARGUMENT_OUT_OF_RANGE", "timeToLive"},
	{"TTL-14 negative lifetime", "POST", verbPath + "send", `{"messages":[{"timeToLive":"-1s"}]}`, 400, "ARGUMENT_OUT_OF_RANGE", "timeToLive"},
	{"unknown queue: send", "POST", "/v1/queues/none/messages:send", `{"messages":[{}]}`, 404, "ENTITY_NOT_FOUND", ""},
	{"unknown queue: receive", "POST", "/v1/queues/none/messages:receive", `{"maxWait":"0s"}`, 404, "ENTITY_NOT_FOUND", ""},
	{"unknown queue: peek", "POST", "/v1/queues/none/messages:peek", `{}`, 404, "ENTITY_NOT_FOUND", ""},
	{"unknown queue: complete", "POST", "/v1/queues/none/messages:complete", `{"lockTokens":["` + nobodysToken + `"]}`, 404, "ENTITY_NOT_FOUND", ""},
	{"unknown queue: get", "GET", "/v1/queues/none", ``, 404, "ENTITY_NOT_FOUND", ""},
	{"unknown queue: update", "PATCH", "/v1/queues/none", `{"userMetadata":"x"}`, 404, "ENTITY_NOT_FOUND", ""},
	{"unknown queue: delete", "DELETE", "/v1/queues/none", ``, 404, "ENTITY_NOT_FOUND", ""},
	{"unknown queue: runtime", "GET", "/v1/queues/none/runtime", ``, 404, "ENTITY_NOT_FOUND", ""},
	{"RECV-6 no messages", "POST", verbPath + "receive", `{"maxMessages":0}`, 400, "ARGUMENT_OUT_OF_RANGE", "maxMessages"},
	{"RECV-6 too many messages", "POST", verbPath + "receive", `{"maxMessages":1001}`, 400, "ARGUMENT_OUT_OF_RANGE", "maxMessages"},
	{"RECV-6 far too many messages", "POST", verbPath + "receive", `{"maxMessages":4294967297}`, 400, "ARGUMENT_OUT_OF_RANGE", "maxMessages"},
	{"RECV-6 long wait", "POST", verbPath + "receive", `{"maxWait":"300.001s"}`, 400, "ARGUMENT_OUT_OF_RANGE", "maxWait"},
	{"RECV-6 negative wait", "POST", verbPath + "receive", `{"maxWait":"-PT1S"}`, 400, "ARGUMENT_OUT_OF_RANGE", "maxWait"},
	{"PEEK-4 no messages", "POST", verbPath + "peek", `{"maxMessages":0}`, 400, "ARGUMENT_OUT_OF_RANGE", "maxMessages"},
	{"PEEK-3 negative number", "POST", verbPath + "peek", `{"fromSequenceNumber":"-1"}`, 400, "ARGUMENT_OUT_OF_RANGE", "fromSequenceNumber"},
	{"LOCK-2 malformed token", "POST", verbPath + "complete", `{"lockTokens":["` + nobodysToken + `","x"]}`, 400, "INVALID_ARGUMENT", "lockTokens"},
	{"SETTLE-13 empty token", "POST", verbPath + "complete", `{"lockTokens":[""]}`, 400, "INVALID_OPERATION", "lockTokens"},
	{"no tokens", "POST", verbPath + "abandon", `{"lockTokens":[]}`, 400, "INVALID_ARGUMENT", "lockTokens"},
	{"too many tokens", "POST", verbPath + "release", `{"lockTokens":[` + tokens(1001) + `]}`, 400, "ARGUMENT_OUT_OF_RANGE", "lockTokens"},
	{"LOCK-5 too many tokens", "POST", verbPath + "renewLocks", `{"lockTokens":[` + tokens(501) + `]}`, 400, "ARGUMENT_OUT_OF_RANGE", "lockTokens"},
	{"SETTLE-6 long reason", "POST", verbPath + "deadLetter", `{"lockTokens":["` + nobodysToken + `"],"reason":"` + strings.Repeat("x", 4097) + `"}`, 400, "ARGUMENT_OUT_OF_RANGE", "reason"},
	{"SETTLE-8 dead-letter a dead letter", "POST", verbPath + "deadLetter", `{"lockTokens":["` + nobodysToken + `"],"subQueue":"DEAD_LETTER"}`, 400, "INVALID_OPERATION", ""},
	{"ENT-6 taken name", "POST", "/v1/queues", `{"name":"ORDERS"}`, 409, "ENTITY_ALREADY_EXISTS", ""},
	{"no name", "POST", "/v1/queues", `{}`, 400, "INVALID_ARGUMENT", "name"},
	{"no description", "POST", "/v1/queues", ``, 400, "INVALID_ARGUMENT", "name"},
	{"two names", "PUT", "/v1/queues/new", `{"name":"newer"}`, 400, "INVALID_ARGUMENT", "name"},
	{"ENT-11 short lock", "PUT", "/v1/queues/new", `{"lockDuration":"4999ms"}`, 400, "ARGUMENT_OUT_OF_RANGE", "lockDuration"},
	{"ENT-11 long lock", "PATCH", queuePath, `{"lockDuration":"PT5M0.001S"}`, 400, "ARGUMENT_OUT_OF_RANGE", "lockDuration"},
	{"ENT-11 no deliveries", "PATCH", queuePath, `{"maxDeliveryCount":0}`, 400, "ARGUMENT_OUT_OF_RANGE", "maxDeliveryCount"},
	{"ENT-11 too many deliveries", "PATCH", queuePath, `{"maxDeliveryCount":2147483648}`, 400, "ARGUMENT_OUT_OF_RANGE", "maxDeliveryCount"},
	{"ENT-11 size", "PATCH", queuePath, `{"maxSizeInMegabytes":81921}`, 400, "ARGUMENT_OUT_OF_RANGE", "maxSizeInMegabytes"},
	{"ENT-11 message size", "PATCH", queuePath, `{"maxMessageSizeInKilobytes":102401}`, 400, "ARGUMENT_OUT_OF_RANGE", "maxMessageSizeInKilobytes"},
	{"ENT-11 short lifetime", "PATCH", queuePath, `{"defaultMessageTimeToLive":"999ms"}`, 400, "ARGUMENT_OUT_OF_RANGE", "defaultMessageTimeToLive"},
	{"ENT-11 metadata", "PATCH", queuePath, `{"userMetadata":"` + strings.Repeat("x", 1025) + `"}`, 400, "ARGUMENT_OUT_OF_RANGE", "userMetadata"},
	{"DUP-3 short window", "PATCH", queuePath, `{"duplicateDetectionHistoryTimeWindow":"19999ms"}`, 400, "ARGUMENT_OUT_OF_RANGE", "duplicateDetectionHistoryTimeWindow"},
	{"DUP-3 long window", "PUT", "/v1/queues/new", `{"duplicateDetectionHistoryTimeWindow":"P7DT0.001S"}`, 400, "ARGUMENT_OUT_OF_RANGE", "duplicateDetectionHistoryTimeWindow"},
	{"DUP-11 no entries", "PATCH", queuePath, `{"duplicateHistoryMaxEntries":0}`, 400, "ARGUMENT_OUT_OF_RANGE", "duplicateHistoryMaxEntries"},
	{"DUP-11 negative entries", "PUT", "/v1/queues/new", `{"duplicateHistoryMaxEntries":"-1"}`, 400, "ARGUMENT_OUT_OF_RANGE", "duplicateHistoryMaxEntries"},
	{"DUP-11 entries beyond int64", "PATCH", queuePath, `{"duplicateHistoryMaxEntries":"9223372036854775808"}`, 400, "ARGUMENT_OUT_OF_RANGE", "duplicateHistoryMaxEntries"},
	{"SETTLE-11 negative redelivery delay", "PATCH", queuePath, `{"redeliveryDelay":"-1ms"}`, 400, "ARGUMENT_OUT_OF_RANGE", "redeliveryDelay"},
	{"SETTLE-11 long redelivery delay", "PUT", "/v1/queues/new", `{"redeliveryDelay":"168h0.001s"}`, 400, "ARGUMENT_OUT_OF_RANGE", "redeliveryDelay"},
	{"TTL-19 short life of dead letters", "PATCH", queuePath, `{"deadLetterTtl":"999ms"}`, 400, "ARGUMENT_OUT_OF_RANGE", "deadLetterTtl"},
	{"TTL-19 no life of dead letters", "PUT", "/v1/queues/new", `{"deadLetterTtl":"0s"}`, 400, "ARGUMENT_OUT_OF_RANGE", "deadLetterTtl"},
	{"ENT-16 duplicate detection", "PATCH", queuePath, `{"requiresDuplicateDetection":true,"userMetadata":"x"}`, 409, "PROPERTY_IMMUTABLE", "requiresDuplicateDetection"},
	{"ENT-16 partitioning", "PATCH", queuePath + "?updateMask=userMetadata,enablePartitioning", `{"enablePartitioning":true,"userMetadata":"x"}`, 409, "PROPERTY_IMMUTABLE", "enablePartitioning"},
	{"no dead letters, which is not all of them", "POST", verbPath + "resubmit", `{"sequenceNumbers":[]}`, 400, "INVALID_ARGUMENT", "sequenceNumbers"},
	{"number beyond int64", "POST", verbPath + "receiveDeferred", `{"sequenceNumbers":[1,"9223372036854775808"]}`, 400, "ARGUMENT_OUT_OF_RANGE", "sequenceNumbers[1]"},
	{"property twice in a settlement", "POST", verbPath + "defer", `{"lockTokens":["` + nobodysToken + `"],"properties":{"a":1,"a":1}}`, 400, "INVALID_ARGUMENT", "properties[a]"},
	{"skipOrder of a release", "POST", verbPath + "release", `{"lockTokens":["` + nobodysToken + `"],"skipOrder":true}`, 400, "INVALID_ARGUMENT", "skipOrder"},
	{"delay of a release", "POST", verbPath + "release", `{"lockTokens":["` + nobodysToken + `"],"delay":"1s"}`, 400, "INVALID_ARGUMENT", "delay"},
	{"delay of a deferral", "POST", verbPath + "defer", `{"lockTokens":["` + nobodysToken + `"],"delay":"1s"}`, 400, "INVALID_ARGUMENT", "delay"},
	{"properties of a completion", "POST", verbPath + "complete", `{"lockTokens":["` + nobodysToken + `"],"properties":{}}`, 400, "INVALID_ARGUMENT", "properties"},
	{"DLQ-4 dead-letter a transfer dead letter", "POST", verbPath + "deadLetter", `{"lockTokens":["` + nobodysToken + `"],"subQueue":"TRANSFER_DEAD_LETTER"}`, 400, "INVALID_OPERATION", ""},
	{"DLQ-2 sub-queue in lower case", "POST", verbPath + "purge", `{"subQueue":"transfer_dead_letter"}`, 400, "INVALID_ARGUMENT", "subQueue"},
	{"DLQ-1 transfer dead letters of an unknown queue", "POST", "/v1/queues/none/messages:peek", `{"subQueue":"TRANSFER_DEAD_LETTER"}`, 404, "ENTITY_NOT_FOUND", ""},
	{"ENT-13 forward to an unknown queue", "PATCH", queuePath, `{"forwardTo":"none"}`, 400, "FORWARD_DESTINATION_INVALID", "forwardTo"},
	{"ENT-13 forward to itself", "PATCH", queuePath, `{"forwardTo":"ORDERS","userMetadata":"x"}`, 400, "FORWARD_DESTINATION_INVALID", "forwardTo"},
	{"ENT-13 forward to a subscription", "PUT", "/v1/queues/new", `{"forwardTo":"news/Subscriptions/eu"}`, 400, "FORWARD_DESTINATION_INVALID", "forwardTo"},
	{"ENT-13 forward from sessions", "PUT", "/v1/queues/new", `{"forwardTo":"orders","requiresSession":true}`, 400, "FORWARD_DESTINATION_INVALID", "forwardTo"},
	{"ENT-13 dead letters to an unknown queue", "POST", "/v1/queues", `{"name":"new","forwardDeadLetteredMessagesTo":"none"}`, 400, "FORWARD_DESTINATION_INVALID", "forwardDeadLetteredMessagesTo"},
	{"ENT-13 dead letters to itself", "PATCH", queuePath, `{"forwardDeadLetteredMessagesTo":"orders"}`, 400, "FORWARD_DESTINATION_INVALID", "forwardDeadLetteredMessagesTo"},
	{"ENT-13 unmatched to an unknown queue", "PUT", "/v1/topics/new", `{"unmatchedTo":"none"}`, 400, "FORWARD_DESTINATION_INVALID", "unmatchedTo"},
	{"ENT-13 no path", "PATCH", queuePath, `{"forwardTo":"a b"}`, 400, "INVALID_ARGUMENT", "forwardTo"},
	{"IDLE-1 short life of an idle queue", "PATCH", queuePath, `{"autoDeleteOnIdle":"299.999s"}`, 400, "ARGUMENT_OUT_OF_RANGE", "autoDeleteOnIdle"},
	{"locked ones in a purge", "POST", verbPath + "purge", `{"include":["LOCKED"]}`, 400, "INVALID_ARGUMENT", "include[0]"},
	{"dead letters in a peek", "POST", verbPath + "peek", `{"include":["SCHEDULED","DEAD_LETTER"]}`, 400, "INVALID_ARGUMENT", "include[1]"},
	{"wrong method of a purge", "DELETE", verbPath + "purge", ``, 405, "ROUTE_NOT_FOUND", ""},
	{"empty update", "PATCH", queuePath, `{}`, 400, "INVALID_ARGUMENT", "updateMask"},
	{"unknown option in the mask", "PATCH", queuePath + "?updateMask=nope", `{}`, 400, "INVALID_ARGUMENT", "nope"},
	{"ENT-17 large page", "GET", "/v1/queues?pageSize=101", ``, 400, "ARGUMENT_OUT_OF_RANGE", "pageSize"},
	{"ENT-17 huge page", "GET", "/v1/queues?pageSize=99999999999", ``, 400, "ARGUMENT_OUT_OF_RANGE", "pageSize"},
	{"ENT-17 no page size", "GET", "/v1/queues?pageSize=x", ``, 400, "INVALID_ARGUMENT", "pageSize"},
	{"ENT-17 foreign token", "GET", "/v1/queues?pageToken=*", ``, 400, "INVALID_ARGUMENT", "pageToken"},
	{"ENT-17 token that is no UTF-8", "GET", "/v1/queues?pageToken=junk", ``, 400, "INVALID_ARGUMENT", "pageToken"},
	{"unknown query", "GET", "/v1/queues?top=5", ``, 400, "INVALID_ARGUMENT", "top"},
	{"query of another method", "POST", verbPath + "receive?maxMessages=5", `{}`, 400, "INVALID_ARGUMENT", "maxMessages"},
	{"broken query", "GET", "/v1/queues?pageSize=%zz", ``, 400, "INVALID_ARGUMENT", ""},
	{"unknown route", "GET", "/v2/queues", ``, 404, "ROUTE_NOT_FOUND", ""},
	{"root", "GET", "/", ``, 404, "ROUTE_NOT_FOUND", ""},
	{"unknown kind", "PUT", "/v1/things/t", `{}`, 404, "ROUTE_NOT_FOUND", ""},
	{"unknown verb", "POST", verbPath + "publish", `{}`, 404, "ROUTE_NOT_FOUND", ""},
	{"wrong method", "GET", verbPath + "send", ``, 405, "ROUTE_NOT_FOUND", ""},
	{"query of sessions on queues", "GET", "/v1/queues?activeSince=2026-01-01T00:00:00Z", ``, 400, "INVALID_ARGUMENT", "activeSince"},
	{"query of sessions on a queue named so", "GET", "/v1/queues/sessions?updatedSince=2026-01-01T00:00:00Z", ``, 400, "INVALID_ARGUMENT", "updatedSince"},
	{"SESS-38 large page", "GET", queuePath + "/sessions?pageSize=101", ``, 400, "ARGUMENT_OUT_OF_RANGE", "pageSize"},
	{"SESS-38 no instant", "GET", queuePath + "/sessions?updatedSince=today", ``, 400, "INVALID_ARGUMENT", "updatedSince"},
	{"SESS-38 empty instant", "GET", queuePath + "/sessions?active_since=", ``, 400, "INVALID_ARGUMENT", "activeSince"},
	{"SESS-38 instant with a bare plus", "GET", queuePath + "/sessions?activeSince=2026-01-01T00:00:00+01:00", ``, 400, "INVALID_ARGUMENT", "activeSince"},
	{"SESS-38 instant after all years", "GET", queuePath + "/sessions?updated_since=9999-12-31T23:59:59-01:00", ``, 400, "INVALID_ARGUMENT", "updatedSince"},
	{"SESS-38 foreign token", "GET", queuePath + "/sessions?pageToken=*", ``, 400, "INVALID_ARGUMENT", "pageToken"},
	{"SESS-38 token that is no UTF-8", "GET", queuePath + "/sessions?pageToken=_w", ``, 400, "INVALID_ARGUMENT", "pageToken"},
	{"SESS-38 unknown query", "GET", queuePath + "/sessions?source=queues/x", ``, 400, "INVALID_ARGUMENT", "source"},
	{"query of an accept", "POST", sessionPath + "accept?maxWait=5s", `{}`, 400, "INVALID_ARGUMENT", "maxWait"},
	{"unknown field of an accept", "POST", sessionPath + "accept", `{"session":"x"}`, 400, "INVALID_ARGUMENT", "session"},
	{"unknown verb of sessions", "POST", sessionPath + "peek", `{}`, 404, "ROUTE_NOT_FOUND", ""},
	{"wrong method of an accept", "GET", sessionPath + "accept", ``, 405, "ROUTE_NOT_FOUND", ""},
	{"wrong method of a list of sessions", "POST", queuePath + "/sessions", `{}`, 405, "ROUTE_NOT_FOUND", ""},
	{"unknown queue: sessions", "GET", "/v1/queues/none/sessions", ``, 404, "ENTITY_NOT_FOUND", ""},
	{"SESS-5 sessions of a plain queue", "GET", queuePath + "/sessions", ``, 400, "SESSION_NOT_SUPPORTED", ""},
	{"wrong method of a queue", "POST", queuePath, `{}`, 405, "ROUTE_NOT_FOUND", ""},
	{"unescaped slash in a name", "GET", "/v1/queues/a/b", ``, 404, "ROUTE_NOT_FOUND", ""},
}

func tokens(n int) string {
	return strings.TrimSuffix(strings.Repeat(`"`+nobodysToken+`",`, n), ",")
}

func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.furnish(t)
	check := s.unchanged(t)
	for _, c := range httpRefusals {
		t.Run(c.name, func(t *testing.T) {
			a := s.call(t, c.method, c.path, c.body)
			if reason, field := a.reason(t); a.status != c.status || reason != c.reason || field != c.field {
				t.Errorf("got %d %s, want %d %s %q", a.status, a.body, c.status, c.reason, c.field)
			}
			if allow := a.header.Get("Allow"); (a.status == http.StatusMethodNotAllowed) != (allow != "") {
				t.Errorf("%d with Allow %q", a.status, allow)
			}
			check(t)
		})
	}
}

func TestBATCH_1_DetailsNameTheBadMessage(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for _, bad := range []string{`{"messageId":""}`, `{"foo":1}`, `{"timeToLive":"0s"}`, `{"properties":{"a":[]}}`} {
		a := s.call(t, http.MethodPost, verbPath+"send", `{"messages":[{},{},`+bad+`]}`)
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, `"index":"2"`) {
			t.Errorf("%s: got %d %s", bad, a.status, a.body)
		}
	}
}

func TestSETTLE_14_LostTokenFailsItsRowOnly(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.send(t, "one")
	held := s.receive(t)[0].GetLockToken()
	for _, verb := range []string{"renewLocks", "complete"} {
		a := s.call(t, http.MethodPost, verbPath+verb, `{"lockTokens":["`+nobodysToken+`","`+held+`"]}`)
		lost := `{"lockToken":"` + nobodysToken + `","reason":"MESSAGE_LOCK_LOST"`
		if a.status != http.StatusOK || !strings.Contains(a.body, lost) || strings.Count(a.body, "reason") != 1 {
			t.Errorf("%s: got %d %s", verb, a.status, a.body)
		}
	}
}
