package redisstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/encoded"
	"github.com/sidebus/sidebus/semantics/sealed"
)

// keysInUse are the payload keys that stored bodies and states need.
type keysInUse struct {
	keys  *sealed.Keys    // nil: none are given, so none are missing
	names map[string]bool // and whether the key is missing
}

func (k keysInUse) contents() audit.Contents {
	return audit.Contents{Payload: k.addPayload, State: func(state string, size int64) {
		if int64(len(state)) > size {
			k.add(encoded.Bytes(state))
		}
	}}
}

func (k keysInUse) addPayload(payload, chunk string) {
	switch {
	case payload == "":
	case payload[0] == formatChunk && chunk != "":
		e := entry{payload: payload, chunk: chunk}
		for _, one := range e.split(0, int64(strings.Count(chunk, ","))) {
			k.addPayload(one.payload, "")
		}
	case payload[0] == formatSealed:
		if p, err := splitSealed(payload); err == nil {
			k.add(p.body)
		}
	}
}

func (k keysInUse) add(text []byte) {
	if name, _, err := sealed.NameOf(text); err == nil {
		k.names[name] = k.names[name] || k.keys != nil && k.keys.Lacks(text)
	}
}

// finding returns which keys are needed, and which of them are missing.
func (k keysInUse) finding() (f semantics.Finding, ok bool) {
	names := slices.Sorted(maps.Keys(k.names))
	if len(names) == 0 {
		return f, false
	}
	f = semantics.Finding{
		Severity: semantics.Fine, Subject: "encryption",
		Text: fmt.Sprintf("what was read of queues and topics needs the payload keys %s", strings.Join(names, ", ")),
	}
	if missing := slices.DeleteFunc(names, func(name string) bool { return !k.names[name] }); len(missing) > 0 {
		f.Severity = semantics.Problem
		f.Text += fmt.Sprintf("; missing: %s", strings.Join(missing, ", "))
		f.Advice = "add them to the file of --payload-keys-file at every sidecar; until then these messages stay"
	}
	return f, true
}
