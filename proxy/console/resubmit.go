package console

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"

	"google.golang.org/protobuf/encoding/protojson"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/resubmit"
	"github.com/sidebus/sidebus/proxy/wirejson"
	"github.com/sidebus/sidebus/semantics"
)

// resubmitStep is the most dead letters in a step, so that a page sees progress and can stop soon.
const resubmitStep = 200

// resubmission is a step of a resubmission as a page asks for it.
type resubmission struct {
	shelf

	How      json.RawMessage   `json:"how"` // of the API's Resubmit: target, filter and the like
	Progress resubmit.Progress `json:"progress"`
}

// resubmitted is what became of dead letters in a step.
type resubmitted struct {
	Results  []letterResult    `json:"results"`
	Progress resubmit.Progress `json:"progress"` // for the next step
}

type letterResult struct {
	SequenceNumber resubmit.Number `json:"sequenceNumber"`
	Reason         string          `json:"reason,omitempty"` // why it stays
	Deduplicated   bool            `json:"deduplicated,omitempty"`
}

// resubmit makes one step of a resubmission, by a call of the API with the rights of the caller.
func (c *Console) resubmit(w http.ResponseWriter, r *http.Request) {
	var asked resubmission
	source, err := c.shelfOf(w, r, &asked, &asked.shelf)
	request := &sidebusv1.ResubmitRequest{}
	if err == nil && len(asked.How) > 0 {
		err = wirejson.Decode(asked.How, request)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	done := resubmitted{Results: []letterResult{}, Progress: asked.Progress}
	if done.Progress.Done {
		writeJSON(w, http.StatusOK, done)
		return
	}
	done.Progress.Next(request, resubmitStep)
	answer := kept{header: http.Header{}}
	c.api().ServeHTTP(&answer, callOf(r, source, request))
	if answer.status != http.StatusOK {
		answer.pass(w)
		return
	}
	var results sidebusv1.ResubmitResponse
	if err := wirejson.Decode(answer.body.Bytes(), &results); err != nil {
		refuse(w, err)
		return
	}
	for _, result := range done.Progress.Take(&results) {
		done.Results = append(done.Results, letterResult{
			resubmit.Number(result.GetSequenceNumber()), result.GetReason(), result.GetDeduplicated(),
		})
	}
	writeJSON(w, http.StatusOK, done)
}

// callOf returns the call of the API by the caller of r.
func callOf(r *http.Request, source semantics.Source, request *sidebusv1.ResubmitRequest) *http.Request {
	subQueue := sidebusv1.SubQueue_Kind(sidebusv1.SubQueue_Kind_value[source.SubQueue.String()])
	request.SubQueue = &subQueue
	at := "/v1/queues/" + url.PathEscape(source.Path)
	if topic, name, ok := semantics.SplitSubscription(source.Path); ok {
		at = "/v1/topics/" + url.PathEscape(topic) + "/subscriptions/" + url.PathEscape(name)
	}
	at += "/messages:resubmit"
	body, _ := protojson.Marshal(request) // what was decoded can be encoded
	call := r.Clone(r.Context())
	call.URL, call.RequestURI = &url.URL{RawPath: at}, at
	call.URL.Path, _ = url.PathUnescape(at) // it was escaped here
	call.Body, call.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	call.Header.Set("Content-Type", "application/json")
	return call
}

// kept is an answer of the API that is kept until it is whole.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the header of the answer.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader notes the status.
func (k *kept) WriteHeader(status int) {
	if k.status == 0 {
		k.status = status
	}
}

// Write keeps a part of the body.
func (k *kept) Write(part []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	return k.body.Write(part)
}

// pass passes the answer on.
func (k *kept) pass(w http.ResponseWriter) {
	maps.Copy(w.Header(), k.header)
	w.WriteHeader(k.status)
	_, _ = w.Write(k.body.Bytes()) // if it fails, the client is gone
}
