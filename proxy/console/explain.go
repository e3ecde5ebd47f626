package console

import (
	"encoding/json"
	"io"
	"net/http"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/proxy/wirejson"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

const maxTrial = 1 << 20 // bytes of a rule and a message

// explained is what a rule does with a message. The fields are those of "sidebus rule test -o json".
type explained struct {
	Matches bool              `json:"matches"`
	Failure string            `json:"failure,omitempty"`
	Steps   []explainedStep   `json:"steps"`
	Changes []explainedChange `json:"changes,omitempty"`
}

type explainedStep struct {
	Depth   int             `json:"depth"`
	Text    string          `json:"text"`
	Outcome string          `json:"outcome"`
	Failure string          `json:"failure,omitempty"`
	Seen    []explainedSeen `json:"seen,omitempty"`
}

type explainedSeen struct {
	Property string `json:"property"`
	Value    string `json:"value"`
}

type explainedChange struct {
	Statement string `json:"statement"`
	Property  string `json:"property"`
	Before    string `json:"before"`
	After     string `json:"after"`
}

// explain evaluates a rule with a message, both of which are in the request. It reads nothing of the store.
func (c *Console) explain(w http.ResponseWriter, r *http.Request) {
	if _, err := c.authenticate(r); err != nil {
		refuse(w, err)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTrial))
	if err != nil {
		refuse(w, semantics.Errorf(semantics.InvalidArgument, "the body cannot be read, or is larger than %d bytes", maxTrial))
		return
	}
	e, err := trial(body)
	if err != nil {
		refuse(w, err)
		return
	}
	writeJSON(w, http.StatusOK, e)
}

// trial evaluates {"rule": ..., "message": ...}, in the JSON of the API.
func trial(body []byte) (*explained, error) {
	var given struct{ Rule, Message json.RawMessage }
	if err := json.Unmarshal(body, &given); err != nil {
		return nil, semantics.Errorf(semantics.InvalidArgument, "the body must have a rule and a message: %v", err)
	}
	var rule sidebusv1.Rule
	if err := wirejson.Decode(given.Rule, &rule); err != nil {
		return nil, err
	}
	var sent sidebusv1.Message
	if err := wirejson.Decode(given.Message, &sent); err != nil {
		return nil, err
	}
	message := &semantics.Message{}
	if err := wire.MessageOf(&sent, message); err != nil {
		return nil, err
	}
	if err := message.Validate(); err != nil {
		return nil, err
	}
	tested, err := wire.RuleOf(&rule)
	if err != nil {
		return nil, err
	}
	e, err := filter.Explain(tested, message)
	if err != nil {
		return nil, err
	}
	return explainedOf(e), nil
}

func explainedOf(e *filter.Explanation) *explained {
	all := &explained{Matches: e.Matches, Failure: textOf(e.Failure), Steps: []explainedStep{}}
	for _, s := range e.Steps {
		step := explainedStep{Depth: s.Depth, Text: s.Text, Outcome: s.Truth.String(), Failure: textOf(s.Err)}
		for _, seen := range s.Seen {
			step.Seen = append(step.Seen, explainedSeen{seen.Property, seen.String()})
		}
		all.Steps = append(all.Steps, step)
	}
	for _, c := range e.Changes {
		all.Changes = append(
			all.Changes, explainedChange{c.Statement, c.Before.Property, c.Before.String(), c.After.String()},
		)
	}
	return all
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return semantics.AsError(err).Message
}
