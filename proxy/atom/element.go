package atom

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// Limits of a document, which has at most maxBody bytes too.
const (
	maxDepth    = 16
	maxElements = 10_000
)

// element is an element of a request. Names are without their namespaces, whose prefixes differ between the SDKs.
type element struct {
	name     string
	kind     string // the attribute i:type, without prefix
	text     string
	children []*element
}

// child returns the first child of a name, or nil.
func (e *element) child(name string) *element {
	for _, c := range e.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// textOf returns the text of a child, and whether there is one.
func (e *element) textOf(name string) (string, bool) {
	if c := e.child(name); c != nil {
		return c.text, true
	}
	return "", false
}

// parse reads a document. Entities other than those of XML itself are refused.
func parse(body []byte) (*element, error) {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	var root *element
	var open []*element
	for count := 0; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && root != nil {
			return root, nil
		}
		if err != nil {
			return nil, semantics.InvalidField("entry", "the body is not a document of XML: %v", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if count++; count > maxElements || len(open) == maxDepth {
				return nil, semantics.InvalidField(
					"entry", "the body has more than %d elements, or is deeper than %d", maxElements, maxDepth,
				)
			}
			e := &element{name: t.Name.Local, kind: kindOf(t.Attr)}
			if len(open) > 0 {
				open[len(open)-1].children = append(open[len(open)-1].children, e)
			} else {
				root = e
			}
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text += string(t)
			}
		}
	}
}

// xsi is the namespace of the attribute that has the type of an element.
const xsi = "http://www.w3.org/2001/XMLSchema-instance"

func kindOf(attributes []xml.Attr) string {
	for _, a := range attributes {
		if a.Name.Space == xsi && a.Name.Local == "type" {
			return a.Value[strings.LastIndexByte(a.Value, ':')+1:]
		}
	}
	return ""
}
