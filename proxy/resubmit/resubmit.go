// Package resubmit has the steps in which dead letters are sent again, for the command line and the console: what each
// call of the API asks for, what its answer means for the next one, and when all is done.
package resubmit

import (
	"encoding/json"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// mostInCall is the most dead letters of a call.
const mostInCall = 10_000

// Number is a sequence number. In JSON it is a text, because it may be longer than a number of JavaScript.
type Number int64

// MarshalJSON writes a text.
func (n Number) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(n), 10)), nil
}

// UnmarshalJSON reads a text.
func (n *Number) UnmarshalJSON(text []byte) error {
	var quoted string
	if err := json.Unmarshal(text, &quoted); err != nil {
		return fmt.Errorf("a sequence number must be a text: %w", err)
	}
	number, err := strconv.ParseInt(quoted, 10, 64)
	*n = Number(number)
	if err != nil {
		return fmt.Errorf("a sequence number: %w", err)
	}
	return nil
}

// Progress is how far a resubmission is. A page keeps it between two steps.
type Progress struct {
	Named   bool     `json:"named,omitempty"`   // those with Numbers; otherwise those that a filter selects, or all
	Numbers []Number `json:"numbers,omitempty"` // that are left to send
	Total   int64    `json:"total,omitempty"`   // unless they are named: at most so many; what becomes one again stays
	Sent    int64    `json:"sent,omitempty"`    // also those that the target has dropped as duplicates
	Stay    []Number `json:"stay,omitempty"`    // unless they are named: those that could not be sent
	Done    bool     `json:"done,omitempty"`
}

// ByNumber begins a resubmission of some dead letters.
func ByNumber(numbers []int64) Progress {
	p := Progress{Named: true, Done: len(numbers) == 0}
	for _, n := range numbers {
		p.Numbers = append(p.Numbers, Number(n))
	}
	return p
}

// All begins a resubmission of at most so many dead letters.
func All(total int64) Progress { return Progress{Total: total, Done: total <= 0} }

// Next fills in which dead letters the next call is about, about as many as step.
func (p *Progress) Next(request *sidebusv1.ResubmitRequest, step int) {
	if !p.Named {
		// What could not be sent comes first again, so each call must have space for it.
		most := min(p.Total-p.Sent, int64(step+len(p.Stay)), mostInCall)
		request.Max = proto.Int32(int32(most)) //nolint:gosec // at most mostInCall
		return
	}
	request.SequenceNumbers = nil
	for _, n := range p.Numbers[:min(len(p.Numbers), step)] {
		request.SequenceNumbers = append(request.SequenceNumbers, int64(n))
	}
}

// Take notes the answer of a call, and returns the results that no earlier answer had.
func (p *Progress) Take(answer *sidebusv1.ResubmitResponse) (fresh []*sidebusv1.ResubmitResponse_Result) {
	if p.Named {
		return p.takeNamed(answer)
	}
	stays := map[Number]bool{}
	for _, n := range p.Stay {
		stays[n] = true
	}
	moved := false
	for _, result := range answer.GetResults() {
		number := Number(result.GetSequenceNumber())
		switch {
		case result.GetReason() == "":
			p.Sent++
			moved = true
		case stays[number]:
			continue
		default:
			p.Stay = append(p.Stay, number)
		}
		fresh = append(fresh, result)
	}
	p.Done = !answer.GetMore() || !moved || p.Sent+int64(len(p.Stay)) >= p.Total
	return fresh
}

// takeNamed is Take for those with numbers: the answer has one result for each of the first ones.
func (p *Progress) takeNamed(answer *sidebusv1.ResubmitResponse) []*sidebusv1.ResubmitResponse_Result {
	for _, result := range answer.GetResults() {
		if result.GetReason() == "" {
			p.Sent++
		}
	}
	dealt := min(len(answer.GetResults()), len(p.Numbers))
	p.Numbers = p.Numbers[dealt:]
	p.Done = len(p.Numbers) == 0 || dealt == 0 // the sidecar that has dealt with none has no time left
	return answer.GetResults()
}
