package atom_test

import (
	"encoding/xml"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/atom"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stand is a Handler behind a real HTTP server.
type stand struct {
	*testing.T

	broker *broker.Broker
	base   string
	client *http.Client
}

func start(t *testing.T, authorizer access.Authorizer) *stand {
	t.Helper()
	b := broker.New(memstore.New(), broker.WithRules(filter.Compile))
	t.Cleanup(b.Close)
	logger := slog.New(slog.DiscardHandler)
	metrics, err := obs.NewMetrics(prometheus.NewRegistry(), b, 0)
	if err != nil {
		t.Fatal(err)
	}
	responses := response.NewTracker(logger)
	server := httptest.NewServer(atom.New(atom.Config{
		Broker: b, Responses: responses, Calls: obs.NewCalls(metrics, logger), Authorizer: authorizer, Namespace: "default",
		Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
	}))
	t.Cleanup(func() {
		server.Close()
		responses.Wait()
	})
	return &stand{t, b, server.URL, server.Client()}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// call makes a request; pairs are headers.
func (s *stand) call(method, path, body string, pairs ...string) answer {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		request.Header.Add(pairs[i], pairs[i+1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// want makes a request that must have a status.
func (s *stand) want(status int, method, path, body string, pairs ...string) answer {
	s.Helper()
	a := s.call(method, path+"?api-version=2021-05", body, pairs...)
	if a.status != status {
		s.Fatalf("%s %s: got %d %s, want %d", method, path, a.status, a.body, status)
	}
	return a
}

// put creates what a description has.
func (s *stand) put(path, description string) answer {
	s.Helper()
	return s.want(http.StatusCreated, http.MethodPut, path, entry(description))
}

// update changes what a description has.
func (s *stand) update(path, description string) answer {
	s.Helper()
	return s.want(http.StatusOK, http.MethodPut, path, entry(description), "If-Match", "*")
}

// entry returns a request, with the namespaces and prefixes of an SDK.
func entry(description string) string {
	return `<?xml version="1.0" encoding="utf-8"?><entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">` +
		strings.Replace(description, ">", ` xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"`+
			` xmlns:p4="http://www.w3.org/2001/XMLSchema-instance" xmlns:l28="http://www.w3.org/2001/XMLSchema">`, 1) +
		`</content></entry>`
}

// read returns the fields of the description in an answer.
func (a answer) read(t *testing.T) map[string]string {
	t.Helper()
	var read struct {
		Content struct {
			Description struct {
				Fields []struct {
					XMLName xml.Name
					Text    string `xml:",chardata"`
				} `xml:",any"`
			} `xml:",any"`
		} `xml:"content"`
	}
	if err := xml.Unmarshal([]byte(a.body), &read); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	fields := map[string]string{}
	for _, f := range read.Content.Description.Fields {
		fields[f.XMLName.Local] = f.Text
	}
	return fields
}

// titles returns the titles of a feed, and the address of the next page.
func (a answer) titles(t *testing.T) (titles []string, next string) {
	t.Helper()
	var feed struct {
		Links []struct {
			Rel  string `xml:"rel,attr"`
			Href string `xml:"href,attr"`
		} `xml:"link"`
		Entries []struct {
			Title string `xml:"title"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal([]byte(a.body), &feed); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	for _, e := range feed.Entries {
		titles = append(titles, e.Title)
	}
	if len(feed.Links) == 2 && feed.Links[1].Rel == "next" {
		next = feed.Links[1].Href
	}
	return titles, next
}
