package cli

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every field of every document stands in docs/json.md, in the section of its
// command or in one that is shared.
func TestDocumentsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/json.md")
	require.NoError(t, err)
	sections := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		sections[title] = body
	}
	shared := sections["A path"] + sections["A checkpoint"] + sections["A change"]
	for title, document := range map[string]any{
		"A path": place{}, "A checkpoint": taken{}, "A change": change{},
		"retcon": standing{}, "retcon init": begun{}, "retcon exec": executed{}, "retcon log": history{},
		"retcon run, resume": ended{}, "retcon signal": sent{}, "retcon cancel": cancelled{}, "retcon lint": findings{},
		"retcon log --events": eventList{}, "retcon timeline": frames{}, "retcon show": runShown{},
		"retcon runs": runList{}, "retcon effects list": effectList{}, "retcon ack": acked{}, "retcon diff": difference{}, "retcon restore, undo, redo": moved{}, "retcon op log": opList{},
		"retcon gc": collected{}, "retcon doctor": health{}, "retcon recover": recovered{}, "retcon config": settingsAnswer{},
		"retcon trust": project{}, "retcon trust --list": trustedList{}, "retcon trust --remove": distrusted{},
		"retcon version": build{}, "retcon completion": shellScript{}, "retcon help": overview{},
	} {
		body, ok := sections[title]
		if !assert.True(t, ok, "no section %q", title) {
			continue
		}
		for _, other := range regexp.MustCompile("`(retcon [a-z, ]+)`").FindAllStringSubmatch(body, -1) {
			body += sections[other[1]] // "see `retcon runs`"
		}
		for _, field := range fieldsOf(reflect.TypeOf(document), map[reflect.Type]bool{}) {
			told := regexp.MustCompile("`[^`]*\\b" + field + "\\b(\\[\\])?`")
			assert.True(t, told.MatchString(body) || told.MatchString(shared),
				"%s: %s is not documented", title, field)
		}
	}
}

// fieldsOf lists the names of a document's fields, nested ones too.
func fieldsOf(in reflect.Type, seen map[reflect.Type]bool) (fields []string) {
	for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice {
		in = in.Elem()
	}
	if in.Kind() != reflect.Struct || seen[in] || in.PkgPath() == "time" {
		return nil
	}
	seen[in] = true
	for f := range in.NumField() {
		tag, _, _ := strings.Cut(in.Field(f).Tag.Get("json"), ",")
		if tag != "" && tag != "-" {
			fields = append(fields, tag)
		}
		fields = append(fields, fieldsOf(in.Field(f).Type, seen)...)
	}
	return fields
}
