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
func trial(body []byte) (*filter.Report, error) {
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
	report := e.Report()
	return &report, nil
}
