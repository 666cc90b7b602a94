package record_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"sshpace/internal/record"
)

// Every field of every record stands in doc/record.md.
func TestFieldsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../doc/record.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(record reflect.Type) {
		for record.Kind() == reflect.Pointer || record.Kind() == reflect.Slice || record.Kind() == reflect.Map {
			record = record.Elem()
		}
		if record.Kind() != reflect.Struct || record == reflect.TypeFor[time.Time]() || seen[record] {
			return
		}
		seen[record] = true
		for _, field := range reflect.VisibleFields(record) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && name != "-" && !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("%s.%s: doc/record.md says nothing of `%s`", record, field.Name, name)
			}
			walk(field.Type)
		}
	}
	walk(reflect.TypeFor[record.File]())
	for _, r := range oneOfEach() {
		key, _, _ := strings.Cut(string(file(t, []record.Record{r}))[2:], `"`)
		if !strings.Contains(string(text), "\n## "+key+"\n") {
			t.Errorf("doc/record.md says nothing of %s", key)
		}
	}
}
