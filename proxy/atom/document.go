package atom

import (
	"bytes"
	"encoding/xml"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Namespaces of what this API returns.
const (
	atomNamespace   = "http://www.w3.org/2005/Atom"
	busNamespace    = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
	countsNamespace = "http://schemas.microsoft.com/netservices/2011/06/servicebus"
	typesNamespace  = "http://www.w3.org/2001/XMLSchema"
)

// document writes XML. The prefixes of namespaces, and which elements declare them, are those of Service Bus: the SDK
// for JavaScript looks for them.
type document struct{ written bytes.Buffer }

// element writes an element with what inside writes. attributes are names and values in turn.
func (d *document) element(name string, inside func(), attributes ...string) {
	d.written.WriteString("<" + name)
	for attribute := range slices.Chunk(attributes, 2) {
		d.written.WriteString(" " + attribute[0] + `="` + escaped(attribute[1]) + `"`)
	}
	d.written.WriteString(">")
	inside()
	d.written.WriteString("</" + name + ">")
}

// text writes an element with a text.
func (d *document) text(name, text string, attributes ...string) {
	d.element(name, func() { d.written.WriteString(escaped(text)) }, attributes...)
}

func (d *document) integer(name string, n int64) { d.text(name, strconv.FormatInt(n, 10)) }

// time writes an instant. The zero time is that of something that has not happened.
func (d *document) time(name string, at time.Time) { d.text(name, instant(at)) }

func instant(at time.Time) string {
	if at.IsZero() {
		return "0001-01-01T00:00:00Z"
	}
	return at.UTC().Format("2006-01-02T15:04:05.9999999Z")
}

// escaped returns a text as XML has it. What XML cannot have becomes U+FFFD.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return strings.ReplaceAll(b.String(), "&#39;", "'")
}

// description writes the element in which something is described.
func (d *document) description(name string, inside func()) {
	d.element(name, inside, "xmlns", busNamespace, "xmlns:i", xsi)
}

// resource is what an entry is about.
type resource struct {
	id       string // path below the address, from which the SDK for JavaScript reads the names
	title    string // its own name
	created  time.Time
	updated  time.Time
	describe func(d *document)
}

// entry writes a resource.
func (x *exchange) entry(d *document, r resource, attributes ...string) {
	id := x.address(r.id)
	d.element("entry", func() {
		d.text("id", id)
		d.text("title", r.title, "type", "text")
		d.time("published", r.created)
		d.time("updated", r.updated)
		d.element("author", func() { d.text("name", x.Namespace) })
		d.text("link", "", "rel", "self", "href", id)
		d.element("content", func() { r.describe(d) }, "type", "application/xml")
	}, attributes...)
}

// single returns the document of one resource.
func (x *exchange) single(r resource) []byte {
	var d document
	x.entry(&d, r, "xmlns", atomNamespace)
	return d.written.Bytes()
}

// feed returns the document of a page of resources. next is the address of the next page, empty if there is none.
func (x *exchange) feed(title, next string, page []resource) []byte {
	var d document
	self := x.origin() + x.request.URL.RequestURI()
	d.element("feed", func() {
		d.text("title", title, "type", "text")
		d.text("id", self)
		d.time("updated", time.Now())
		d.text("link", "", "rel", "self", "href", self)
		if next != "" { // the SDK for Python takes the second link
			d.text("link", "", "rel", "next", "href", next)
		}
		for _, r := range page {
			x.entry(&d, r)
		}
	}, "xmlns", atomNamespace)
	return d.written.Bytes()
}

// origin is where the client has found this API. The SDKs use https.
func (x *exchange) origin() string { return "https://" + x.request.Host }

// address returns the address of a path.
func (x *exchange) address(path string) string {
	address := x.origin() + "/" + path
	if version := x.request.URL.Query().Get("api-version"); version != "" {
		address += "?api-version=" + escapeQuery(version)
	}
	return address
}
