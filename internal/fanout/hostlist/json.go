package hostlist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

var (
	errNotUTF8 = errors.New("the text is not UTF-8")
	errDeep    = errors.New("nested more than 1000 deep")
)

// jsonReader reads JSON into the nodes of YAML. Not all of JSON is YAML: tabs, and halves of a
// character in \u.
type jsonReader struct {
	text string
	dec  *json.Decoder
	line int // at the offset at
	at   int64
}

// looksJSON reports whether a text begins as JSON or as a mapping of YAML in braces: never as INI.
func looksJSON(text string) bool { return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") }

// parseJSON returns a nil node without an error for a text that is not JSON.
func parseJSON(text string) (*yaml.Node, error) {
	if !looksJSON(text) {
		return nil, nil
	}
	if !utf8.ValidString(text) {
		return nil, errNotUTF8
	}
	r := &jsonReader{text: text, dec: json.NewDecoder(strings.NewReader(text)), line: 1}
	r.dec.UseNumber()
	root, err := r.node(0)
	if errors.Is(err, errDeep) {
		return nil, err
	}
	if _, end := r.dec.Token(); err != nil || !errors.Is(end, io.EOF) {
		return nil, nil
	}
	return root, nil
}

func (r *jsonReader) node(level int) (*yaml.Node, error) {
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	after := r.dec.InputOffset()
	r.line += strings.Count(r.text[r.at:after], "\n")
	r.at = after
	if level > maxDepth {
		return nil, fmt.Errorf("line %d: %w", r.line, errDeep)
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Line: r.line}
	switch t := token.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		if t == '[' {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
		for r.dec.More() {
			inside, err := r.node(level + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, inside)
		}
		_, err = r.dec.Token()
	case nil:
		n.Tag = "!!null"
	default:
		n.Value = fmt.Sprint(t)
	}
	return n, err
}
